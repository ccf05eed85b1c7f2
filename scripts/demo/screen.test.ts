import { PassThrough } from 'node:stream';
import { expect, it } from 'vitest';
import { openScreen } from './screen.ts';

const KEYS = ['a', 'b', 'c'].map((keyId, index) => ({ keyId, label: `key ${index + 1}` }));
/** ECMA-48, CUU: the cursor goes up by so many rows. */
const UP = new RegExp(`${String.fromCharCode(0x1b)}\\[(\\d+)A`);

it.each([
  { columns: 80, rows: 3 },
  { columns: 45, rows: 6 },
])('takes $rows rows away where $columns columns are shown', ({ columns, rows }) => {
  const shown = new PassThrough();
  const screen = openScreen(Object.assign(shown, { isTTY: true, columns }) as unknown as NodeJS.WriteStream);
  using _following = screen.follow(KEYS);
  for (const { keyId } of KEYS)
    screen.event({ data: { keyId, status: 'cardRequested', requestId: 'r' } } as never);
  shown.read();
  screen.print('done');
  expect(Number(UP.exec(String(shown.read()))?.[1])).toBe(rows);
});
