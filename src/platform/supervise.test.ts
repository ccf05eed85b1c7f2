import { describe, expect, it, onTestFinished } from 'vitest';
import type { DriverLog } from '../../drivers/contract/driver.ts';
import { type ManualClock, manualClock } from '../../test/manual-clock.ts';
import { DEFAULT_BACKOFF, ENDING_DEADLINE_MS, isReported, supervise, waitBefore } from './supervise.ts';

interface Line {
  level: string;
  message: string;
  fields: Record<string, unknown>;
}

function recordingLog(): DriverLog & { lines: Line[]; at(level: string): Line[] } {
  const lines: Line[] = [];
  const write = (level: string) => (fields: Record<string, unknown>, message: string) => {
    lines.push({ level, message, fields });
  };
  return {
    lines,
    at: (level) => lines.filter((line) => line.level === level),
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
  };
}

/** Runs until its signal fires, then throws the reason, as a well-behaved task does. */
function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

function supervised(
  run: (signal: AbortSignal, clock: ManualClock) => Promise<unknown>,
  random: () => number = () => 0.999_999,
): {
  clock: ManualClock;
  log: ReturnType<typeof recordingLog>;
  stop: () => Promise<void>;
  done: Promise<void>;
} {
  const clock = manualClock();
  const log = recordingLog();
  const controller = new AbortController();
  const done = supervise({
    name: 'bus 1',
    run: (signal) => run(signal, clock),
    signal: controller.signal,
    clock,
    log,
    random,
  });
  const stop = () => {
    controller.abort();
    return done;
  };
  return { clock, log, stop, done };
}

describe('the decisions', () => {
  it('doubles the ceiling from 1 s to 60 s and no further', () => {
    const ceilings = [1, 2, 3, 4, 5, 6, 7, 8, 2_000].map((n) => waitBefore(n, DEFAULT_BACKOFF, 1));
    expect(ceilings).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]);
  });

  it('jitters over the whole range', () => {
    expect(waitBefore(3, DEFAULT_BACKOFF, 0)).toBe(0);
    expect(waitBefore(3, DEFAULT_BACKOFF, 0.25)).toBe(1_000);
  });

  it('reports at growing intervals', () => {
    const reported = Array.from({ length: 100 }, (_, index) => index + 1).filter(isReported);
    expect(reported).toEqual([1, 2, 4, 8, 16, 32, 64]);
  });
});

describe('a supervised task', () => {
  it('logs an error without a stack in its message alone, others with their stack', async () => {
    const errors = [Object.assign(new Error('service away'), { stack: '' }), new TypeError('a fault')];
    const { clock, log, stop } = supervised(() => Promise.reject(errors.shift() ?? 'nothing'));
    await clock.advance(1_500);
    await stop();
    expect(log.at('warn')).toMatchObject([
      { message: 'bus 1 failed: service away', fields: { task: 'bus 1', occurrences: 1 } },
      { message: 'bus 1 failed: a fault', fields: { err: expect.any(TypeError) } },
    ]);
    expect(log.at('warn')[0]?.fields).not.toHaveProperty('err');
  });

  it('runs again after each failure, later each time, however it fails', async () => {
    const starts: number[] = [];
    const { clock, stop } = supervised((_signal, time) => {
      starts.push(time.monotonic());
      if (starts.length === 2) throw new Error('at once');
      if (starts.length === 3) return Promise.resolve('returned');
      return Promise.reject(starts.length === 4 ? undefined : new Error('later'));
    });
    await clock.advance(16_000);
    expect(starts.map((at) => Math.round(at / 1_000))).toEqual([0, 1, 3, 7, 15]);
    await stop();
  });

  it('starts over with short waits after a healthy spell, and reports the recovery once', async () => {
    const starts: number[] = [];
    const { clock, log, stop } = supervised(async (signal, time) => {
      starts.push(Math.round(time.monotonic()));
      if (starts.length === 4) {
        await time.sleep(DEFAULT_BACKOFF.healthyMs + 1, signal);
        throw new Error('cable pulled');
      }
      if (starts.length <= 5) throw new Error('cable pulled');
      await untilAborted(signal);
    });
    await clock.advance(7_500);
    expect(log.at('info')).toEqual([]);
    await clock.advance(DEFAULT_BACKOFF.healthyMs + 2_000);
    const [, , , healthy, next] = starts;
    expect((next ?? 0) - (healthy ?? 0)).toBe(DEFAULT_BACKOFF.healthyMs + 1_001);
    expect(log.at('info').map(({ message }) => message)).toEqual(['bus 1 has recovered']);
    await stop();
  });

  it('says nothing of recovery when it never failed', async () => {
    const { clock, log, stop } = supervised(untilAborted);
    await clock.advance(DEFAULT_BACKOFF.healthyMs * 3);
    await stop();
    expect(log.lines).toEqual([]);
  });

  it('writes one line for a failure that repeats, and a line at once for a different one', async () => {
    let run = 0;
    const { clock, log, stop } = supervised(
      async () => {
        run += 1;
        throw new Error(run === 7 ? 'no such device' : 'no reply');
      },
      () => 0.5,
    );
    await clock.advance(80_000);
    expect(run).toBe(8);
    expect(log.at('warn').map(({ message, fields }) => `${message} ${fields.occurrences}`)).toEqual([
      'bus 1 failed: no reply 1',
      'bus 1 failed: no reply 2',
      'bus 1 failed: no reply 4',
      'bus 1 failed: no such device 1',
    ]);
    await stop();
  });

  it('does not flood the log when every failure has a message of its own', async () => {
    let run = 0;
    const { clock, log, stop } = supervised(
      async () => {
        run += 1;
        throw new Error(`timed out after ${run} ms`);
      },
      () => 0.001,
    );
    await clock.advance(60_000);
    expect(run).toBeGreaterThan(500);
    expect(log.at('warn').length).toBeLessThan(30);
    await stop();
  });

  it('ends without waiting out the back-off', async () => {
    const { clock, stop } = supervised(() => Promise.reject(new Error('no reply')));
    await clock.advance(10);
    await stop();
    expect(clock.sleepers()).toBe(0);
  });

  it('does not start at all when the signal has already fired', async () => {
    let started = false;
    const run = async () => {
      started = true;
    };
    await supervise({
      name: 'bus 1',
      run,
      signal: AbortSignal.abort(),
      clock: manualClock(),
      log: recordingLog(),
    });
    expect(started).toBe(false);
  });

  it('ends only after the task has, and names a task that ignores its signal', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const { clock, log, stop } = supervised(() => promise);
    let ended = false;
    const stopped = stop().then(() => {
      ended = true;
    });
    await clock.advance(ENDING_DEADLINE_MS);
    expect(ended).toBe(false);
    expect(log.at('error').map(({ message }) => message)).toEqual([
      'bus 1 still runs 5000 ms after it was asked to end',
    ]);
    resolve();
    await stopped;
    expect(clock.sleepers()).toBe(0);
  });

  it('fires the signal of a run that has ended, so that nothing it left behind goes on', async () => {
    const signals: AbortSignal[] = [];
    const { clock, stop } = supervised(async (signal) => {
      signals.push(signal);
      throw new Error('no reply');
    });
    await clock.advance(1_500);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
    await stop();
  });

  it('leaves no listener on the signal of its caller, however often it fails', async () => {
    const controller = new AbortController();
    let listeners = 0;
    const { signal } = controller;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners += 1;
      add(...args);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners -= 1;
      remove(...args);
    };
    onTestFinished(() => controller.abort());
    const clock = manualClock();
    const run = () => Promise.reject(new Error('no reply'));
    const done = supervise({ name: 'bus 1', run, signal, clock, log: recordingLog(), random: () => 0.01 });
    await clock.advance(60_000);
    // At most the one of the sleep in progress.
    expect(listeners).toBeLessThanOrEqual(1);
    controller.abort();
    await done;
  });
});
