/** Reads the file that `gatehouse import` takes, and explains every mistake in it (yaml-file.ts). */
import type { Problem } from './problem.ts';
import { contradictions, type Site, siteJsonSchema, siteSchema } from './site-document.ts';
import { type FileError, parseText, readText } from './yaml-file.ts';

/** 5,000 doors, generously. */
const FILE_MAX_BYTES = 4 * 1024 * 1024;

export interface SiteFile {
  site: Site;
  /** What to throw when the daemon finds something wrong that the file alone does not show. */
  failed(problems: Problem[]): FileError;
}

/** Throws FileError. */
export function readSite(file: string): SiteFile {
  return parseSite(readText(file, "the site's file", FILE_MAX_BYTES), file);
}

/** `file` is the name in messages. Throws FileError. */
export function parseSite(text: string, file: string): SiteFile {
  const kind = { schema: siteSchema, jsonSchema: siteJsonSchema, check: contradictions };
  const { value: site, failed } = parseText(text, file, kind);
  return { site, failed };
}
