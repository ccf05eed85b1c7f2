import { describe, expect, it } from 'vitest';
import { openTestReconciler, refusal } from '../../../test/services/reconcile/reconciler.ts';
import { silentLog } from '../../platform/log.ts';

/** Its one device, `a`, takes at once what it is sent. */
function obedient() {
  let applies = 0;
  const bed = openTestReconciler({
    async apply({ id, version }) {
      applies += 1;
      bed.applied.set(id, version);
    },
  });
  bed.wanted.set('a', 1);
  bed.run();
  return { ...bed, applies: () => applies };
}

describe('openReconciler', () => {
  it('applies what is due at the start, each once, and then rests', async () => {
    const { clock, wanted, attempts, run, last, reconciler } = openTestReconciler();
    wanted.set('a', 3);
    run();
    await clock.advance(0);
    expect(attempts.map(({ id, version }) => [id, version])).toEqual([['a', 3]]);
    last().done();
    await clock.advance(3_600_000);
    expect(attempts).toHaveLength(1);
    expect(reconciler.failure('a')).toBeUndefined();
  });

  it('tries what is wanted from now on at once', async () => {
    const { clock, attempts, run, want } = openTestReconciler();
    run();
    await clock.advance(0);
    expect(attempts).toHaveLength(0);
    want('a', 1);
    await clock.advance(0);
    expect(attempts).toHaveLength(1);
  });

  it('waits longer after each failure in a row, up to a ceiling, and shows when it tries again', async () => {
    const { clock, wanted, attempts, run, last, reconciler } = openTestReconciler();
    wanted.set('a', 1);
    run();
    const waits: number[] = [];
    for (let failures = 1; failures <= 11; failures += 1) {
      await clock.advance(0);
      expect(attempts).toHaveLength(failures);
      expect(reconciler.nextAttempt('a')).toBeUndefined();
      last().fail(refusal('NO_REPLY'));
      await clock.advance(0);
      const next = reconciler.nextAttempt('a') ?? 0;
      waits.push(Math.round((next - clock.now()) / 1_000));
      await clock.advance(next - clock.now() - 1);
      expect(attempts).toHaveLength(failures);
      await clock.advance(2);
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
  });

  it('spreads the attempts over the whole of the wait', async () => {
    const { clock, run, want, last, reconciler } = openTestReconciler({ random: () => 0.25 });
    run();
    want('a', 1);
    await clock.advance(0);
    last().fail(refusal('NO_REPLY'));
    await clock.advance(0);
    expect(reconciler.nextAttempt('a')).toBe(clock.now() + 250);
  });

  it('keeps the back-off of one id from the others', async () => {
    const { clock, wanted, attempts, run, want, last } = openTestReconciler();
    wanted.set('a', 1);
    run();
    await clock.advance(0);
    last().fail(refusal('NO_REPLY'));
    await clock.advance(0);
    want('b', 1);
    await clock.advance(0);
    expect(attempts.map(({ id }) => id)).toEqual(['a', 'b']);
  });

  it('shows why the last attempt failed until a newer version is wanted', async () => {
    const { clock, wanted, run, want, last, reconciler } = openTestReconciler();
    wanted.set('a', 1);
    run();
    await clock.advance(0);
    last().fail(refusal('BUSY'));
    await clock.advance(0);
    const failure = { version: 1, code: 'BUSY', message: 'it said BUSY', permanent: false };
    expect(reconciler.failure('a')).toEqual({ ...failure, at: clock.now() });
    want('a', 2);
    await clock.advance(0);
    expect(reconciler.failure('a')).toBeUndefined();
  });

  it('forgets the failure once the version is applied, and logs that, as it is numbered then', async () => {
    const lines: unknown[] = [];
    const log = { ...silentLog, info: (fields: object) => void lines.push(fields) };
    const { clock, wanted, run, last, reconciler } = openTestReconciler({ log });
    wanted.set('a', 1);
    run();
    await clock.advance(0);
    last().fail(refusal('NO_REPLY'));
    await clock.advance(1_000);
    reconciler.renumber('a', 2);
    last().done();
    await clock.advance(0);
    expect(lines.at(-1)).toEqual({ id: 'a', version: 2 });
    expect(reconciler.failure('a')).toBeUndefined();
    expect(reconciler.nextAttempt('a')).toBeUndefined();
  });

  it('ends the attempt of a superseded version and tries the newer one at once, never both', async () => {
    const { clock, wanted, attempts, run, want, last, applied, reconciler } = openTestReconciler();
    wanted.set('a', 1);
    run();
    await clock.advance(0);
    want('a', 2);
    await clock.advance(0);
    expect(attempts[0]?.signal.aborted).toBe(true);
    expect(attempts.map(({ version }) => version)).toEqual([1, 2]);
    last().done();
    await clock.advance(0);
    expect(applied.get('a')).toBe(2);
    expect(reconciler.failure('a')).toBeUndefined();
  });

  it('waits for the word of the superseded attempt before it tries the newer version', async () => {
    const begun: number[] = [];
    const first = Promise.withResolvers<void>();
    const { clock, wanted, run, want } = openTestReconciler({
      async apply({ version }) {
        begun.push(version);
        if (version === 1) await first.promise;
      },
    });
    wanted.set('a', 1);
    run();
    await clock.advance(0);
    want('a', 2);
    await clock.advance(60_000);
    expect(begun).toEqual([1]);
    first.reject(refusal('OUTCOME_UNKNOWN'));
    await clock.advance(0);
    expect(begun).toEqual([1, 2]);
  });

  it('tries a newer version at once although the older one is in its back-off', async () => {
    const { clock, wanted, attempts, run, want, last } = openTestReconciler();
    wanted.set('a', 1);
    run();
    await clock.advance(0);
    last().fail(refusal('NO_REPLY'));
    await clock.advance(0);
    want('a', 2);
    await clock.advance(0);
    expect(attempts.map(({ version }) => version)).toEqual([1, 2]);
  });

  it.each(['REFUSED', 'INVALID_COMMAND'] as const)(
    'after %s tries the version no more, not even when woken',
    async (code) => {
      const { clock, wanted, attempts, run, want, last, reconciler } = openTestReconciler();
      wanted.set('a', 1);
      run();
      await clock.advance(0);
      last().fail(refusal(code));
      await clock.advance(0);
      reconciler.wake('a');
      await clock.advance(24 * 3_600_000);
      expect(attempts).toHaveLength(1);
      expect(reconciler.failure('a')).toMatchObject({ code, permanent: true });
      expect(reconciler.nextAttempt('a')).toBeUndefined();
      want('a', 2);
      await clock.advance(0);
      expect(attempts).toHaveLength(2);
    },
  );

  it('forgets the back-off when woken: the device is back', async () => {
    let attempts = 0;
    const { clock, wanted, run, reconciler } = openTestReconciler({
      async apply() {
        attempts += 1;
        throw refusal('NO_REPLY');
      },
    });
    wanted.set('a', 1);
    run();
    await clock.advance(300_000);
    const before = attempts;
    expect((reconciler.nextAttempt('a') ?? 0) - clock.now()).toBeGreaterThan(60_000);
    reconciler.wake('a');
    await clock.advance(0);
    expect(attempts).toBe(before + 1);
    expect(reconciler.nextAttempt('a')).toBe(clock.now() + 1_000);
  });

  it('attempts a bounded number at once, and who waits longest comes next', async () => {
    const { clock, wanted, attempts, run } = openTestReconciler();
    for (let index = 0; index < 40; index += 1) wanted.set(`d${index}`, 1);
    run();
    await clock.advance(1);
    expect(attempts).toHaveLength(16);
    for (const { fail } of attempts.slice(0, 16)) fail(refusal('NO_REPLY'));
    await clock.advance(1_000);
    expect(attempts.slice(16, 32).map(({ id }) => id)).toEqual(
      Array.from({ length: 16 }, (_, index) => `d${index + 16}`),
    );
    for (const { done } of attempts.slice(16, 32)) done();
    await clock.advance(0);
    expect(attempts.slice(32, 40).map(({ id }) => id)).toEqual(
      Array.from({ length: 8 }, (_, index) => `d${index + 32}`),
    );
    expect(attempts).toHaveLength(48);
  });

  it('counts a version that was sent and is still not in force as a failure', async () => {
    const { clock, wanted, reconciler, run } = openTestReconciler({ apply: async () => {} });
    wanted.set('a', 1);
    run();
    await clock.advance(0);
    expect(reconciler.failure('a')).toMatchObject({ code: 'BAD_REPLY', permanent: false });
    expect(reconciler.nextAttempt('a')).toBeGreaterThan(clock.now());
  });

  it('sends to a device that forgets at once ever more rarely, also when its reports wake it', async () => {
    const { clock, applied, reconciler, applies } = obedient();
    for (let second = 0; second < 600; second += 1) {
      await clock.advance(1_000);
      if (applied.delete('a')) reconciler.wake('a');
    }
    expect(applies()).toBeLessThan(12);
    expect(reconciler.failure('a')).toMatchObject({ code: 'BAD_REPLY' });
  });

  it('sends at once to a device that comes back without its settings, each time', async () => {
    const { clock, applied, reconciler, applies } = obedient();
    for (let time = 1; time <= 20; time += 1) {
      await clock.advance(5_000);
      expect(applies()).toBe(time);
      applied.delete('a');
      reconciler.returned('a');
      await clock.advance(0);
      expect(reconciler.failure('a')).toBeUndefined();
    }
  });

  it('sends at once to a device that lost what it had kept', async () => {
    const { clock, wanted, applied, attempts, run, last, reconciler } = openTestReconciler();
    wanted.set('a', 1);
    run();
    await clock.advance(0);
    last().done();
    await clock.advance(3_600_000);
    applied.delete('a');
    reconciler.wake('a');
    await clock.advance(0);
    expect(attempts).toHaveLength(2);
    expect(reconciler.failure('a')).toBeUndefined();
  });

  it('warns of a device that is away only when that lasts, and of other faults at once', async () => {
    const lines: string[] = [];
    const { clock, run, want, last, reconciler } = openTestReconciler({
      log: {
        ...silentLog,
        info: () => void lines.push('info'),
        warn: () => void lines.push('warn'),
      },
    });
    run();
    want('a', 1);
    for (let failures = 1; failures <= 8; failures += 1) {
      await clock.advance(0);
      last().fail(refusal('DEVICE_OFFLINE'));
      await clock.advance(0);
      await clock.advance((reconciler.nextAttempt('a') ?? 0) - clock.now() + 1);
    }
    expect(lines).toEqual(['info', 'info', 'info', 'warn']);
    want('b', 1);
    await clock.advance(0);
    last().fail(refusal('BAD_REPLY'));
    await clock.advance(0);
    expect(lines.at(-1)).toBe('warn');
    expect(lines).toHaveLength(5);
  });

  it('attempts nothing while nothing can reach the device, shows why, and goes on when it is woken', async () => {
    const away = new Set(['a']);
    const warned: string[] = [];
    const { clock, attempts, run, want, reconciler } = openTestReconciler({
      log: { ...silentLog, warn: (_fields, message) => void warned.push(message) },
      unreachable: (id) => (away.has(id) ? 'link zb-1 is down' : undefined),
    });
    run();
    want('a', 1);
    want('b', 1);
    await clock.advance(60_000);
    expect(attempts.map(({ id }) => id)).toEqual(['b']);
    expect(reconciler.failure('a')).toMatchObject({ code: 'LINK_LOST', message: 'link zb-1 is down' });
    // A thousand devices behind a link that is down are no thousand lines: it has said so itself.
    expect(warned).toEqual([]);
    expect(reconciler.nextAttempt('a')).toBeGreaterThan(clock.now());
    away.clear();
    reconciler.wake('a');
    await clock.advance(0);
    expect(attempts.map(({ id }) => id)).toEqual(['b', 'a']);
  });

  it('asks an attempt that does not end to stop', async () => {
    const { clock, wanted, attempts, run, reconciler } = openTestReconciler();
    wanted.set('a', 1);
    run();
    await clock.advance(119_999);
    expect(attempts[0]?.signal.aborted).toBe(false);
    await clock.advance(1);
    expect(attempts[0]?.signal.aborted).toBe(true);
    expect(reconciler.failure('a')).toMatchObject({ code: 'OUTCOME_UNKNOWN' });
  });

  it('keeps what went wrong inside the gateway in the log and tries again', async () => {
    const { clock, wanted, attempts, run, last, reconciler } = openTestReconciler();
    wanted.set('a', 1);
    run();
    await clock.advance(0);
    last().fail(new TypeError('x is not a function'));
    await clock.advance(0);
    expect(reconciler.failure('a')).toMatchObject({ code: 'INTERNAL', permanent: false });
    expect(reconciler.failure('a')?.message).not.toContain('function');
    await clock.advance(1_000);
    expect(attempts).toHaveLength(2);
  });

  it('drops what is no longer wanted', async () => {
    const { clock, wanted, attempts, run, last, reconciler } = openTestReconciler();
    wanted.set('a', 1);
    run();
    await clock.advance(0);
    wanted.delete('a');
    last().fail(refusal('NO_REPLY'));
    reconciler.wake('a');
    await clock.advance(3_600_000);
    expect(attempts).toHaveLength(1);
    expect(reconciler.failure('a')).toBeUndefined();
  });

  it('reads the table again after a quarter of an hour although no one woke it', async () => {
    const { clock, wanted, attempts, run } = openTestReconciler();
    run();
    await clock.advance(0);
    wanted.set('a', 1);
    await clock.advance(900_000);
    expect(attempts).toHaveLength(1);
  });

  it('ends with its attempts, counts none of them as failed, and begins again with what is due', async () => {
    const { clock, wanted, attempts, run, reconciler } = openTestReconciler();
    wanted.set('a', 1);
    const { end } = run();
    await clock.advance(0);
    expect(await end()).toMatchObject({ message: 'over' });
    expect(attempts[0]?.signal.aborted).toBe(true);
    expect(reconciler.failure('a')).toBeUndefined();
    expect(clock.sleepers()).toBe(0);
    run();
    await clock.advance(0);
    expect(attempts).toHaveLength(2);
  });

  it('lets the supervisor know when the table cannot be read, and ends its attempts first', async () => {
    let readable = true;
    const begun: AbortSignal[] = [];
    const { clock, run, reconciler } = openTestReconciler({
      due() {
        if (!readable) throw new Error('disk');
        return [{ id: 'a', version: 1 }];
      },
      apply(_due, signal) {
        begun.push(signal);
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      },
    });
    const { ended } = run();
    await clock.advance(0);
    readable = false;
    reconciler.wake('a');
    expect(await ended).toMatchObject({ message: 'disk' });
    expect(begun[0]?.aborted).toBe(true);
  });
});
