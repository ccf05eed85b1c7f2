/** A device of zigbee-herdsman as the rest of the driver knows it. Pure. */
import type { RadioDevice } from '../radio.ts';
import { integer, text } from '../values.ts';

/** As far as it is read. */
interface LibraryDevice {
  ieeeAddr: string;
  type: string;
  networkAddress: number;
  interviewState: string;
  manufacturerName?: string | undefined;
  modelID?: string | undefined;
  softwareBuildID?: string | undefined;
  lastSeen?: number | undefined;
  endpoints: { ID: number; inputClusters: number[]; outputClusters: number[] }[];
}

const KINDS: Record<string, RadioDevice['kind']> = {
  Coordinator: 'coordinator',
  Router: 'router',
  EndDevice: 'endDevice',
};

export function deviceOf(device: LibraryDevice): RadioDevice {
  return {
    ieee: ieeeOf(device.ieeeAddr),
    kind: KINDS[device.type] ?? 'unknown',
    networkAddress: device.networkAddress,
    interviewed: device.interviewState === 'SUCCESSFUL',
    manufacturer: text(device.manufacturerName),
    model: text(device.modelID),
    softwareBuild: text(device.softwareBuildID),
    lastSeen: integer(device.lastSeen, 0, Number.MAX_SAFE_INTEGER),
    endpoints: device.endpoints.map(({ ID, inputClusters, outputClusters }) => ({
      id: ID,
      inputs: inputClusters,
      outputs: outputClusters,
    })),
  };
}

export function ieeeOf(address: string): string {
  return address.replace(/^0x/, '').toLowerCase();
}
