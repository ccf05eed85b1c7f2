/** What is said to a module, step by step, without a bus. */
import { expect, it } from 'vitest';
import { DriverError, type DriverErrorCode } from '../contract/driver.ts';
import { moduleTypeOf } from './module-types.ts';
import { bringUp, type Script, switchOff, switchOn } from './scripts.ts';

type Answers = Record<string, (text: string) => unknown>;

/** Plays the module of a script; what it was asked is listed in `asked`. */
function play<Result>(script: Script<Result>, answers: Answers) {
  const asked: string[] = [];
  let step = script.next();
  while (!step.done) {
    const { operation, text } = step.value;
    asked.push(text);
    try {
      const answer = answers[operation];
      if (!answer) throw new DriverError('REFUSED', `${text} is refused`);
      step = script.next(answer(text));
    } catch (error) {
      step = script.throw(error);
    }
  }
  return { asked, result: step.value };
}

const NOTHING = { live: () => 0, maybeOn: 0 };
const off = () => ({ outputs: 0, inputs: 0 });

it('does not trust a safety value that reads back otherwise', () => {
  const adam: Answers = { $M: () => '4068', $6: off, $X0: () => 'done' };
  const kept = { tenths: 100, outputs: 0, digits: 2 };
  const guardOf = (answers: Answers) => play(bringUp(1, NOTHING, 10_000), answers).result.guard;
  expect(guardOf({ ...adam, $X1: () => kept })).toEqual({ kind: 'armed' });
  for (const wrong of [{ tenths: 0 }, { tenths: 1_000 }, { outputs: 1 }]) {
    expect(guardOf({ ...adam, $X1: () => ({ ...kept, ...wrong }) })).toMatchObject({ kind: 'none' });
  }
});

it('does not trust a host watchdog that was acknowledged and reads back otherwise', () => {
  const icp: Answers = { $M: () => '7060', '~0': () => false, '~4': () => 0, $6: off, '~3': () => null };
  const guardOf = (answers: Answers) => play(bringUp(1, NOTHING, 10_000), answers).result.guard;
  expect(guardOf({ ...icp, '~2': () => ({ enabled: true, tenths: 100 }) })).toEqual({ kind: 'armed' });
  for (const kept of [
    { enabled: false, tenths: 100 },
    { enabled: true, tenths: 0 },
  ])
    expect(guardOf({ ...icp, '~2': () => kept })).toMatchObject({ kind: 'none' });
});

it('does not make the outputs of a pulse that goes on the value of a module that hears nothing', () => {
  const icp: Answers = {
    $M: () => '7060',
    '~0': () => false,
    '~4': () => 1,
    $6: () => ({ outputs: 1, inputs: 0 }),
  };
  const { asked, result } = play(bringUp(1, { live: () => 0b1, maybeOn: 0b1 }, 10_000), icp);
  expect(result.guard).toMatchObject({
    kind: 'none',
    reason: { code: 'MODULE_WATCHDOG_REFUSED', message: expect.stringContaining('safe value') },
  });
  expect(asked.filter((text) => /^~015/.test(text))).toEqual([]);
});

it('switches single outputs off where another one stays on, and gives up after a while', () => {
  const type = moduleTypeOf('7060');
  if (!type) throw new Error('the I-7060 is not in the table');
  let outputs = 0b1111;
  const icp: Answers = {
    $6: () => ({ outputs, inputs: 0 }),
    '#1': (text) => {
      outputs &= ~(1 << Number(text[4]));
      return 'done';
    },
  };
  const { asked } = play(
    switchOff(1, type, () => 0b0100),
    icp,
  );
  expect(outputs).toBe(0b0100);
  expect(asked).toEqual(['$016', '#011000', '#011100', '#011300', '$016']);
  expect(() =>
    play(
      switchOff(1, type, () => 0),
      { $6: () => ({ outputs: 1, inputs: 0 }), '#0': () => 'done' },
    ),
  ).toThrow('ordered to switch off and did not');
});

it('does not take a refusal for proof: the read-back decides', () => {
  const type = moduleTypeOf('7060');
  if (!type) throw new Error('the I-7060 is not in the table');
  const started = { $5: () => false, '~0': () => false };
  const codeOf = (
    first: DriverErrorCode,
    later: DriverErrorCode,
    $6: () => unknown,
    answers: Answers = started,
  ) => {
    let attempts = 0;
    const switched = () => {
      attempts += 1;
      throw new DriverError(attempts === 1 ? first : later, 'the test says so');
    };
    try {
      return play(switchOn(1, type, 0, 10_000), { '#1': switched, $6, ...answers }).result;
    } catch (error) {
      return error instanceof DriverError ? error.code : error;
    }
  };
  const on = { outputs: 1, inputs: 0 };
  const unread = () => {
    throw new DriverError('NO_REPLY', 'no answer');
  };
  for (const first of ['NO_REPLY', 'BAD_REPLY'] as const) {
    for (const later of ['REFUSED', 'DEVICE_OFFLINE', 'DEADLINE_PASSED', 'LINK_LOST'] as const) {
      expect(codeOf(first, later, () => on)).toEqual(on);
      expect(codeOf(first, later, unread)).toBe('OUTCOME_UNKNOWN');
      expect(codeOf(first, later, off)).toBe('NO_REPLY');
      expect(codeOf(first, later, off, { ...started, $5: () => true })).toBe('OUTCOME_UNKNOWN');
      expect(codeOf(first, later, off, { ...started, '~0': () => true })).toBe('OUTCOME_UNKNOWN');
    }
  }
  // Modules are known that refuse what they have carried out.
  expect(codeOf('REFUSED', 'REFUSED', () => on)).toEqual(on);
  expect(codeOf('REFUSED', 'REFUSED', unread)).toBe('OUTCOME_UNKNOWN');
  expect(codeOf('REFUSED', 'REFUSED', off)).toBe('REFUSED');
});
