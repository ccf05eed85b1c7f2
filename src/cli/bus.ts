/** `gatehouse bus`: what concerns an RS-485 bus. check-profile needs no daemon. */
import { isProfilePath, profileFile, readProduct } from '../platform/config/profiles.ts';
import { FileError } from '../platform/yaml/yaml-file.ts';
import { printJson, type Shell } from './shell.ts';

/** Throws FileError, unless `json` wants the mistakes as data; returns whether there were none. */
export function checkProfile(name: string, { json }: { json?: boolean }, shell: Shell): boolean {
  const isBuiltIn = !isProfilePath(name) && /^[a-z0-9-]+$/.test(name);
  const file = isBuiltIn ? profileFile(name) : name;
  try {
    const { product } = readProduct(file);
    if (json) printJson(shell, { file, valid: true, mistakes: [] });
    else shell.stdout.write(`${file} is valid: ${product}\n`);
    return true;
  } catch (error) {
    if (!json || !(error instanceof FileError)) throw error;
    printJson(shell, { file, valid: false, message: error.message, mistakes: error.mistakes });
    return false;
  }
}
