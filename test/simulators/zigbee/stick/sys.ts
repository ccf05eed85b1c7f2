/** SYS of SWRA198: identity, memory, time. */
import { bytes, ieee, type Reader, u16, u32 } from '../bytes.ts';
import { STATUS } from '../mt/status.ts';
import type { Core, Stack, Subsystem } from './core.ts';
import { NV } from './nv-items.ts';

/** MT_CAP_SAPI 0x20 in place of _GP and _APP_CNF. */
const OLD_CAPABILITIES = 0x0079;
/**
 * MT_CAP_SYS 0x01, _AF 0x08, _ZDO 0x10, _UTIL 0x40, _GP 0x200 and _APP_CNF 0x400 of MT.h: what a coordinator image of
 * Z-Stack 3.x.0 answers. A host takes one without APP_CNF for Z-Stack 1.2.
 */
const CAPABILITIES = 0x0659;
/** Transport revision 2; product 1 (Z-Stack 3.x.0), release 2.7.1, and product 0 (Z-Stack 1.2), release 2.6.3. */
const VERSIONS: Record<Stack, number[]> = { '3.x.0': [2, 1, 2, 7, 1], '1.2': [2, 0, 2, 6, 3] };
/** Of a value in one frame. */
const VALUE_MAX = 246;
const RESET_IND = 0x80;
const TIMER_EXPIRED = 0x81;
/** Seconds from the epoch of Zigbee time (2000-01-01) are not used by SYS_SET_TIME: it counts from its own zero. */
const UNIT_SECONDS = 1_000;

export function resetIndication(reason: number, stack: Stack): { id: number; data: Buffer } {
  return { id: RESET_IND, data: bytes(reason, ...VERSIONS[stack]) };
}

export function sysCommands(core: Core): Subsystem {
  const seconds = () =>
    Math.floor((core.time.now() - core.startedAt()) / UNIT_SECONDS) + core.memory().utcOffset;
  return {
    1: () => u16(core.stack() === '1.2' ? OLD_CAPABILITIES : CAPABILITIES),
    2: () => bytes(...VERSIONS[core.stack()], u32(core.revision)),
    3(input) {
      core.nv().set(NV.extendedAddress, input.bytes(8));
      return Buffer.of(STATUS.success);
    },
    4: () => ieee(core.ieee()),
    // SYS_RANDOM, SYS_ADC_READ and SYS_GPIO have nothing behind them here.
    12: () => u16(Math.floor(Math.random() * 0x1_0000)),
    13: () => u16(0),
    14: () => Buffer.of(0),
    // SYS_STACK_TUNE and SYS_SET_TX_POWER answer the power that was set.
    15(input) {
      input.u8();
      return Buffer.of(input.u8());
    },
    20: (input) => Buffer.of(input.u8()),
    10(input) {
      const id = input.u8();
      const milliseconds = input.u16();
      if (id > 3) return Buffer.of(STATUS.invalidParameter);
      core.memory().timers.get(id)?.();
      const cancel = core.later(milliseconds, () => core.areq(1, TIMER_EXPIRED, Buffer.of(id)));
      core.memory().timers.set(id, cancel);
      return Buffer.of(STATUS.success);
    },
    11(input) {
      core.memory().timers.get(input.u8())?.();
      return Buffer.of(STATUS.success);
    },
    16(input) {
      const utc = input.u32();
      core.memory().utcOffset += utc - seconds();
      return Buffer.of(STATUS.success);
    },
    17() {
      const now = new Date(Date.UTC(2000, 0, 1) + seconds() * UNIT_SECONDS);
      const time = [now.getUTCHours(), now.getUTCMinutes(), now.getUTCSeconds()];
      return bytes(
        u32(seconds()),
        ...time,
        now.getUTCMonth() + 1,
        now.getUTCDate(),
        u16(now.getUTCFullYear()),
      );
    },
    ...nvCommands(core),
    ...exNvCommands(core),
  };
}

/** SYS_OSAL_NV_*. */
function nvCommands(core: Core): Subsystem {
  const nv = core.nv;
  const read = (id: number, offset: number) => {
    const value = nv().get(id);
    if (!value || offset > value.length) return bytes(STATUS.nvOperFailed, 0);
    const part = value.subarray(offset, offset + VALUE_MAX);
    return bytes(STATUS.success, part.length, part);
  };
  const write = (id: number, offset: number, value: Buffer) => {
    const before = nv().get(id);
    if (!before) return Buffer.of(STATUS.nvItemUninit);
    const after = overwritten(before, offset, value);
    if (!after) return Buffer.of(STATUS.nvOperFailed);
    nv().set(id, after);
    return Buffer.of(STATUS.success);
  };
  return {
    7(input) {
      const id = input.u16();
      const length = input.u16();
      const value = input.bytes(input.u8());
      if (nv().get(id)) return Buffer.of(STATUS.success);
      if (value.length > length) return Buffer.of(STATUS.nvOperFailed);
      nv().set(id, bytes(value, Buffer.alloc(length - value.length, 0xff)));
      return Buffer.of(STATUS.nvItemUninit);
    },
    8: (input) => read(input.u16(), input.u8()),
    9: (input) => write(input.u16(), input.u8(), input.bytes(input.u8())),
    28: (input) => read(input.u16(), input.u16()),
    29: (input) => write(input.u16(), input.u16(), input.bytes(input.u16())),
    18(input) {
      const id = input.u16();
      const length = input.u16();
      const value = nv().get(id);
      if (!value) return Buffer.of(STATUS.nvItemUninit);
      if (value.length !== length) return Buffer.of(STATUS.nvBadItemLength);
      nv().delete(id);
      return Buffer.of(STATUS.success);
    },
    19: (input) => u16(nv().get(input.u16())?.length ?? 0),
  };
}

/** SYS_NV_*: the memory of SimpleLink, by system, item and row. */
function exNvCommands(core: Core): Subsystem {
  const nv = core.nv;
  const named = (input: Reader) => [input.u8(), input.u16(), input.u16()] as const;
  return {
    48(input) {
      const name = named(input);
      const length = input.u32();
      if (nv().getEx(...name)) return Buffer.of(STATUS.nvOperFailed);
      nv().setEx(...name, Buffer.alloc(Math.min(length, 0xffff), 0xff));
      return Buffer.of(STATUS.success);
    },
    49: (input) => Buffer.of(nv().deleteEx(...named(input)) ? STATUS.success : STATUS.nvItemUninit),
    50: (input) => u32(nv().getEx(...named(input))?.length ?? 0),
    51(input) {
      const value = nv().getEx(...named(input));
      const offset = input.u16();
      const length = input.u8();
      if (!value || offset + length > value.length) return bytes(STATUS.nvOperFailed, 0);
      return bytes(STATUS.success, length, value.subarray(offset, offset + length));
    },
    52(input) {
      const name = named(input);
      const offset = input.u16();
      const before = nv().getEx(...name);
      const after = before && overwritten(before, offset, input.bytes(input.u8()));
      if (!after) return Buffer.of(STATUS.nvOperFailed);
      nv().setEx(...name, after);
      return Buffer.of(STATUS.success);
    },
    53(input) {
      nv().setEx(...named(input), input.bytes(input.u8()));
      return Buffer.of(STATUS.success);
    },
    54: () => Buffer.of(STATUS.success),
  };
}

/** An item never grows. */
function overwritten(before: Buffer, offset: number, value: Buffer): Buffer | undefined {
  if (offset + value.length > before.length) return undefined;
  const after = Buffer.from(before);
  after.set(value, offset);
  return after;
}
