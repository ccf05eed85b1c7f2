/** Coordinators with EmberZNet of Silicon Labs, by EZSP over ASH. */

import { openEmberAddressing } from './addressing.ts';
import { storeBackups } from './backup-store.ts';
import { backUpLinkKeys, type EmberKeys } from './ember-keys.ts';
import { type CallbackReader, type EmberListeners, guardEmberListeners } from './ember-listeners.ts';
import { type AshStream, calmAshParser } from './ember-parser.ts';
import { type Ash, guardAsh } from './ember-port.ts';
import { type EmberSender, guardEmberSending } from './ember-sending.ts';
import { type EmberStart, guardEmberStart, type Versioned } from './ember-start.ts';
import { addLinkKey, replaceLinkKey } from './link-keys.ts';
import type { Class, Make, Utilities } from './make.ts';
import { ANSWERS_AT_ONCE } from './own-answers.ts';

/** Of the library; one for each process, as everything of it. */
export interface EmberLibrary {
  EmberAdapter: Class;
  Ezsp: Class;
  UartAsh: Class;
  AshParser: Class;
  utilities: Utilities;
}

export function emberMake(library: EmberLibrary): Make {
  const { Queue, BackupUtils, hash } = library.utilities;
  const adapter: unknown = library.EmberAdapter.prototype;
  calmAshParser(library.AshParser.prototype as AshStream);
  guardEmberListeners(adapter as EmberListeners, library.Ezsp.prototype as CallbackReader);
  backUpLinkKeys(adapter as EmberKeys);
  const { leave, ...port } = guardAsh(library.UartAsh.prototype as Ash);
  return {
    ...port,
    ...guardEmberSending(adapter as EmberSender, new Queue(ANSWERS_AT_ONCE), leave),
    permit: guardEmberStart(adapter as EmberStart, library.Ezsp.prototype as Versioned),
    storeBackup: storeBackups('ember', adapter as object, BackupUtils),
    begun: () => undefined,
    // sl_zigbee_version_t.
    versionParts: ['major', 'minor', 'patch'],
    addInstallCode: (controller, ieee, code) => addLinkKey(controller, ieee, hash(Buffer.from(code, 'hex'))),
    removeInstallCode: replaceLinkKey,
    addressing: openEmberAddressing,
  };
}
