/** Simulated DCON modules, by the examples of the manuals. */
import { expect, it } from 'vitest';
import { type DevicePlan, deviceSchema } from '../plan.ts';
import type { Device } from '../protocol.ts';
import { framed } from './frame.ts';
import { dcon } from './protocol.ts';

const LINE = { baudRate: 9_600, checksum: false };
const open = (kind: DevicePlan['kind'], address = 1, line = LINE) =>
  dcon(line).openDevice(deviceSchema.parse({ address, kind }), 0);

function ask(device: Device, command: string, now = 0): string | undefined {
  device.advance(now);
  const reply = device.answer(framed(command, false), now);
  return reply === undefined ? undefined : Buffer.from(reply).toString('latin1').replace(/\r$/, '');
}

it('checks sums as the manual of the ADAM-4000 has them', () => {
  const { read } = dcon({ ...LINE, checksum: true });
  expect(read(Buffer.from('$012B7\r'))).toEqual({ kind: 'request', length: 7, address: 1 });
  expect(read(Buffer.from('$012B8\r'))).toEqual({ kind: 'bad' });
  expect(read(Buffer.from('$012B7'))).toEqual({ kind: 'more' });
  expect(read(Buffer.from('\x00\xff$012B7\r', 'latin1'))).toMatchObject({ kind: 'request', length: 9 });
  const module = open('adam-4055', 1, { ...LINE, checksum: true });
  expect(Buffer.from(module.answer(Buffer.from('$012B7\r'), 0) ?? []).toString()).toBe('!01400640B0\r');
});

it('is an ADAM-4055', () => {
  const module = open('adam-4055', 0x15);
  expect(ask(module, '$15M')).toBe('!154055');
  expect(ask(module, '$15F')).toBe('!15A1.04');
  expect(ask(module, '$152')).toBe('!15400600');
  // `#151201` switches channel 2 on, `#150005` channels 0 and 2, of all of them.
  expect(ask(module, '#151201')).toBe('>');
  expect(ask(module, '$156')).toBe('!040000');
  expect(ask(module, '#150005')).toBe('>');
  module.pins.setInput(1, true, 0);
  module.pins.setInput(5, true, 0);
  expect(ask(module, '$156')).toBe('!052200');
  expect(ask(module, '#151200')).toBe('>');
  expect(ask(module, '#151801')).toBe('?15');
  expect(ask(module, '#15120')).toBe(undefined);
  expect(ask(module, '~150')).toBe(undefined);
  expect(ask(module, '$15Q')).toBe(undefined);
});

it('says once that it was reset, and what it sampled', () => {
  const module = open('adam-4055');
  expect([ask(module, '$015'), ask(module, '$015')]).toEqual(['!011', '!010']);
  module.pins.setInput(0, true, 0);
  expect(ask(module, '#**')).toBe(undefined);
  module.pins.setInput(0, false, 0);
  expect([ask(module, '$014'), ask(module, '$014')]).toEqual(['!1000100', '!0000100']);
  ask(module, '#0010FF');
  module.restart(10);
  expect([ask(module, '$015', 10), ask(module, '$016', 10)]).toEqual(['!011', '!000000']);
});

it('goes to its safety value when an ADAM hears nothing', () => {
  const module = open('adam-4055');
  expect(ask(module, '$01X0000A02', 0)).toBe('>');
  expect(ask(module, '$01X1', 0)).toBe('!000A02');
  expect(ask(module, '#0100FF', 500)).toBe('>');
  expect(ask(module, '$016', 1_499)).toBe('!FF0000');
  expect(ask(module, '$016', 2_499)).toBe('!020000');
  expect(ask(module, '$01X2', 2_500)).toBe('!01');
  expect(module.pins.history.filter(({ on }) => !on)[0]?.monotonicMs).toBe(2_499);
});

it('takes the safety value of an ADAM-4068 in four digits alone', () => {
  // 7-20 and 7-21 of the edition with $AAX0TTTTDDDD.
  const module = open('adam-4068');
  expect(ask(module, '$01X1')).toBe('!00000000');
  expect(ask(module, '$01X0006400')).toBe('?01');
  expect(ask(module, '$01X000640000')).toBe('>');
  expect(ask(module, '$01X1')).toBe('!00640000');
});

it('keeps presets as the manual of the I-7060 shows', () => {
  // 2.22 and 2.23, for a module with eight outputs.
  const module = open('i-7050');
  expect(ask(module, '@01AA')).toBe('>');
  expect(ask(module, '~015P')).toBe('!01');
  expect(ask(module, '@0155')).toBe('>');
  expect(ask(module, '~015S')).toBe('!01');
  expect(ask(module, '~014P')).toBe('!01AA00');
  expect(ask(module, '~014S')).toBe('!015500');
  module.restart(10);
  expect(ask(module, '$016', 10)).toBe('!AA0000');
});

it('falls back when the host is silent, and ignores commands until it is reset', () => {
  // 2.21: 10.0 s.
  const module = open('i-7060');
  expect(ask(module, '~010')).toBe('!0100');
  expect(ask(module, '~013164')).toBe('!01');
  expect(ask(module, '#01000F', 0)).toBe('>');
  expect(ask(module, '~**', 5_000)).toBe(undefined);
  // Other commands do not count.
  expect(ask(module, '$016', 14_999)).toBe('!0F0000');
  expect(ask(module, '$016', 15_000)).toBe('!000000');
  expect(module.pins.history.at(-1)).toMatchObject({ on: false, monotonicMs: 15_000 });
  expect(ask(module, '~010', 15_000)).toBe('!0104');
  expect(ask(module, '#011001', 15_000)).toBe('!');
  expect(ask(module, '@01F', 15_000)).toBe('!');
  module.restart(16_000);
  expect(ask(module, '~010', 16_000)).toBe('!0104');
  expect(ask(module, '~011', 16_000)).toBe('!01');
  expect(ask(module, '~010', 16_000)).toBe('!0100');
  expect(ask(module, '#011001', 16_000)).toBe('>');
  expect(ask(module, '#011401', 16_000)).toBe('?');
  expect(ask(module, '@01')).toBe('>0100');
});

it('latches inputs', () => {
  const module = open('i-7060');
  module.pins.pulseInput(1, 50, 0);
  expect(ask(module, '$016', 100)).toBe('!000000');
  expect(ask(module, '$01L1', 100)).toBe('!000200');
  expect(ask(module, '$01C', 100)).toBe('!01');
  expect(ask(module, '$01L1', 100)).toBe('!000000');
});
