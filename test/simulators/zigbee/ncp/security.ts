/** Security of EZSP (UG100, rev. 4.0): the state before a network is formed, keys in and out, tokens. */
import { bytes, ieee as ieeeBytes, ieeeText, type Reader, u16, u32 } from '../bytes.ts';
import { CONFIG } from './configuration.ts';
import type { Commands, NcpCore } from './core.ts';
import { SL, status, WIDE_STATUS } from './status.ts';

/** sl_zb_sec_man_key_type_t. */
const KEY = { network: 1, trustCenterLink: 2, applicationLink: 4 } as const;
/** NVM3KEY_STACK_RESTORED_EUI64 of EmberZNet: in use from the next reset on. */
const RESTORED_IEEE = 0xe12a;
const NO_KEY = Buffer.alloc(16);
const HAS_COUNTERS = 0x0e;

export function securityCommands(core: NcpCore): Commands {
  const { memory, version } = core;
  const say = (code: number) => status(version, code);
  const size = () => memory().configuration.get(CONFIG.keyTableSize) ?? 0;
  return {
    // setInitialSecurityState
    104(input) {
      const bitmask = input.u16();
      const [trustCenterKey, networkKey] = [Buffer.from(input.bytes(16)), Buffer.from(input.bytes(16))];
      const keySequence = input.u8();
      input.ieee();
      input.end();
      if (memory().network) return say(SL.invalidState);
      memory().initialSecurity = { bitmask, trustCenterKey, networkKey, keySequence };
      return say(SL.ok);
    },
    // clearTransientLinkKeys
    107() {
      memory().transientKeys.clear();
      return Buffer.alloc(0);
    },
    // eraseKeyTableEntry, clearKeyTable
    118(input) {
      const index = input.u8();
      core.tokens().linkKeys.delete(index);
      return say(index < size() ? SL.ok : SL.invalidIndex);
    },
    177() {
      core.tokens().linkKeys.clear();
      return say(SL.ok);
    },
    // getTokenData, setTokenData
    258(input) {
      if (input.u32() !== RESTORED_IEEE) return bytes(say(SL.notFound), u32(0));
      return bytes(say(SL.ok), u32(8), ieeeBytes(core.tokens().restoredIeee()));
    },
    259(input) {
      const token = input.u32();
      input.u32();
      const data = input.bytes(input.u32());
      if (token !== RESTORED_IEEE || data.length !== 8) return say(SL.notFound);
      core.tokens().restoreIeee(ieeeText(data));
      return say(SL.ok);
    },
    // importLinkKey
    270(input) {
      const [index, device] = [input.u8(), input.ieee()];
      if (index >= size()) return u32(SL.invalidIndex);
      core.tokens().linkKeys.set(index, { ieee: device, key: Buffer.from(input.bytes(16)) });
      return u32(SL.ok);
    },
    271: (input) => exportLinkKey(core, input.u8()),
    // importTransientKey
    273(input) {
      const device = input.ieee();
      memory().transientKeys.set(device, Buffer.from(input.bytes(16)));
      return u32(SL.ok);
    },
    276: (input) => exportKey(core, input),
    // getNetworkKeyInfo
    278() {
      const { network, frameCounter } = memory();
      if (!network) return bytes(u32(SL.notJoined), Buffer.alloc(8));
      return bytes(u32(SL.ok), 1, 0, network.keySequence, 0, u32(frameCounter));
    },
  };
}

function exportKey(core: NcpCore, input: Reader): Buffer {
  const context = Buffer.from(input.rest());
  const [type = 0] = context;
  const network = core.tokens().network();
  const key =
    type === KEY.network ? network?.key : type === KEY.trustCenterLink ? network?.trustCenterKey : undefined;
  const code = u32(key ? SL.ok : SL.notFound);
  return core.version >= WIDE_STATUS ? bytes(code, key ?? NO_KEY, context) : bytes(key ?? NO_KEY, code);
}

function exportLinkKey(core: NcpCore, index: number): Buffer {
  const found = core.tokens().linkKeys.get(index);
  const code = u32(found ? SL.ok : SL.notFound);
  const device = found ? ieeeBytes(found.ieee) : Buffer.alloc(8);
  const metadata = bytes(u16(HAS_COUNTERS), u32(0), u32(0), u16(0));
  if (core.version < WIDE_STATUS) return bytes(device, found?.key ?? NO_KEY, metadata, code);
  const context = bytes(KEY.applicationLink, index, u16(0), device, 0, 0, u32(0));
  return bytes(code, context, found?.key ?? NO_KEY, metadata);
}
