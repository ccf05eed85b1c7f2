/** In which order the test files run: what takes longest first, so that no worker is left with a long one at the end. */
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Every file of ten seconds or more, the longest first; the others follow by size. */
const LONGEST = [
  'test/faults/failing-actuations',
  'scripts/package',
  'test/crash-matrix',
  'test/durability',
  'test/fuzz/requests',
  'test/demo',
  'drivers/zigbee/recovery',
  'drivers/zigbee/sleeping-locks',
  'test/console/desk',
  'test/console/doors',
  'test/console/rs485',
  'test/console/osdp',
  'src/resources/writes/simulation',
  'test/offline',
  'src/platform/field/field',
  'src/platform/config/every-fault',
  'test/relay-stands-open',
  'drivers/zigbee/gateway',
  'test/rs485-faults',
  'drivers/encoder/broker',
  'test/zigbee-daemon',
  'test/simulators/zigbee/faults',
  'drivers/osdp/simulated',
  'test/serve',
  'drivers/zigbee/link',
  'src/platform/field/orphan',
  'drivers/osdp/files',
  'test/osdp-firmware',
  'drivers/zigbee/lies',
  'test/end-to-end',
  'drivers/encoder/embedded-silence',
  'test/rs485-ports',
  'test/simulators/zigbee/lock',
  'test/zigbee-field',
  'test/simulators/bus/bus',
  'test/bus-scan',
  'drivers/zigbee/unlocking',
  'drivers/encoder/embedded',
  'drivers/zigbee/fuzz',
  'test/service',
  'test/disk-full',
  'test/field-devices',
  'drivers/dcon/simulated',
  'test/simulators/zigbee/forming',
  'test/rs485-field',
  'test/rs485-pulses',
  'test/faults/actuations',
  'drivers/modbus/simulated',
];

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted((one, other) => rank(one) - rank(other));
  }
}

function rank({ moduleId }: TestSpecification): number {
  const index = LONGEST.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`));
  return index === -1 ? LONGEST.length : index;
}
