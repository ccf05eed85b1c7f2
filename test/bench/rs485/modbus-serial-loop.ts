/**
 * What one writes with modbus-serial: polls units in turn with a timeout of 500 ms, as much as libmodbus has by default,
 * and between two polls closes the relays that standard input asks for, in lines of [ID,UNIT,RELAY]. PORT BAUD UNIT...
 */
import { createInterface } from 'node:readline';
import modbusSerial from 'modbus-serial';
import { FORMAT } from './site.ts';

const TIMEOUT_MS = 500;
/** The map of a gatehouse-io: config/profiles/gatehouse-io.yaml. */
const STATUS = { address: 0x0000, registers: 10 };
const PULSE = 0x0200;
const PULSE_MS = 100;

const [port = '', baudRate, ...units] = process.argv.slice(2);
const { default: Client } = modbusSerial;
const client = new Client();
client.setTimeout(TIMEOUT_MS);
await client.connectRTUBuffered(port, { ...FORMAT, baudRate: Number(baudRate) });
const report = (message: object) => void process.stdout.write(`${JSON.stringify(message)}\n`);

const orders: [id: number, unit: number, relay: number][] = [];
createInterface({ input: process.stdin })
  .on('line', (line) => orders.push(JSON.parse(line)))
  .on('close', () => process.exit(0));

report({ kind: 'ready' });
for (;;) {
  for (const unit of units.map(Number)) {
    for (let order = orders.shift(); order; order = orders.shift()) {
      const [id, where, relay] = order;
      client.setID(where);
      const failed = await client.writeRegisters(PULSE, [id, relay, 0, PULSE_MS]).then(
        () => null,
        (error: { message?: string }) => String(error.message ?? error),
      );
      report({ kind: 'fired', id, failed });
    }
    client.setID(unit);
    // A device that does not answer is asked again in the next round.
    await client.readHoldingRegisters(STATUS.address, STATUS.registers).catch(() => undefined);
  }
}
