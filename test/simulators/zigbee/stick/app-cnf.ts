/** APP_CNF of SWRA198: how a trust center lets joiners in. */
import { STATUS } from '../mt/status.ts';
import type { Core, Subsystem } from './core.ts';
import { setFrameCounter } from './frame-counter.ts';
import { installKey } from './security.ts';

/** Of BDB_ADD_INSTALLCODE: the code with its CRC, or the key made of it. */
const FORMAT = { code: 1, key: 2 };
const CODE_LENGTH = 18;
const KEY_LENGTH = 16;

export function appCnfCommands(core: Core): Subsystem {
  const accept = () => Buffer.of(STATUS.success);
  return {
    // Time-outs and keys of end devices, and what a joiner must do in time: nothing here depends on them.
    1: accept,
    2: accept,
    3: accept,
    7: accept,
    // APP_CNF_BDB_SET_TC_REQUIRE_KEY_EXCHANGE.
    9(input) {
      core.memory().requiresKeyExchange = input.u8() !== 0;
      return accept();
    },
    // APP_CNF_SET_NWK_FRAME_COUNTER.
    255(input) {
      setFrameCounter(core, core.memory().network, input.u32());
      return accept();
    },
    4(input) {
      const format = input.u8();
      const device = input.ieee();
      const code = input.rest();
      const key =
        format === FORMAT.code && code.length === CODE_LENGTH
          ? installKey(code)
          : format === FORMAT.key && code.length === KEY_LENGTH
            ? code
            : undefined;
      if (!key) return Buffer.of(STATUS.invalidParameter);
      core.nv().setInstallKey(device, key);
      return accept();
    },
    6(input) {
      core.memory().isInstallCodeNeeded = input.u8() !== 0;
      return accept();
    },
  };
}
