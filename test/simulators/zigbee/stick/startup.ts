/** Forming a network, and starting the one that is in the memory. */
import { randomBytes } from 'node:crypto';
import { bytes, ieee, u16 } from '../bytes.ts';
import { SUBSYSTEM } from '../mt/frame.ts';
import { STATUS } from '../mt/status.ts';
import { type Core, DEVICE_STATE, type Subsystem } from './core.ts';
import { startFrameCounter } from './frame-counter.ts';
import type { Network } from './nib.ts';
import { NV } from './nv-items.ts';

const STATE_CHANGE = 0xc0;
const COMMISSIONING_NOTIFICATION = 0x80;
/** An energy scan and a beacon request come first. */
const FORM_MS = 150;
const RESTORE_MS = 20;
/** bdbCommissioningMode_t: bits in the request and in what remains. */
const MODE_FORMATION = 0x04;
/** bdbCommissioningMode_t of a notification: a number. */
const NOTIFIED = { initialisation: 0, formation: 2 };
/** bdbCommissioningStatus_t. */
const BDB = { success: 0, inProgress: 1, noNetwork: 2, formationFailure: 8, networkRestored: 13 };
/** ZDO_STARTUP_FROM_APP: restored, new, not started. */
const STARTUP = { restored: 0, formed: 1, notStarted: 2 };

export function startupCommands(core: Core): { zdo: Subsystem; appCnf: Subsystem } {
  const state = (one: number) => core.areq(SUBSYSTEM.zdo, STATE_CHANGE, Buffer.of(one));
  const notify = (status: number, mode: number, remaining: number) =>
    core.areq(SUBSYSTEM.appCnf, COMMISSIONING_NOTIFICATION, Buffer.of(status, mode, remaining));

  function start(network: Network, waitMs: number, done: () => void): void {
    state(DEVICE_STATE.coordinatorStarting);
    core.later(waitMs, () => {
      const memory = core.memory();
      memory.network = network;
      startFrameCounter(core, network);
      core.nv().keep(network);
      for (const { ieee: device, nwk, isChild } of core.nv().known())
        if (isChild) memory.children.set(device, nwk);
      core.started();
      state(DEVICE_STATE.coordinator);
      done();
    });
  }
  /**
   * Starts the network that is known, whatever it is asked for: who is commissioned forms no other one (the exchange in
   * zigpy-znp 0.12, tests/conftest.py).
   */
  function commission(wanted: number): void {
    const known = core.nv().network();
    const refuse = () => notify(BDB.formationFailure, NOTIFIED.formation, 0);
    if (core.memory().network) {
      if (wanted !== 0) core.later(0, refuse);
    } else if (known)
      start(known, RESTORE_MS, () => {
        notify(BDB.networkRestored, NOTIFIED.initialisation, wanted);
        if (wanted !== 0) refuse();
      });
    else if (wanted !== 0) {
      core.later(0, () => notify(BDB.inProgress, NOTIFIED.formation, wanted));
      start(formed(core), FORM_MS, () => notify(BDB.success, NOTIFIED.formation, 0));
    } else core.later(0, () => notify(BDB.noNetwork, NOTIFIED.initialisation, 0));
  }
  return {
    zdo: {
      64() {
        if (core.memory().network) return Buffer.of(STARTUP.restored);
        const known = core.nv().network();
        start(known ?? formed(core), known ? RESTORE_MS : FORM_MS, () => undefined);
        return Buffer.of(known ? STARTUP.restored : STARTUP.formed);
      },
    },
    appCnf: {
      5(input) {
        commission(input.u8() & MODE_FORMATION);
        return Buffer.of(STATUS.success);
      },
      8(input) {
        const isPrimary = input.u8() !== 0;
        const mask = input.u32();
        if (isPrimary) core.memory().channelMask = mask;
        return Buffer.of(STATUS.success);
      },
    },
  };
}

/** What the configuration in the memory asks for, with what it leaves open chosen. */
function formed(core: Core): Network {
  const nv = core.nv();
  const wanted = core.memory().channelMask ?? nv.get(NV.channels)?.readUInt32LE() ?? 0;
  const mask = (wanted & 0x07ff_f800) >>> 0;
  const channel = [...Array(27).keys()].find((one) => mask & (1 << one)) ?? 11;
  const panId = nv.get(NV.panId)?.readUInt16LE() ?? 0xffff;
  const extended = [nv.get(NV.apsUseExtendedPanId), nv.get(NV.extendedPanId)].find(
    (one) => one?.length === 8 && one.some((byte) => byte !== 0),
  );
  const key = nv.get(NV.preconfiguredKey);
  return {
    panId: panId === 0xffff ? (randomBytes(2).readUInt16LE() % 0xfffe) + 1 : panId,
    extendedPanId: Buffer.from(extended ?? ieee(core.ieee())),
    channel,
    channelMask: mask,
    updateId: 0,
    keySequence: 0,
    managerAddress: 0,
    key: key?.length === 16 && key.some((byte) => byte !== 0) ? Buffer.from(key) : randomBytes(16),
  };
}

/** ZDO_EXT_NWK_INFO. */
export function networkInfo(core: Core): Buffer {
  const { network } = core.memory();
  const state = network ? DEVICE_STATE.coordinator : DEVICE_STATE.hold;
  const extended = network?.extendedPanId ?? Buffer.alloc(8);
  const addresses = [u16(network?.panId ?? 0xffff), u16(0)];
  return bytes(u16(0), state, ...addresses, extended, Buffer.alloc(8), network?.channel ?? 0);
}
