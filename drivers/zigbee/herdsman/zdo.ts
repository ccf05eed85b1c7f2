/**
 * Tables of a device, and its leaving, by ZDO (Zigbee specification R22, 2.4.3.3), a page at a time: the library's own way asks on for as
 * long as the device says that there is more.
 */
import { DriverError } from '../../contract/driver.ts';
import type { Radio } from '../radio.ts';
import { field, hex, integer } from '../values.ts';
import { ieeeOf } from './device-of.ts';

export const ZDO_PROFILE = 0;
const MGMT_LQI = 0x00_31;
const MGMT_RTG = 0x00_32;
const MGMT_LEAVE = 0x00_34;
const MGMT_NWK_UPDATE = 0x00_38;
/** 2.4.3.3.9: so often (2 ^ n + 1) × 15.36 ms on each channel, in which the coordinator hears nothing of its network. */
const SCAN_DURATION = 2;
const SCAN_COUNT = 1;
/** Neither with its children nor to rejoin (Zigbee specification R22, table 2-119). */
const LEAVE_FOR_GOOD = 0;
const STATUS_SUCCESS = 0;
const ROUTE_ACTIVE = 'ACTIVE';
/** Above it: a device that was a child once. */
const RELATIONSHIP_NONE = 3;

/** Of the library's Controller. */
export interface ZdoSender {
  sendRaw(request: {
    profileId: number;
    ieeeAddress: string;
    networkAddress: number;
    clusterKey: number;
    zdoParams: unknown[];
  }): Promise<unknown>;
}

/** ZDP statuses (Zigbee specification R22, table 2-135) with which a device refuses a binding. */
const BIND_REFUSALS = new Map([
  [0x84, 'NOT_SUPPORTED'],
  [0x8c, 'TABLE_FULL'],
  [0x8d, 'NOT_AUTHORIZED'],
]);

/** Of Bind_req. Rejects with REFUSED when the device answered no; the library's own words name every byte of it. */
export async function bound(binding: Promise<void>): Promise<void> {
  try {
    await binding;
  } catch (error) {
    const status = integer(field(error, 'code'), 0, 0xff);
    if (status === undefined) throw error;
    const name = BIND_REFUSALS.get(status);
    const code = hex(status, 2);
    throw new DriverError(
      'REFUSED',
      `the lock refused it: ${name === undefined ? `status ${code} of ZDP` : `${name} (${code})`}`,
      { cause: error },
    );
  }
}

export function requestZdo(
  sender: ZdoSender,
  find: (ieee: string) => { ieeeAddr: string; networkAddress: number },
): Pick<Radio, 'neighbours' | 'routes' | 'leave' | 'energies'> {
  const page = (ieee: string, clusterKey: number, from: number) => ask(ieee, clusterKey, [from]);
  async function ask(ieee: string, clusterKey: number, zdoParams: unknown[]): Promise<unknown> {
    const { ieeeAddr: ieeeAddress, networkAddress } = find(ieee);
    const request = { profileId: ZDO_PROFILE, ieeeAddress, networkAddress, clusterKey, zdoParams };
    const response = await sender.sendRaw(request);
    const [status, body] = Array.isArray(response) ? response : [];
    if (status !== STATUS_SUCCESS)
      throw new Error(`device ${ieee} refused (status ${codeOf(status)} of ZDP)`);
    return body;
  }
  const listOf = (body: unknown): unknown[] => {
    const list = field(body, 'entryList');
    return Array.isArray(list) ? list : [];
  };
  return {
    async leave(ieee) {
      await ask(ieee, MGMT_LEAVE, [find(ieee).ieeeAddr, LEAVE_FOR_GOOD]);
    },
    async neighbours(ieee, from) {
      const body = await page(ieee, MGMT_LQI, from);
      const list = listOf(body);
      const neighbours = list.flatMap((entry) => {
        const address = field(entry, 'eui64');
        const lqi = integer(field(entry, 'lqi'), 0, 255);
        const networkAddress = integer(field(entry, 'nwkAddress'), 0, 0xff_ff);
        if (typeof address !== 'string' || lqi === undefined || networkAddress === undefined) return [];
        if (Number(field(entry, 'relationship')) > RELATIONSHIP_NONE) return [];
        return [{ ieee: ieeeOf(address), networkAddress, lqi }];
      });
      const total = integer(field(body, 'neighborTableEntries'), 0, 255) ?? 0;
      return { total, count: list.length, neighbours };
    },
    async energies(ieee, channels) {
      const body = await ask(ieee, MGMT_NWK_UPDATE, [
        channels,
        SCAN_DURATION,
        SCAN_COUNT,
        undefined,
        undefined,
      ]);
      const values = listOf(body);
      const mask = integer(field(body, 'scannedChannels'), 0, 0xff_ff_ff_ff) ?? 0;
      // One value for each bit of the mask, the lowest channel first (2.4.4.3.9).
      const scanned = channels.toSorted((a, b) => a - b).filter((channel) => (mask >>> channel) & 1);
      return scanned.flatMap((channel, index) => {
        const energy = integer(values[index], 0, 0xff);
        return energy === undefined ? [] : [{ channel, energy }];
      });
    },
    async routes(ieee, from) {
      const body = await page(ieee, MGMT_RTG, from);
      const list = listOf(body);
      const nextHops = list
        .filter((entry) => field(entry, 'status') === ROUTE_ACTIVE)
        .flatMap((entry) => integer(field(entry, 'nextHopAddress'), 0, 0xff_ff) ?? []);
      const total = integer(field(body, 'routingTableEntries'), 0, 255) ?? 0;
      return { total, count: list.length, nextHops };
    },
  };
}

function codeOf(status: unknown): string {
  const number = integer(status, 0, 0xff);
  return number === undefined ? 'unknown' : hex(number, 2);
}
