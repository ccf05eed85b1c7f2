/** A firmware file for OSDP devices, with the manifest beside it that says for which ones it is. */
import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { z } from 'zod';
import { FILE_MAX } from '../../../drivers/contract/osdp.ts';
import { fileNotPossible, firmwarePath } from '../../platform/firmware-file.ts';

const MANIFEST_MAX_BYTES = 16 * 1_024;
const APPS_MAX = 16;
const text = z
  .string()
  .min(1)
  .max(64)
  .regex(/^[\x20-\x7e]+$/, 'expected printable characters');

/** `<file>.json`: makers publish files as they are, and none says by itself which devices it is for. */
const manifest = z.strictObject({
  vendorCode: z
    .string()
    .toLowerCase()
    .regex(/^[0-9a-f]{6}$/, 'expected the six hex digits with which the hwId of the device begins'),
  /** Model numbers, the second part of the hwId. */
  models: z.array(z.int().min(0).max(255)).min(1).max(256),
  /** As the device reports it afterwards (`platform.version`). */
  version: text,
  apps: z
    .array(z.strictObject({ name: text, version: text }))
    .max(APPS_MAX)
    .default([]),
  /** FtType: 1 a file as it is, from 128 on the maker's own. */
  fileType: z.int().min(1).max(255).default(1),
  sha256: z
    .string()
    .toLowerCase()
    .regex(/^[0-9a-f]{64}$/, 'expected 64 hex digits (sha256sum prints them)'),
});
export type FirmwareManifest = z.output<typeof manifest>;

export interface FirmwareImage {
  file: string;
  manifest: FirmwareManifest;
  bytes: Uint8Array;
}

/** Throws VALIDATION_FAILED: not there, not whole, or without a manifest. */
export async function readImage(file: string, directory: string | undefined): Promise<FirmwareImage> {
  const path = await firmwarePath(file, directory);
  const manifest = await readManifest(file, directory);
  const { size } = await stat(path);
  if (size === 0 || size > FILE_MAX)
    throw fileNotPossible(`has ${size} bytes, and may have 1 to ${FILE_MAX}`);
  const bytes = await readFile(path).catch((error) => {
    throw fileNotPossible('cannot be read in firmwareDirectory', error);
  });
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  if (sha256 !== manifest.sha256)
    throw fileNotPossible(`is not the file that ${file}.json describes: its SHA-256 is ${sha256}`);
  return { file, manifest, bytes };
}

async function readManifest(file: string, directory: string | undefined): Promise<FirmwareManifest> {
  const name = `${file}.json`;
  const path = await firmwarePath(name, directory);
  const { size } = await stat(path);
  if (size > MANIFEST_MAX_BYTES) throw fileNotPossible(`has no manifest: ${name} has ${size} bytes`);
  let parsed: unknown;
  try {
    parsed = JSON.parse(await readFile(path, 'utf8'));
  } catch (error) {
    throw fileNotPossible(`has no manifest: ${name} cannot be read as JSON`, error);
  }
  const { data, error } = manifest.safeParse(parsed);
  if (data) return data;
  throw fileNotPossible(`has no good manifest: ${name}: ${z.prettifyError(error).replaceAll('\n', ' ')}`);
}

/** Throws VALIDATION_FAILED: the file is another maker's, or for another model. */
export function assertFits({ manifest: { vendorCode, models } }: FirmwareImage, hwId: string): void {
  const [vendor, model] = hwId.split('-');
  if (vendor === vendorCode && models.includes(Number(model))) return;
  const wanted = models.map((one) => `${vendorCode}-${one}`).join(', ');
  throw fileNotPossible(`is for devices ${wanted}, and this one is ${hwId}`);
}
