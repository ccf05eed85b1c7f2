/** Which line settings are tried, and what is said of the results. */
import { describe, expect, it } from 'vitest';
import type { LineSettings } from '../../../drivers/contract/rs485.ts';
import type { Bus } from './buses.ts';
import { advice, linesToTry } from './scan-lines.ts';

const line: LineSettings = { baudRate: 19_200, parity: 'even', stopBits: 1 };
const other: LineSettings = { baudRate: 9_600, parity: 'none', stopBits: 1 };
const bus: Bus = { id: 'bus-1', protocol: 'modbus', port: '/dev/ttyUSB0', turnaroundMaxMs: 100, line };
const body = { repeats: 1 };
const names = (lines: LineSettings[] | undefined) =>
  lines?.map(({ baudRate, parity }) => `${baudRate} ${parity}`);

describe('what is tried', () => {
  it('is nothing else unless it is asked for', () => {
    expect(linesToTry(bus, body)).toBeUndefined();
  });

  it('is what the configuration has, and then what is usual with the protocol', () => {
    const lines = names(linesToTry(bus, { ...body, detect: true }));
    expect(lines?.[0]).toBe('19200 even');
    expect(lines).toHaveLength(10);
    expect(new Set(lines).size).toBe(10);
    const osdp = names(linesToTry({ ...bus, protocol: 'osdp', line: other }, { ...body, detect: true }));
    expect(osdp).toEqual([
      '9600 none',
      '19200 none',
      '38400 none',
      '57600 none',
      '115200 none',
      '230400 none',
    ]);
  });

  it('is what was named, where something was', () => {
    expect(names(linesToTry(bus, { ...body, baudRates: [19_200], parities: ['odd', 'even'] }))).toEqual([
      '19200 even',
      '19200 odd',
    ]);
  });

  it.each([
    ['tcp://10.0.0.7:4001', line, 'behind a serial device server'],
    [null, null, 'no serial line'],
  ])('is refused of %s', (port, own, reason) => {
    expect(() => linesToTry({ ...bus, port, line: own }, { ...body, detect: true })).toThrow(reason);
  });
});

describe('the advice', () => {
  it.each([
    ['no one', [], [], 'No one answers with any of these settings'],
    ['all as configured', [1, 2], [], 'The configuration is right: most answers came with it.'],
    [
      'most as configured',
      [1, 2],
      [3],
      'Set the others to the same: address 3 with baudRate: 9600 and parity: none.',
    ],
    ['all otherwise', [], [1, 2], 'Put baudRate: 9600 and parity: none into the options of link bus-1'],
  ])('for %s', (_, configured, others, said) => {
    expect(
      advice('bus-1', [
        { line, answered: configured },
        { line: other, answered: others },
      ]),
    ).toContain(said);
  });
});
