import { beforeAll, expect, test, vi } from 'vitest';
import { BUS_WARNING_TEXTS } from '../../drivers/contract/bus-warnings.ts';
import { FINDING_TEXTS } from '../resources/rs485/bus-findings.ts';
import type { Sink } from './problems.ts';

const sink = (name: string, more: Partial<Sink>): Sink => ({
  name,
  kind: 'mqtt',
  urls: [],
  connected: true,
  since: null,
  waiting: 0,
  waitingBytes: 0,
  oldestSeconds: null,
  deadLetters: 0,
  gaps: 0,
  dropped: 0,
  fillBytesPerSecond: 1,
  autonomyHours: 400,
  lastError: null,
  ...more,
});

let problems: typeof import('./problems.ts');
beforeAll(async () => {
  // The language is chosen when the words are loaded.
  vi.stubGlobal('localStorage', { getItem: () => null });
  vi.stubGlobal('navigator', { languages: ['en-GB'] });
  problems = await import('./problems.ts');
});

test('the sink that is nearest to losing an event stands first', () => {
  const { worstFirst } = problems;
  const sinks = [
    sink('well', {}),
    sink('away', { connected: false, waiting: 3 }),
    sink('slow', { waiting: 9, autonomyHours: 20 }),
    sink('lost', { connected: false, waiting: 5, autonomyHours: 2 }),
    sink('failing', { waiting: 2, lastError: 'refused (HTTP 500)' }),
    sink('idle', { autonomyHours: null, waiting: 1 }),
  ];
  expect(worstFirst(sinks).map(({ name }) => name)).toEqual([
    'lost',
    'slow',
    'away',
    'failing',
    'well',
    'idle',
  ]);
});

test('a sink says what waits, for how long, and how much room is left', () => {
  const { backlogOf } = problems;
  expect(backlogOf(sink('a', { waiting: 1, oldestSeconds: 7_300, autonomyHours: 60 }))).toBe(
    '1 event waits · the oldest: 2 hours · room for 2 days without it',
  );
  expect(backlogOf(sink('b', { autonomyHours: null }))).toBe('0 events wait');
});

test('why a door is not reached is said in the language of the page, and a cause that is new in the words of the gateway', async () => {
  const { language, reasonOf } = await import('./words.ts');
  const left = { code: 'LOCK_LEFT', message: 'The lock left its network' };
  expect(reasonOf(left)).toBe('The lock left its network');
  language.value = 'de';
  expect(reasonOf(left)).toMatch(/^Das Schloss hat das Netz verlassen/);
  expect(reasonOf({ code: 'NEW', message: 'Something else' })).toBe('Something else');
  language.value = 'en';
});

test('a warning of a bus, and what a look at one has found, is said in the language of the page, with all that it is about', async () => {
  const { language, reasonOf, linkFault } = await import('./words.ts');
  language.value = 'de';
  for (const [code, text] of Object.entries({ ...BUS_WARNING_TEXTS, ...FINDING_TEXTS })) {
    const names = [...text.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
    const parameters = Object.fromEntries(names.map((name) => [name, `<${name}>`]));
    const said = reasonOf({ code, message: 'English', parameters });
    for (const name of names) expect(said, code).toContain(`<${name}>`);
    expect(said, code).not.toContain('English');
  }
  expect(linkFault('LINK_LOST: it hung up')).toBe('Die Verbindung ist abgebrochen: it hung up.');
  expect(linkFault('OTHER: it hung up')).toBe('OTHER: it hung up.');
  language.value = 'en';
  expect(linkFault('LINK_LOST: it hung up')).toBe('LINK_LOST: it hung up.');
});

test('what is wrong with a field is said by its name, in the language of the page where it has the words', async () => {
  const { language, faultsOf } = await import('./words.ts');
  const message = 'expected 128 characters at most';
  const parameters = { limit: 128, unit: 'string' };
  const long = { path: '/name', code: 'TOO_BIG', message, parameters };
  const faults = [long, { path: '/from', code: 'INVALID_VALUE', message: 'expected 1 to 9' }];
  expect(faultsOf(faults, { name: 'Name' })).toBe(
    'Name: expected 128 characters at most. /from: expected 1 to 9.',
  );
  language.value = 'de';
  expect(faultsOf(faults, { name: 'Name' })).toBe('Name: höchstens 128 Zeichen. /from: expected 1 to 9.');
  expect(faultsOf([{ path: '/mac', code: 'INVALID_FORMAT', message }], { mac: 'MAC' })).toBe(
    'MAC: 16 Hexadezimalziffern, wie aufgedruckt.',
  );
  language.value = 'en';
});

test('an event is called by a word, and one that is new as in the interface', async () => {
  const { kindOf } = await import('./words.ts');
  expect(kindOf('gatehouse.door.late-outcome.v1')).toBe('Late outcome');
  expect(kindOf('gatehouse.door.unheard-of.v1')).toBe('unheard-of');
});

test('a cluster is a problem while nothing would take over, and a worse one while nothing may move', () => {
  const { clusterProblems } = problems;
  const standby = { name: 'b', takesOver: true, reason: null, behind: 1, seenSeconds: 1 };
  const now = {
    name: 'a',
    epoch: 3,
    acts: true,
    durability: 'local' as const,
    standby,
    waitingBytes: 0,
    lastError: null,
  };
  expect(clusterProblems(null)).toEqual([]);
  expect(clusterProblems(now)).toEqual([]);
  const late = { ...standby, takesOver: false, reason: 'another version', behind: 1 };
  expect(clusterProblems({ ...now, standby: late })[0]).toMatchObject({
    severity: 'warn',
    detail: 'another version · 1 message behind',
  });
  expect(clusterProblems({ ...now, acts: false })[0]).toMatchObject({ severity: 'bad' });
  expect(clusterProblems({ ...now, standby: null })[0]?.detail).toBe('No gateway follows.');
});
