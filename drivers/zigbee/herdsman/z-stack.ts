/** Coordinators with Z-Stack 3 of Texas Instruments. */
import type { Clock } from '../../contract/driver.ts';
import { openAddressing } from './addressing.ts';
import { type Answers, guardAnswers } from './answers.ts';
import { storeBackups } from './backup-store.ts';
import { addLinkKey, removeLinkKey } from './link-keys.ts';
import type { Class, Make, Utilities } from './make.ts';
import { ANSWERS_AT_ONCE, type Sender, separateAnswers } from './own-answers.ts';
import { calmParser, type MtParser } from './parser.ts';
import { guardPort, type Port } from './port.ts';
import { guardStrategy } from './strategy.ts';

/** Of an install code of 16 bytes with its CRC, in hex. */
const FULL_CODE_DIGITS = 36;

/** Of the library; one for each process, as everything of it. */
export interface ZStackLibrary {
  AdapterBackup: Class;
  ZnpAdapterManager: Class;
  ZStackAdapter: Class;
  Znp: Class;
  Parser: Class;
  Frame: { fromBuffer: Parameters<typeof calmParser>[1] };
  utilities: Utilities;
}

export function zStackMake(library: ZStackLibrary): Make {
  const { Queue, BackupUtils, hash } = library.utilities;
  const adapter: unknown = library.ZStackAdapter.prototype;
  let clock: Clock;
  calmParser(library.Parser.prototype as MtParser, library.Frame.fromBuffer, () => clock);
  const permit = guardStrategy(library.ZnpAdapterManager.prototype);
  separateAnswers(adapter as Sender, new Queue(ANSWERS_AT_ONCE));
  return {
    ...guardPort(library.Znp.prototype as Port),
    permit(options) {
      ({ clock } = options);
      permit(options);
    },
    storeBackup: storeBackups('zstack', library.AdapterBackup.prototype, BackupUtils),
    waitAs: guardAnswers(adapter as Answers),
    // SYS_VERSION (MT API, 3.8.1.3).
    versionParts: ['majorrel', 'minorrel', 'maintrel'],
    addInstallCode: (controller, ieee, code) =>
      code.length === FULL_CODE_DIGITS
        ? (controller as InstallCodeTaker).addInstallCode(`${ieee}|${code}`)
        : addLinkKey(controller, ieee, hash(Buffer.from(code, 'hex'))),
    removeInstallCode: removeLinkKey,
    addressing: openAddressing,
  };
}

/** Of the library's Controller. */
interface InstallCodeTaker {
  addInstallCode(code: string): Promise<void>;
}
