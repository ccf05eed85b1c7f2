/** Which line settings a scan tries, and what their results say. Pure. */
import { BAUD_RATES, PARITIES } from '../../../drivers/bus/options.ts';
import { type LineSettings, lineSettings } from '../../../drivers/contract/rs485.ts';
import { isModbusTcp } from '../../../drivers/modbus/options.ts';
import { GatehouseError } from '../../platform/errors.ts';
import type { ScanBody } from './bus-schema.ts';
import type { Bus } from './buses.ts';

type BaudRate = LineSettings['baudRate'];
type Parity = LineSettings['parity'];

/** What products of the protocol are delivered with, or set to. Odd parity and the slowest ones are for who asks for them. */
const USUAL: Readonly<Record<string, { baudRates: readonly BaudRate[]; parities: readonly Parity[] }>> = {
  modbus: { baudRates: [9_600, 19_200, 38_400, 57_600, 115_200], parities: ['none', 'even'] },
  dcon: { baudRates: [9_600, 19_200, 38_400, 57_600, 115_200], parities: ['none'] },
  // SIA OSDP 2.2, 5.1: no parity, and these rates.
  osdp: { baudRates: [9_600, 19_200, 38_400, 57_600, 115_200, 230_400], parities: ['none'] },
};
const ALL = { baudRates: BAUD_RATES, parities: PARITIES } as const;

/** Those of the configuration first. Throws VALIDATION_FAILED where there is no choice. */
export function linesToTry(bus: Bus, body: ScanBody): LineSettings[] | undefined {
  const { detect, baudRates, parities } = body;
  if (!detect && !baudRates && !parities) return undefined;
  const configured = lineSettings.safeParse(bus.line).data;
  if (!configured || bus.port === null)
    throw refused(`bus ${bus.id} has no serial line whose settings could be tried`);
  const keeper = baudRateKeeper(bus.port);
  if (keeper)
    throw refused(
      `bus ${bus.id} is behind ${keeper}, which keeps its own baud rate: change it there, and scan again`,
    );
  const usual = USUAL[bus.protocol] ?? ALL;
  const others = (baudRates ?? usual.baudRates).flatMap((baudRate) =>
    (parities ?? usual.parities).map((parity) => ({ baudRate, parity, stopBits: configured.stopBits })),
  );
  return [configured, ...others.filter((line) => !isSame(line, configured))];
}

function baudRateKeeper(port: string): string | undefined {
  if (isModbusTcp(port)) return 'a Modbus TCP gateway';
  return /^tcp(-listen)?:/.test(port) ? 'a serial device server' : undefined;
}

function refused(message: string): GatehouseError {
  const details = [{ path: '/detect', code: 'INVALID_VALUE', message }];
  return new GatehouseError('VALIDATION_FAILED', `Not valid: ${message}.`, { details });
}

function isSame(one: LineSettings, other: LineSettings): boolean {
  return one.baudRate === other.baudRate && one.parity === other.parity;
}

export interface Tried {
  line: LineSettings;
  /** Addresses that gave a sound answer. */
  answered: readonly number[];
}

/** What to put into the configuration, or to do at the devices. `tried`: those of the configuration first. */
export function advice(bus: string, tried: readonly Tried[]): string {
  const [configured] = tried;
  const heard = tried.filter(({ answered }) => answered.length > 0);
  const best = heard.toSorted((a, b) => b.answered.length - a.answered.length)[0];
  if (!best || !configured)
    return 'No one answers with any of these settings: see whether A and B are swapped and the devices have power, or try more baudRates and parities.';
  const many = (addresses: readonly number[]) =>
    addresses.length === 1 ? `address ${addresses[0]}` : `addresses ${addresses.join(', ')}`;
  const settings = ({ line }: Tried) => `baudRate: ${line.baudRate} and parity: ${line.parity}`;
  const rest = heard.filter((one) => one !== best);
  const odd = rest.map((one) => `${many(one.answered)} with ${settings(one)}`).join('; ');
  const differ = rest.length > 0 ? ` Set the others to the same: ${odd}.` : '';
  if (isSame(best.line, configured.line))
    return `The configuration is right: most answers came with it.${differ}`;
  return `Put ${settings(best)} into the options of link ${bus}, and restart Gatehouse: ${many(best.answered)} answers so.${differ}`;
}
