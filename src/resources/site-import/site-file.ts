/** Reads the file that `gatehouse import` takes, and explains every mistake in it (yaml-file.ts). */
import type { Problem } from '../../platform/yaml/problem.ts';
import { type FileError, parseText, readText } from '../../platform/yaml/yaml-file.ts';
import { contradictions, type Site, siteJsonSchema, siteSchema } from './site-document.ts';

/** 5,000 doors, generously. */
const FILE_MAX_BYTES = 4 * 1024 * 1024;

export interface SiteFile {
  site: Site;
  /** Why it cannot be imported, as far as the file alone shows it; the daemon may know more, and both are shown at once. */
  contradictions: Problem[];
  /** What to throw when something is wrong. */
  failed(problems: Problem[]): FileError;
}

/** Throws FileError. */
export function readSite(file: string): SiteFile {
  return parseSite(readText(file, "the site's file", FILE_MAX_BYTES), file);
}

/** `file` is the name in messages. Throws FileError. */
export function parseSite(text: string, file: string): SiteFile {
  const found: Problem[] = [];
  const { value: site, failed } = parseText(text, file, {
    schema: siteSchema,
    jsonSchema: siteJsonSchema,
    placeholders: (number) => [number, `x${number}`, '00:00', 'mon', []],
    check(site, part) {
      const problems = contradictions(site);
      if (part === 'sound') return problems;
      found.push(...problems);
      return [];
    },
  });
  return { site, contradictions: found, failed };
}
