import { expect, it } from 'vitest';
import type { Rs485Row } from './table.ts';
import { isUnclaimed } from './wanted.ts';

const FOUND = {
  settings_version: 0,
  name: null,
  description: null,
  door_id: null,
  group_id: null,
  io_pins: '[]',
  relay_index: null,
  unlock_duration_ms: null,
  use_input_pin_memory: 0,
} as Rs485Row;

it('a device is unclaimed until anything is wanted of it', () => {
  expect(isUnclaimed(FOUND)).toBe(true);
  for (const wanted of [
    { name: 'Lobby' },
    { relay_index: 0 },
    { use_input_pin_memory: 1 },
    { settings_version: 1 },
  ])
    expect(isUnclaimed({ ...FOUND, ...wanted })).toBe(false);
});

it('a row whose pins the disk has damaged is claimed, and read without a fault', () => {
  for (const io_pins of ['[', ']', '{"a":1}']) expect(isUnclaimed({ ...FOUND, io_pins })).toBe(false);
});
