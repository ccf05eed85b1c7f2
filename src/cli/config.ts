/** `gatehouse config check` and `gatehouse config schema`: nothing here needs the daemon. */
import { configJsonSchema } from '../platform/config/config.ts';
import { type ReadOptions, readConfig } from '../platform/config/config-file.ts';
import { FileError } from '../platform/yaml/yaml-file.ts';
import { readKeySet } from '../services/auth/key-set.ts';
import { checkVendorRoots } from '../services/pki/device-chain.ts';
import { configFile, isPackaged, SITE_CONFIG } from './client.ts';
import { readerFor } from './service-user.ts';
import { printJson, type Shell } from './shell.ts';

/** Throws FileError, unless `json` wants the mistakes as data; returns whether there were none. */
export function checkConfig(option: string | undefined, { json }: { json?: boolean }, shell: Shell): boolean {
  const file = configFile(option, shell);
  const skipped: string[] = [];
  const reader = readerFor(shell, (path) => void skipped.push(path));
  try {
    readConfig(file, { reader, ...everyCheck(shell) });
  } catch (error) {
    if (!json || !(error instanceof FileError)) throw error;
    printJson(shell, { file, valid: false, message: error.message, mistakes: error.mistakes });
    return false;
  }
  if (json) printJson(shell, { file, valid: true, mistakes: [] });
  else {
    const what = isPackaged(file)
      ? `There is no ${SITE_CONFIG} yet (gatehouse setup makes one); the example that comes with Gatehouse, ${file}`
      : file;
    shell.stdout.write(
      `${what} is valid${skipped.length > 0 ? `; not checked (needs root): ${skipped.join(', ')}` : ''}\n`,
    );
  }
  return true;
}

/** All that can be judged without the daemon. */
export function everyCheck({ clock }: Shell): ReadOptions {
  return {
    checkFiles: true,
    checkContents: { now: clock.now(), vendorRoots: checkVendorRoots, keySet: readKeySet },
    checkAdapters: true,
  };
}

export function printSchema(shell: Shell): void {
  printJson(shell, configJsonSchema());
}
