/**
 * An archive: one age file with one tar in it. Its first entry is the manifest, which names all others with their sizes.
 * Written and read in pieces, so that a large database needs no more memory than a small one.
 */
import { closeSync, fstatSync, mkdirSync, openSync, readSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  type DecryptionKey,
  decrypted,
  type EncryptionKey,
  encrypted,
  NotDecrypted,
} from '../../platform/age.ts';
import type { SmallFile } from './contents.ts';
import { MANIFEST, MANIFEST_MAX_BYTES, type Manifest, manifest } from './manifest.ts';
import { readTar, TarFault, type TarReader, tarEnd, tarHeader, tarPadding, whole } from './tar.ts';

const PIECE_BYTES = 256 * 1_024;

/** Says why it is not used. */
export class ArchiveRefused extends Error {}

export interface ArchiveContent {
  manifest: Manifest;
  /** Those of the manifest, in its order. */
  files: readonly (SmallFile | OpenFile)[];
}

/** A large one: its descriptor is read from its beginning. */
export interface OpenFile {
  name: string;
  descriptor: number;
}

/** Writes to a descriptor. `written` receives the bytes of the archive so far; an error that it throws ends the archive. */
export async function writeArchive(
  target: number,
  content: ArchiveContent,
  key: EncryptionKey,
  written: (bytes: number) => void,
): Promise<number> {
  let bytes = 0;
  for await (const piece of await encrypted(tarOf(content), key)) {
    writeFileSync(target, piece);
    bytes += piece.length;
    written(bytes);
  }
  return bytes;
}

async function* tarOf({ manifest, files }: ArchiveContent): AsyncGenerator<Uint8Array> {
  const content = Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`);
  for (const file of [{ name: MANIFEST, content }, ...files]) {
    const bytes = bytesOf(file);
    yield tarHeader({ name: file.name, bytes });
    if ('content' in file) yield file.content;
    else yield* piecesOf(file.descriptor);
    yield tarPadding(bytes);
  }
  yield tarEnd();
}

export function bytesOf(file: SmallFile | OpenFile): number {
  return 'content' in file ? file.content.length : fstatSync(file.descriptor).size;
}

/** From its beginning. */
export async function* piecesOf(descriptor: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; ; ) {
    const piece = Buffer.alloc(PIECE_BYTES);
    const bytes = readSync(descriptor, piece, 0, PIECE_BYTES, at);
    if (bytes === 0) return;
    at += bytes;
    yield piece.subarray(0, bytes);
  }
}

/** The manifest, and the configuration that comes after it. The rest of the archive is not looked at. Throws ArchiveRefused. */
export async function peekArchive(
  source: AsyncIterable<Uint8Array>,
  key: DecryptionKey,
): Promise<{ manifest: Manifest; configuration: string }> {
  try {
    const tar = readTar(decrypted(source, key));
    const said = await readManifest(tar);
    const first = await tar.next();
    if (first?.name !== said.configuration || first.bytes > MANIFEST_MAX_BYTES)
      throw new ArchiveRefused('its first file is not the configuration');
    return { manifest: said, configuration: await textOf(tar) };
  } catch (error) {
    throw refused(error);
  }
}

/**
 * Puts the files of an archive into an empty folder of the caller's (0600), under their names. Returns once the last
 * byte is authenticated: nothing in the folder may be used before. Throws ArchiveRefused.
 */
export async function unpackArchive(
  source: AsyncIterable<Uint8Array>,
  key: DecryptionKey,
  folder: string,
): Promise<Manifest> {
  try {
    const tar = readTar(decrypted(source, key));
    const said = await readManifest(tar);
    for (const file of said.files) {
      const found = await tar.next();
      if (found?.name !== file.name || found.bytes !== file.bytes)
        throw new ArchiveRefused(`it does not hold what its manifest says: ${file.name} is missing`);
      await writeFile(join(folder, file.name), tar);
    }
    if (await tar.next()) throw new ArchiveRefused('it holds more than its manifest says');
    return said;
  } catch (error) {
    throw refused(error);
  }
}

async function readManifest(tar: TarReader): Promise<Manifest> {
  const first = await tar.next();
  if (first?.name !== MANIFEST || first.bytes > MANIFEST_MAX_BYTES)
    throw new ArchiveRefused('it is no backup of Gatehouse: it does not begin with a manifest');
  const { data, error } = manifest.safeParse(JSON.parse(await textOf(tar)));
  if (data) return data;
  const [issue] = error.issues;
  throw new ArchiveRefused(`its manifest is not understood: ${issue?.path.join('.')} ${issue?.message}`);
}

async function textOf(tar: TarReader): Promise<string> {
  return (await whole(tar.content())).toString('utf8');
}

async function writeFile(file: string, tar: TarReader): Promise<void> {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const target = openSync(file, 'wx', 0o600);
  try {
    for await (const piece of tar.content()) writeFileSync(target, piece);
  } finally {
    closeSync(target);
  }
}

function refused(error: unknown): unknown {
  if (error instanceof TarFault || error instanceof SyntaxError)
    return new ArchiveRefused(`it is no backup of Gatehouse: ${error.message}`, { cause: error });
  if (!(error instanceof NotDecrypted)) return error;
  const isForOthers = /no identity matched|no identities|incorrect passphrase/i.test(error.message);
  const fact = isForOthers
    ? 'this key or passphrase does not open it'
    : 'it is damaged, cut short, or was changed';
  return new ArchiveRefused(`${fact} (${error.message})`, { cause: error });
}
