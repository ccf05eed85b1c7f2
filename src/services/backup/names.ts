/** How archives are called, and which of a folder are too many. */

/** No other file of the folder is ever removed, but drafts of such. */
const ARCHIVE_NAME = /^gatehouse-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z\.age$/;

export interface Made {
  file: string;
  bytes: number;
  /** Files of this installation that are not in the archive. */
  leftOut: string[];
}

/** Names sort as their times do. */
export function archiveName(at: number): string {
  return `gatehouse-${new Date(at).toISOString().replaceAll(/[-:]|\.\d+/g, '')}.age`;
}

/** Epoch milliseconds; undefined for what is no archive. */
export function archiveTime(name: string): number | undefined {
  const parts = ARCHIVE_NAME.exec(name);
  if (!parts) return undefined;
  const [, year, month, day, hour, minute, second] = parts;
  const at = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  return Number.isNaN(at) ? undefined : at;
}

/** The name until the archive is whole. */
export const draftOf = (archive: string) => `${archive}.new`;

/** Left by a backup that was killed, or of one that is being made beside this one, which then fails and says so. */
export const isDraft = (name: string) =>
  archiveTime(name.replace(/\.new$/, '')) !== undefined && name.endsWith('.new');

/** The archives that are more than `keep`, the oldest; never `made`. */
export function removable(names: readonly string[], keep: number, made: string): string[] {
  const others = names.filter((name) => name !== made && archiveTime(name) !== undefined).toSorted();
  return others.slice(0, Math.max(0, others.length - (keep - 1)));
}
