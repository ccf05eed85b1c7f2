/**
 * The library's handlers of what the adapter reports (dist/controller/controller.js). They are asynchronous and called as
 * listeners: what a frame makes them throw would end the process.
 */
import { field } from '../values.ts';

/** Device_annce (Zigbee specification, 2.4.3.1.11). */
const DEVICE_ANNOUNCE = 0x00_13;

const HANDLERS = [
  'onZclPayload',
  'onDeviceJoined',
  'onZdoResponse',
  'onDeviceLeave',
  'onAdapterDisconnected',
] as const;
type Handlers = Record<(typeof HANDLERS)[number], (...values: unknown[]) => unknown>;

/** What a device, or the coordinator of it, says to be a device's address. */
export interface AddressClaim {
  ieee: unknown;
  nwk: unknown;
}

/** Before the controller is started. `claimed`: before the library knows of it, or looks whether it may. */
export function guardHandlers(
  controller: object,
  failed: (reason: string) => void,
  claimed: (claim: AddressClaim) => void,
): void {
  const handlers = controller as Handlers;
  for (const name of HANDLERS) {
    const handle = handlers[name];
    handlers[name] = async (...values) => {
      try {
        const claim = claimIn(name, values);
        if (claim) claimed(claim);
        await handle.apply(controller, values);
      } catch (error) {
        failed(`a frame was not understood: ${error instanceof Error ? error.message : 'no reason'}`);
      }
    };
  }
}

function claimIn(name: (typeof HANDLERS)[number], [first, second]: unknown[]): AddressClaim | undefined {
  if (name === 'onDeviceJoined')
    return { ieee: field(first, 'ieeeAddr'), nwk: field(first, 'networkAddress') };
  if (name !== 'onZdoResponse' || first !== DEVICE_ANNOUNCE || !Array.isArray(second)) return undefined;
  const [, announced] = second as unknown[];
  return { ieee: field(announced, 'eui64'), nwk: field(announced, 'nwkAddress') };
}
