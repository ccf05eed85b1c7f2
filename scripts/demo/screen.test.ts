import { PassThrough } from 'node:stream';
import { expect, it, onTestFinished, vi } from 'vitest';
import { openScreen, type Screen } from './screen.ts';

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

/** What a terminal is sent by `use`. */
async function shownOn(isTTY: boolean, use: (screen: Screen, shown: PassThrough) => Promise<void>) {
  const shown = new PassThrough();
  const output = Object.assign(shown, isTTY ? { isTTY, columns: 80 } : {});
  await use(openScreen(output as unknown as NodeJS.WriteStream), shown);
  return String(shown.read() ?? '');
}

it('shows at once what is being done, moves, and takes it away', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  await shownOn(true, async (screen, shown) => {
    const working = screen.working('Starting');
    const first = String(shown.read());
    expect(first).toMatch(/⠋.* Starting\n$/);
    await vi.advanceTimersByTimeAsync(80);
    expect(String(shown.read())).toMatch(/⠙.* Starting\n$/);
    screen.done('Gatehouse is up');
    expect(String(shown.read())).toMatch(/Gatehouse is up\n.*Starting\n$/);
    working[Symbol.dispose]();
    expect(String(shown.read())).toMatch(UP);
    screen.print('The guide');
    expect(String(shown.read())).toBe('The guide\n');
    expect(vi.getTimerCount()).toBe(0);
  });
});

it('says what is being done once where no terminal is', async () => {
  const shown = await shownOn(false, async (screen) => screen.working('Starting')[Symbol.dispose]());
  expect(shown).toBe('Starting\n');
});
