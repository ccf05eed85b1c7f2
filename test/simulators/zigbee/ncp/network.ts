/** Networking of EZSP (UG100, rev. 4.0): forming, starting, leaving, opening, scanning. */
import { bytes, type Reader, u16, u32 } from '../bytes.ts';
import type { Network } from '../stick/nib.ts';
import { POLICY, VALUE } from './configuration.ts';
import { CALLBACK, type Commands, type NcpCore } from './core.ts';
import { SL, status, WIDE_STATUS } from './status.ts';
import type { KeptNetwork } from './tokens.ts';

const FORM_MS = 100;
const START_MS = 20;
const LEAVE_MS = 20;
/** Of one channel in an energy scan: 2^duration + 1 periods of 15.36 ms, which here take less. */
const SCAN_CHANNEL_MS = 2;
const COORDINATOR = 1;
/** emberChildIndex: none has this network address. */
const NO_CHILD = 0xff;
const JOINED = 2;
const ALWAYS_OPEN = 255;
/** EmberInitialSecurityBitmask. */
const NO_FRAME_COUNTER_RESET = 0x1000;
const ENERGY_SCAN = 0;
/** dBm, somewhat busier in the middle of the band. */
const energyOf = (channel: number) => -90 + 6 * (channel % 5);

export function stackStatus(core: NcpCore, code: number): void {
  core.callback(CALLBACK.stackStatus, status(core.version, code));
}

export function networkCommands(core: NcpCore): Commands {
  const { memory, version } = core;
  const say = (code: number) => status(version, code);
  return {
    // networkInit
    23(input) {
      input.u16();
      const known = core.tokens().network();
      if (!known) return say(SL.notJoined);
      bringUp(core, known, START_MS);
      return say(SL.ok);
    },
    // networkState
    24: () => Buffer.of(memory().network ? JOINED : 0),
    // startScan
    26: (input) => scan(core, input),
    // formNetwork
    30: (input) => form(core, input),
    // leaveNetwork
    32() {
      if (!memory().network) return say(SL.invalidState);
      core.later(LEAVE_MS, () => {
        memory().network = undefined;
        core.tokens().forget();
        stackStatus(core, SL.networkDown);
      });
      return say(SL.ok);
    },
    // permitJoining
    34(input) {
      if (!memory().network) return say(SL.invalidState);
      open(core, input.u8());
      return say(SL.ok);
    },
    // getEui64, getNodeId
    38: () => Buffer.from(core.ieee(), 'hex').reverse(),
    39: () => u16(memory().network ? 0 : 0xfffe),
    // getNetworkParameters
    40() {
      const { network } = memory();
      const head = bytes(say(network ? SL.ok : SL.notJoined), network ? COORDINATOR : 0);
      return bytes(head, network ? parametersOf(network) : Buffer.alloc(20));
    },
    // setConcentrator, setSourceRouteDiscoveryMode
    16: () => say(SL.ok),
    90: () => u32(60_000),
    // childIndex
    263: (input) => Buffer.of([...memory().children.values()].indexOf(input.u16()) & NO_CHILD),
  };
}

/** `seconds` as in Mgmt_Permit_Joining_req. */
function open(core: NcpCore, seconds: number): void {
  const memory = core.memory();
  const wasOpen = core.time.now() < memory.permitUntil;
  const until = seconds === ALWAYS_OPEN ? Number.POSITIVE_INFINITY : core.time.now() + seconds * 1_000;
  memory.permitUntil = until;
  if (seconds > 0) {
    stackStatus(core, SL.networkOpened);
    if (seconds !== ALWAYS_OPEN)
      core.later(seconds * 1_000, () => memory.permitUntil === until && stackStatus(core, SL.networkClosed));
  } else if (wasOpen) stackStatus(core, SL.networkClosed);
}

export const allowsJoins = ({ memory }: NcpCore) =>
  ((memory().policies.get(POLICY.trustCenter) ?? 0) & 1) !== 0;

function bringUp(core: NcpCore, network: KeptNetwork, waitMs: number): void {
  core.later(waitMs, () => {
    const memory = core.memory();
    memory.network = network;
    memory.frameCounter = core.tokens().frameCounter();
    for (const [ieee, nwk] of core.tokens().children()) memory.children.set(ieee, nwk);
    core.started();
    stackStatus(core, SL.networkUp);
  });
}

function form(core: NcpCore, input: Reader): Buffer {
  const extendedPanId = Buffer.from(input.bytes(8));
  const panId = input.u16();
  input.u8();
  const channel = input.u8();
  input.u8();
  const managerAddress = input.u16();
  const [updateId, channelMask] = [input.u8(), input.u32()];
  input.end();
  const memory = core.memory();
  const security = memory.initialSecurity;
  if (memory.network || !security) return status(core.version, SL.invalidState);
  if (channel < 11 || channel > 26) return status(core.version, SL.invalidParameter);
  const { networkKey: key, keySequence, trustCenterKey } = security;
  const network = { panId, extendedPanId, channel, updateId, channelMask, managerAddress, key, keySequence };
  if ((security.bitmask & NO_FRAME_COUNTER_RESET) === 0 || !memory.values.has(VALUE.nwkFrameCounter))
    core.tokens().setFrameCounter(0);
  core.tokens().keep({ ...network, trustCenterKey });
  bringUp(core, { ...network, trustCenterKey }, FORM_MS);
  return status(core.version, SL.ok);
}

function scan(core: NcpCore, input: Reader): Buffer {
  const [type, mask] = [input.u8(), input.u32()];
  input.u8();
  if (type !== ENERGY_SCAN) return u32(SL.invalidParameter);
  const channels = Array.from({ length: 16 }, (_, index) => index + 11).filter((one) => mask & (1 << one));
  core.later(SCAN_CHANNEL_MS * channels.length, () => {
    for (const channel of channels)
      core.callback(CALLBACK.energyScanResult, bytes(channel, energyOf(channel) & 0xff));
    const done = core.version >= WIDE_STATUS ? u32(SL.ok) : bytes(0);
    core.callback(CALLBACK.scanComplete, bytes(channels.at(-1) ?? 0, done));
  });
  return u32(SL.ok);
}

/** EmberNetworkParameters: what is used of it is at its end. */
function parametersOf({
  extendedPanId,
  panId,
  channel,
  managerAddress,
  updateId,
  channelMask,
}: Network): Buffer {
  return bytes(extendedPanId, u16(panId), 5, channel, 0, u16(managerAddress), updateId, u32(channelMask));
}
