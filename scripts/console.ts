/** `npm run console`: the console as its sources are, in front of a gateway that runs; and what scripts/build.ts makes it with. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { InlineConfig, Plugin } from 'vite';
import { parse } from 'yaml';
import { filledPage } from '../src/platform/http/pages.ts';

const USAGE = `usage: npm run console -- [--gateway URL]

  --gateway URL     whose interface the pages use (default https://127.0.0.1:8443, which is that of npm run demo)`;

/** A page shows docs/asyncapi.yaml, what is said and not who says it; it has no parser. */
const yamlDocuments: Plugin = {
  name: 'yaml-documents',
  transform: {
    filter: { id: /\.yaml$/ },
    handler(text) {
      const { channels, components } = parse(text) as Record<string, Record<string, unknown>>;
      const { messages, schemas } = components ?? {};
      const shown = { channels, components: { messages, schemas } };
      return { code: `export const document = ${JSON.stringify(shown)};`, map: null };
    },
  },
};

/** All styles are in one file, so that a part that is loaded later needs nothing before it: what Vite would load is left out. */
const noPreloads: Plugin = {
  name: 'no-preloads',
  transform: {
    filter: { id: /vite\/preload-helper/ },
    handler: () => ({ code: 'export const __vitePreload = (load) => load();', map: null }),
  },
};

export function consoleSettings(root: string): InlineConfig {
  return {
    configFile: false,
    root: join(root, 'src/console'),
    // Pages and files are served at the root whatever the base path of the interface is.
    base: '/',
    logLevel: 'warn',
    plugins: [yamlDocuments, noPreloads],
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact', development: false } },
    // The map names the libraries for the package's copyright file; browsers do not ask for it.
    build: {
      sourcemap: 'hidden',
      target: 'es2022',
      modulePreload: false,
      cssCodeSplit: false,
      emptyOutDir: true,
      assetsInlineLimit: 0,
    },
  };
}

async function serve(): Promise<void> {
  const { values } = parseArgs({
    options: {
      gateway: { type: 'string', default: 'https://127.0.0.1:8443' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return console.log(USAGE);
  const { createServer } = await import('vite');
  const root = join(import.meta.dirname, '..');
  const { paths } = JSON.parse(readFileSync(join(root, 'docs/openapi.json'), 'utf8')) as { paths: object };
  const segments = new Set(Object.keys(paths).map((path) => path.split('/')[1]));
  const settings = consoleSettings(root);
  const fill: Plugin = {
    name: 'fill',
    transformIndexHtml: (html) => filledPage(html, { api: '', doors: 'access' }),
  };
  const server = await createServer({
    ...settings,
    // Its address is printed as information.
    logLevel: 'info',
    plugins: [...(settings.plugins ?? []), fill],
    server: {
      host: 'localhost',
      // The certificate is of a site's own authority, which this process does not know.
      proxy: { [`^/(${[...segments].join('|')})(/|\\?|$)`]: { target: values.gateway, secure: false } },
    },
  });
  await server.listen();
  server.printUrls();
}

if (import.meta.main) await serve();
