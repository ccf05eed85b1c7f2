/** The drivers there are. Each is loaded when a link needs it, so that a host loads only what it runs. */
import type { OpenDriver } from './contract/driver.ts';

export type DriverTable = ReadonlyMap<string, () => Promise<OpenDriver>>;

export const DRIVERS: DriverTable = new Map([
  ['dcon', async () => (await import('./dcon/driver.ts')).openDcon],
  ['loopback', async () => (await import('./loopback/driver.ts')).openLoopback],
  ['modbus', async () => (await import('./modbus/driver.ts')).openModbus],
  ['osdp', async () => (await import('./osdp/driver.ts')).openOsdp],
  ['zigbee', async () => (await import('./zigbee/driver.ts')).openZigbee],
]);
