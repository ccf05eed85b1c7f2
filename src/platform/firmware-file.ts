/** Firmware files: what of `firmwareDirectory` a caller may name. */
import { realpath, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from '@hono/zod-openapi';
import { GatehouseError, notPossible } from './errors.ts';

/** Longest name of a file that a folder can hold. */
const FILE_NAME_MAX = 255;

export const firmwareName = z
  .string()
  .min(1)
  .max(FILE_NAME_MAX)
  // No separators, nothing hidden, and so no way out of the folder.
  .regex(/^[A-Za-z0-9_][A-Za-z0-9_.+-]*$/, 'expected the name of a file, without a folder')
  .openapi({ description: 'Name of a file in `firmwareDirectory` of the configuration' });

/** VALIDATION_FAILED: this file cannot be given. */
export const fileNotPossible = (message: string, cause?: unknown): GatehouseError =>
  notPossible('/file', message, cause);

/** Its absolute path. `directory` undefined: the configuration names none. Throws VALIDATION_FAILED. */
export async function firmwarePath(name: string, directory: string | undefined): Promise<string> {
  if (directory === undefined)
    throw fileNotPossible(
      'needs a folder: set firmwareDirectory in the configuration, and put the file there',
    );
  try {
    const file = await realpath(join(directory, name));
    if (dirname(file) !== (await realpath(directory)))
      throw fileNotPossible('is a link to a place outside firmwareDirectory');
    if (!(await stat(file)).isFile()) throw fileNotPossible('is not a file');
    return file;
  } catch (error) {
    if (error instanceof GatehouseError) throw error;
    throw fileNotPossible(`cannot be read in firmwareDirectory (${name})`, error);
  }
}
