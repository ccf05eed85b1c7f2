/**
 * The pages of the console, as scripts/build.ts has made them: read once, at the first request, and served from memory. They
 * hold nothing of the site, so that they need no credentials; all they show comes from operations.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import type { StoredBytes } from './operation.ts';
import { type Reply, storedBytes, storedReply } from './reply.ts';

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** No inline script, and no other origin. Styles that scripts set on an element are no inline styles (CSP 3, 6.7.3). */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

interface Page {
  stored: StoredBytes;
  headers: Record<string, string>;
}

export interface Pages {
  /** The answer to a GET of this path, or a HEAD, whose body the router leaves out; undefined: there is no page. */
  at(request: Request, path: string): Reply | undefined;
}

/** `values` replace `{{name}}` in index.html. */
export function openPages(folder: string, values: Readonly<Record<string, string>>): Pages {
  let pages: Map<string, Page> | undefined;
  return {
    at(request, path) {
      if (request.method !== 'GET' && request.method !== 'HEAD') return undefined;
      pages ??= readPages(folder, values);
      const page = pages.get(path);
      return page && storedReply(200, page.stored, request, page.headers);
    },
  };
}

function readPages(folder: string, values: Readonly<Record<string, string>>): Map<string, Page> {
  const pages = new Map<string, Page>();
  if (!existsSync(folder)) return pages;
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const type = TYPES[extname(name)];
    if (type === undefined) continue;
    const bytes = readFileSync(join(folder, name));
    const isIndex = name === 'index.html';
    pages.set(isIndex ? '/' : `/${name}`, {
      stored: storedBytes(isIndex ? Buffer.from(filledPage(bytes.toString(), values)) : bytes),
      headers: {
        'Content-Type': type,
        'Content-Security-Policy': POLICY,
        // The names of all others hold a digest of their content.
        'Cache-Control': isIndex ? 'no-cache' : 'public, max-age=31536000, immutable',
      },
    });
  }
  return pages;
}

/** With its `{{name}}` replaced. */
export function filledPage(html: string, values: Readonly<Record<string, string>>): string {
  return html.replaceAll(/\{\{(\w+)\}\}/g, (whole, name: string) => values[name] ?? whole);
}
