/** UTIL of SWRA198, and what the firmware that hosts expect has besides: ASSOC_REMOVE and ASSOC_ADD. */
import { bytes, ieee, type Reader, u16, u32 } from '../bytes.ts';
import { STATUS } from '../mt/status.ts';
import { type Core, DEVICE_STATE, type Subsystem } from './core.ts';
import { NV } from './nv-items.ts';

const NO_ADDRESS = 0xfffe;
const ASSOCIATED_DEVICE = 36;
/** CHILD_RFD, CHILD_RFD_RX_IDLE (AssocList.h). */
const CHILD_SLEEPY = 1;
const CHILD_LISTENING = 2;
/** Device types: coordinator, router, end device. */
const DEVICE_TYPES = 7;

export function utilCommands(core: Core): Subsystem {
  const memory = core.memory;
  const accept = () => Buffer.of(STATUS.success);
  const known = () => core.nv().known();
  const relationOf = (device: string) =>
    core.air.byIeee(device)?.nextPoll(core.time.now()) === undefined ? CHILD_LISTENING : CHILD_SLEEPY;
  /**
   * associated_devices_t of AssocList.h as it lies in the memory of a CC2652, with its padding: 36 bytes, by which hosts
   * know that structures are aligned (28 on a CC2531). Short address, index, relation, status, count, age; link: counter,
   * cost, LQI, key sequence, frame counter, failures; end device: configuration, time-out, counter; keep-alive, control.
   */
  function associatedDevice(child: [device: string, nwk: number] | undefined): Buffer {
    if (!child) return bytes(u16(NO_ADDRESS), Buffer.alloc(ASSOCIATED_DEVICE - 2, 0xff));
    const [device, nwk] = child;
    const index = known().findIndex((one) => one.ieee === device);
    const lqi = core.air.byIeee(device)?.lqi ?? 0;
    const head = bytes(u16(nwk), u16(index < 0 ? 0xffff : index), relationOf(device), 0, 0, 0, 0, 0, lqi, 0);
    return bytes(head, Buffer.alloc(ASSOCIATED_DEVICE - head.length));
  }

  return {
    0() {
      const children = [...memory().children.values()];
      const state = memory().network ? DEVICE_STATE.coordinator : DEVICE_STATE.hold;
      const head = [STATUS.success, ieee(core.ieee()), u16(0), DEVICE_TYPES, state] as const;
      return bytes(...head, children.length, ...children.map(u16));
    },
    1() {
      const [channels, panId] = [core.nv().get(NV.channels), core.nv().get(NV.panId)];
      const key = core.nv().get(NV.preconfiguredKey) ?? Buffer.alloc(16);
      const network = [channels ?? u32(0), panId ?? u16(0xffff)] as const;
      return bytes(STATUS.success, ieee(core.ieee()), ...network, 5, key);
    },
    2: (input) => stored(core, NV.panId, input.bytes(2)),
    3: (input) => stored(core, NV.channels, input.bytes(4)),
    4: accept,
    5: (input) => stored(core, NV.preconfiguredKey, input.bytes(16)),
    6: accept,
    9: () => u32(Math.floor((core.time.now() - core.startedAt()) / 1_000)),
    10: accept,
    16: (input) => input.rest(),
    // Of the address manager: where a device was last heard.
    64(input) {
      const device = input.ieee();
      return u16(known().find((one) => one.ieee === device)?.nwk ?? NO_ADDRESS);
    },
    65(input) {
      const nwk = input.u16();
      return ieee(known().find((one) => one.nwk === nwk)?.ieee ?? 'ffffffffffffffff');
    },
    72: () => u16(memory().children.size),
    73: (input) => associatedDevice([...memory().children][input.u8()]),
    74(input) {
      const device = input.ieee();
      const asked = input.u16();
      return associatedDevice([...memory().children].find(([one, nwk]) => one === device || nwk === asked));
    },
    99(input) {
      return Buffer.of(memory().children.delete(input.ieee()) ? STATUS.success : STATUS.failure);
    },
    100(input) {
      memory().children.set(input.ieee(), input.u16());
      input.u8();
      return accept();
    },
  };
}

function stored(core: Core, id: number, value: Buffer): Buffer {
  core.nv().set(id, value);
  return Buffer.of(STATUS.success);
}

/** ZDO_EXT_*: the groups of endpoints, and routes; and link keys. They are in the subsystem ZDO, but of the stack's own tables. */
export function groupCommands(core: Core): Subsystem {
  const groups = (endpoint: number) => core.memory().groups.get(endpoint) ?? new Map<number, Buffer>();
  const named = (input: Reader) => [input.u8(), input.u16()] as const;
  return {
    // ZDO_REMOVE_LINK_KEY (SWRA198): of the trust center, that of an install code among them.
    36: (input) =>
      Buffer.of(core.nv().removeLinkKey(input.ieee()) ? STATUS.success : STATUS.nwkUnknownDevice),
    // ZDO_EXT_ROUTE_DISC, _ROUTE_CHECK.
    69: () => Buffer.of(core.memory().network ? STATUS.success : STATUS.nwkInvalidRequest),
    70: () => Buffer.of(STATUS.success),
    71(input) {
      const [endpoint, group] = named(input);
      return Buffer.of(groups(endpoint).delete(group) ? STATUS.success : STATUS.failure);
    },
    72(input) {
      core.memory().groups.delete(input.u8());
      return Buffer.of(STATUS.success);
    },
    73(input) {
      const all = [...groups(input.u8()).keys()];
      return bytes(all.length, ...all.map(u16));
    },
    74(input) {
      const [endpoint, group] = named(input);
      const name = groups(endpoint).get(group);
      if (!name) return bytes(STATUS.failure, u16(group), 0);
      return bytes(STATUS.success, u16(group), name.length, name);
    },
    75(input) {
      const [endpoint, group] = named(input);
      const name = input.bytes(input.u8());
      core.memory().groups.set(endpoint, groups(endpoint).set(group, name));
      return Buffer.of(STATUS.success);
    },
    76: () => Buffer.of([...core.memory().groups.values()].reduce((sum, one) => sum + one.size, 0)),
  };
}
