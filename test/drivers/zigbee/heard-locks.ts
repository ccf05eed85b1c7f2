/** The locks of a gateway, on a radio of which the test says what it hears. */
import type { StateReport } from '../../../drivers/contract/driver.ts';
import type { LockEvent } from '../../../drivers/contract/zgate.ts';
import type { Earlier } from '../../../drivers/zigbee/lock-record.ts';
import { openLocks } from '../../../drivers/zigbee/locks.ts';
import { LOCK_CLUSTER, type Radio } from '../../../drivers/zigbee/radio.ts';
import { manualClock } from '../../manual-clock.ts';

export const LOCK = '00158d0001000001';
const DOOR_LOCK = 0x0101;
const OWN = 0xfc11;

export function openHeardLocks({ heardOn = {}, missed = [], restore = false }: Partial<Earlier> = {}) {
  const clock = manualClock();
  const reports: StateReport[] = [];
  const events: LockEvent[] = [];
  const unreported: string[] = [];
  let knows = true;
  let channel = 15;
  const device = {
    ieee: LOCK,
    interviewed: true,
    endpoints: [{ id: 1, inputs: [DOOR_LOCK, OWN], outputs: [] }],
  };
  const radio = {
    get channel() {
      return channel;
    },
    devices: () => [device],
    device: () => device,
    addCluster() {},
    meta: () => ({}),
    sharing: () => [],
    attribute(_: string, __: number, cluster: string) {
      if (cluster === LOCK_CLUSTER && !knows) throw new Error('UNSUPPORTED_CLUSTER');
      return undefined;
    },
  };
  const locks = openLocks({
    radio: () => radio as unknown as Radio,
    configurer: { configure: async () => [], read: async () => true },
    context: {
      clock,
      log: { debug() {}, info() {}, warn() {}, error() {} },
      report: (one) => void reports.push(one),
    },
    outbox: { emit: (_, data) => void events.push(data as LockEvent), emitDurably: async () => undefined },
    usesOwnCluster: true,
    earlier: { lastSeen: { [LOCK]: clock.now() }, heardOn, missed, restore },
    unreported: (ieee) => void unreported.push(ieee),
    joinFailed() {},
    changed() {},
  });
  return {
    clock,
    locks,
    unreported,
    reports,
    events,
    move(to: number) {
      channel = to;
      locks.begin();
    },
    reported: () => {
      locks.review();
      return reports.at(-1)?.state;
    },
    knows(whether: boolean) {
      knows = whether;
    },
  };
}
