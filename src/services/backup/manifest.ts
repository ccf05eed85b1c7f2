/** What an archive says of itself: its first file. */
import { z } from 'zod';

export const MANIFEST = 'manifest.json';
export const DATABASE = 'data/gatehouse.db';
/** Raised when an older program would misread an archive. */
const FORMAT = 1;
export const MANIFEST_MAX_BYTES = 1_048_576;

/** Folders of the data directory whose files belong to a backup, with how deep they go. */
export const DATA_FOLDERS = { keys: 1, pki: 1, auth: 1, zigbee: 2 } as const;

const SEGMENT = '(?!\\.{1,2}(?:/|$))[^/\\\\\\p{Cc}]{1,100}';
/** Nothing else is ever written by a restore: no name leads out of its folder. */
const NAME = new RegExp(
  `^(?:data/gatehouse\\.db|data/(?:keys|pki|auth)/${SEGMENT}|data/zigbee/${SEGMENT}/${SEGMENT}|config(?:/${SEGMENT}){1,8})$`,
  'u',
);

export const fileName = z.string().regex(NAME, 'is no file of a backup');

const FILES_MAX = 2_000;

const content = z.object({
  kind: z.literal('gatehouse-backup', 'is not the manifest of a Gatehouse backup'),
  format: z.literal(FORMAT, 'is of a newer Gatehouse'),
  /** Of the program. */
  version: z.string().max(64),
  createdAt: z.iso.datetime(),
  systemId: z.guid(),
  databaseId: z.guid(),
  /** Of the database. */
  schema: z.int().min(1),
  /** In their order in the archive: the configuration is the first. */
  files: z.array(z.object({ name: fileName, bytes: z.int().min(0) })).max(FILES_MAX),
  /** Name of the configuration among the files: config/<name>. */
  configuration: fileName,
  /** Files of the installation that are not in the archive: links, a root key kept elsewhere, what the configuration names outside its folder. */
  leftOut: z.array(z.string().max(4_096)).max(FILES_MAX),
});
export type Manifest = z.infer<typeof content>;

export const manifest = content.superRefine(({ files, configuration }, { addIssue }) => {
  const refuse = (path: (string | number)[], message: string) => addIssue({ code: 'custom', path, message });
  const names = new Set<string>();
  for (const [index, { name }] of files.entries()) {
    if (names.has(name)) refuse(['files', index, 'name'], 'is the name of an earlier file');
    names.add(name);
  }
  for (const [index, { name }] of files.entries())
    if (foldersOf(name).some((folder) => names.has(folder)))
      refuse(['files', index, 'name'], 'is in a folder that is an earlier file');
  if (!names.has(DATABASE)) refuse(['files'], `lack the database, ${DATABASE}`);
  // Its place is needed before the rest is read (archive.ts, peekArchive).
  if (configuration !== files[0]?.name || !configuration.startsWith('config/'))
    refuse(['configuration'], 'is not the first of its files, config/…');
});

/** All folders that a name lies in. */
function foldersOf(name: string): string[] {
  const parts = name.split('/');
  return parts.slice(1).map((_part, index) => parts.slice(0, index + 1).join('/'));
}

export function newManifest(content: Omit<Manifest, 'kind' | 'format'>): Manifest {
  return { kind: 'gatehouse-backup', format: FORMAT, ...content };
}
