import { expect, it } from 'vitest';
import { DriverError } from '../../drivers/contract/driver.ts';
import { LEVELS, type Level, openLog } from './log.ts';

function capture(level: Level, journal = false) {
  const lines: string[] = [];
  return { lines, ...openLog({ level, journal, write: (line) => lines.push(line) }) };
}

it('writes one line of JSON with time, level, fields and message', () => {
  const { lines, log } = capture('info');
  log.info({ encoder: 'desk-1' }, 'connected');
  expect(lines).toHaveLength(1);
  expect(lines[0]?.endsWith('}\n')).toBe(true);
  expect(JSON.parse(lines[0] ?? '')).toEqual({
    level: 'info',
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    encoder: 'desk-1',
    message: 'connected',
  });
});

it('writes what is at least as severe as the level', () => {
  for (const [index, level] of LEVELS.entries()) {
    const { lines, log } = capture(level);
    for (const each of LEVELS) log[each]({}, each);
    expect(lines.map((line) => JSON.parse(line).message)).toEqual(LEVELS.slice(index));
  }
});

it('gives the journal its priorities, and leaves the time to it', () => {
  const { lines, log } = capture('debug', true);
  for (const level of LEVELS) log[level]({ text: '"level":"error"' }, 'x');
  expect(lines.map((line) => line.slice(0, 3))).toEqual(['<7>', '<6>', '<4>', '<3>']);
  expect(lines.join()).not.toContain('"time"');
});

it('writes for a person on a terminal, and nothing that moves its cursor', () => {
  const lines: string[] = [];
  const write = (line: string) => lines.push(line);
  const { log, control } = openLog({ level: 'info', journal: false, terminal: true, write });
  log.warn({ encoder: 'desk\u001b[2J-1', waiting: 3, err: new Error('no\nroute') }, 'disconnected');
  expect(lines).toEqual([
    expect.stringMatching(
      /^\d\d:\d\d:\d\d {2}warn {3}disconnected: no route {2}encoder=desk \[2J-1 {2}waiting=3\n$/,
    ),
  ]);
  // A support bundle has it for programs.
  expect(JSON.parse(control.recent()[0] ?? '')).toMatchObject({ level: 'warn', waiting: 3 });
});

it('keeps one record on one line, whatever is in it', () => {
  const { lines, log } = capture('info');
  log.info({ text: 'a\nb\r\u2028<3>' }, 'c\nd');
  expect(lines).toHaveLength(1);
  expect(lines[0]?.trimEnd()).not.toMatch(/[\n\r]/);
});

it('logs an error with its cause', () => {
  for (const name of ['err', 'error']) {
    const { lines, log } = capture('info');
    log.error({ [name]: new Error('outer', { cause: new RangeError('inner') }) }, 'failed');
    const { message, stack } = JSON.parse(lines[0] ?? '')[name];
    expect(message).toBe('outer: inner');
    expect(stack).toContain('log.test.ts');
  }
});

it('survives what cannot be written as JSON', () => {
  const { lines, log } = capture('info');
  const circular: Record<string, unknown> = { big: 2n ** 64n };
  circular.self = circular;
  log.warn({ circular }, 'odd');
  expect(JSON.parse(lines[0] ?? '').message).toBe('odd');
});

it('hands fixed fields to children', () => {
  const { lines, log } = capture('info');
  log.child({ link: 'a' }).child({ device: 7 }).info({}, 'x');
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ link: 'a', device: 7 });
});

it('writes a trouble of a device without a stack, and a fault of this program with one', () => {
  const { lines, log } = capture('info');
  log.warn({ err: new DriverError('LINK_LOST', 'the adapter is gone') }, 'x');
  log.warn({ err: new TypeError('a fault') }, 'x');
  const [trouble, fault] = lines.map((line) => JSON.parse(line).err);
  expect(trouble).toEqual({ type: 'DriverError', code: 'LINK_LOST', message: 'the adapter is gone' });
  expect(fault.stack).toContain('log.test.ts');
});

it('changes its level for children that there are, and back', () => {
  const { lines, log, control } = capture('info');
  const child = log.child({ link: 'bus-1' });
  control.setLevel('debug');
  child.debug({}, 'seen');
  control.setLevel('info');
  child.debug({}, 'not seen');
  expect(control.level()).toBe('info');
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    { level: 'debug', time: expect.any(String), link: 'bus-1', message: 'seen' },
  ]);
});

it('keeps the last lines with their times, also where the journal has them, and not more than its bound', () => {
  const { log, control } = capture('info', true);
  for (let count = 0; count < 3_000; count += 1) log.info({ count }, 'x'.repeat(100));
  log.debug({}, 'left out');
  const recent = control.recent().map((line) => JSON.parse(line));
  expect(recent.at(-1)).toEqual({
    level: 'info',
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    count: 2_999,
    message: 'x'.repeat(100),
  });
  expect(control.recent().join('').length).toBeLessThanOrEqual(262_144);
  expect(recent.length).toBeGreaterThan(1_000);
});
