/** A simulated router: it relays, and says what it is. */
import type { Air } from './air/frames.ts';
import { type OpenNode, openNode, type Routers } from './air/node.ts';
import { basicCluster, identifyCluster } from './clusters/general.ts';
import type { RouterPlan } from './plan.ts';
import type { Stick } from './stick/stick.ts';
import type { Time } from './time.ts';
import { openDevice } from './zcl/device.ts';

/** Range extender. */
const DEVICE_ID = 0x0008;
const MAINS = 1;
const MANUFACTURER_CODE = 0x1234;

export function openRouter(
  plan: RouterPlan,
  parts: { time: Time; air: () => Air; stick: Stick; random: () => number; routers: Routers },
): OpenNode {
  const device = openDevice({
    time: parts.time,
    deviceId: DEVICE_ID,
    endpoint: 1,
    unlisted: [],
    asksDefaultResponse: false,
    node: () => node,
    faults: {
      slowMs: () => 0,
      losesEvent: () => false,
      lateEventsMs: () => 0,
      defaultResponse: () => undefined,
      answersByDefault: () => false,
      invalidValues: () => false,
      oversizedStrings: () => undefined,
      foreignClusters: () => [],
      bogusEndpoints: () => [],
    },
  });
  const firmware = { version: 0x0100_0000, build: '1.0.0' };
  device.add(
    basicCluster({ manufacturer: 'Gatehouse', model: 'GH-Router' }, firmware, MAINS),
    identifyCluster(),
  );
  const node = openNode({
    ...parts,
    ieee: plan.ieee,
    nwk: plan.nwk,
    lqi: plan.lqi,
    parent: undefined,
    pollMs: undefined,
    awakeMs: 0,
    isRouter: true,
    manufacturerCode: MANUFACTURER_CODE,
    followsChannel: true,
    rejoinMs: undefined,
    installKey: undefined,
    exchangesKey: true,
    fragments: () => false,
    isOnline: () => true,
    losesResponse: () => false,
    misses: () => false,
    confirmFault: () => undefined,
    duplicates: () => false,
    lagMs: () => 0,
    replaysAfter: () => undefined,
    holdMs: plan.holdMs,
    bindingsMax: 32,
    application: device.application,
  });
  return node;
}
