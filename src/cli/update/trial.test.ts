/** An update that is cut short anywhere ends with one release that works; an ill one is not accepted. */
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { manualClock } from '../../../test/manual-clock.ts';
import { temporaryFolder } from '../../../test/temporary.ts';
import { openReleases, type Plan } from './releases.ts';
import { type Service, takeBack, tryOut } from './trial.ts';

vi.setConfig({ testTimeout: 240_000 });

const FIXTURE = join(import.meta.dirname, '../../../test/cli/killed-update.ts');
const PLAN: Plan = {
  from: 'base',
  to: 'releases/2.0.0',
  version: '2.0.0',
  schema: 1,
  links: ['bus-1'],
  waitSeconds: 60,
};
/** More than either has. */
const STEPS_MAX = 60;

/** As the package leaves it, with a database of schema 1. */
function installed(folder = temporaryFolder()): string {
  mkdirSync(join(folder, 'lib/base'), { recursive: true });
  writeFileSync(join(folder, 'lib/base/whole'), '');
  symlinkSync('base', join(folder, 'lib/current'));
  mkdirSync(join(folder, 'data/backups'), { recursive: true });
  writeFileSync(join(folder, 'data/schema'), '1');
  return folder;
}

/** False: there is no such step, and it came to its end. */
function killedAt(step: number, what: 'update' | 'back', folder: string): boolean {
  const { status, signal, stderr } = spawnSync(process.execPath, [FIXTURE, what, folder, `${step}`], {
    encoding: 'utf8',
  });
  expect(status === 0 || signal === 'SIGKILL', stderr).toBe(true);
  return signal === 'SIGKILL';
}

/** What systemd runs before the next start, and then again: nothing is left to do. */
function started(folder: string): { release: string; schema: string } {
  expect(killedAt(0, 'back', folder)).toBe(false);
  const releases = openReleases(join(folder, 'lib'));
  expect(releases.pending()).toBeUndefined();
  expect(existsSync(join(folder, 'lib/current/whole'))).toBe(true);
  return { release: releases.current(), schema: readFileSync(join(folder, 'data/schema'), 'utf8') };
}

describe('an update that is killed', () => {
  it('at any step, leaves the old release with its database, or the new one with its own', () => {
    const ends = new Set<string>();
    let step = 1;
    for (; step < STEPS_MAX; step += 1) {
      const folder = installed();
      const isKilled = killedAt(step, 'update', folder);
      const { release, schema } = started(folder);
      ends.add(`${release} ${schema}`);
      if (!isKilled) break;
      // It can be done again afterwards.
      if (release === 'base') expect(killedAt(0, 'update', folder)).toBe(false);
      expect(started(folder)).toEqual({ release: 'releases/2.0.0', schema: '2' });
    }
    expect(step).toBeGreaterThan(15);
    expect([...ends].sort()).toEqual(['base 1', 'releases/2.0.0 2']);
  });

  it('on trial, is taken back by the next start, which may be killed at any step itself', () => {
    const onTrial = installed();
    cpSync(join(onTrial, 'lib/base'), join(onTrial, 'lib/releases/2.0.0'), { recursive: true });
    const releases = openReleases(join(onTrial, 'lib'));
    expect(releases.begin(PLAN)).toBe(true);
    releases.switchTo(PLAN.to);
    writeFileSync(join(onTrial, 'data/backups/gatehouse.db.schema-1'), '1');
    writeFileSync(join(onTrial, 'data/schema'), '2');
    let step = 1;
    for (; step < STEPS_MAX; step += 1) {
      const folder = mkdtempSync(join(temporaryFolder(), 'copy-'));
      cpSync(onTrial, folder, { recursive: true, verbatimSymlinks: true });
      const isKilled = killedAt(step, 'back', folder);
      expect(started(folder)).toEqual({ release: 'base', schema: '1' });
      if (!isKilled) break;
    }
    expect(step).toBeGreaterThan(5);
  });
});

it('keeps the database where the former release runs on it', async () => {
  const folder = installed();
  mkdirSync(join(folder, 'lib/releases/2.0.0'), { recursive: true });
  const releases = openReleases(join(folder, 'lib'));
  releases.begin(PLAN);
  releases.switchTo(PLAN.to);
  const restore = vi.fn();
  await takeBack(releases, { directory: join(folder, 'data'), oldest: () => PLAN.schema, restore });
  expect(restore).not.toHaveBeenCalled();
  expect(releases.current()).toBe('base');
});

describe('the trial', () => {
  const whole = () => {
    const folder = installed();
    mkdirSync(join(folder, 'lib/releases/2.0.0'), { recursive: true });
    const releases = openReleases(join(folder, 'lib'));
    expect(releases.begin(PLAN)).toBe(true);
    return releases;
  };
  const link = (up: boolean) => ({ id: 'bus-1', host: 'rs485', up, since: null, lastError: null });
  const saying = (status: () => Awaited<ReturnType<Service['status']>>): Service => ({
    stop: async () => {},
    start: async () => {},
    status: async () => status(),
  });
  const running = (startedAt = 'once', up = true) => ({
    version: '2.0.0',
    startedAt,
    field: { hosts: [], links: [link(up)] },
  });

  /** Turns the clock until the trial is over. */
  async function outcome(service: Service): Promise<{ error?: Error; accepted: boolean; seconds: number }> {
    const releases = whole();
    const clock = manualClock();
    let isOver = false;
    const trial = tryOut(releases, service, clock).then(
      () => undefined,
      (error: Error) => error,
    );
    void trial.then(() => {
      isOver = true;
    });
    while (!isOver) await clock.advance(500);
    const error = await trial;
    return { ...(error && { error }), accepted: !releases.pending(), seconds: clock.monotonic() / 1_000 };
  }

  it('accepts what is ready with its links for ten seconds', async () => {
    expect(await outcome(saying(() => running()))).toMatchObject({ accepted: true });
  });

  it.each<[string, Service, string]>([
    ['does not answer', saying(() => undefined), 'the service does not answer'],
    ['lacks a link', saying(() => running('once', false)), 'these links are not back: bus-1'],
    ['is another version', saying(() => ({ ...running(), version: '1.0.0' })), 'the service is 1.0.0'],
  ])('leaves an update pending that %s', async (_name, service, reason) => {
    const { error, accepted, seconds } = await outcome(service);
    expect(error?.message).toContain(`2.0.0 is taken back: after 60 s ${reason}`);
    expect(accepted).toBe(false);
    expect(seconds).toBeLessThan(65);
  });

  it('leaves one pending that is ready again and again, and dies each time', async () => {
    let asked = 0;
    const dying = saying(() => {
      asked += 1;
      return asked % 8 === 0 ? undefined : running(`start ${Math.floor(asked / 8)}`);
    });
    expect((await outcome(dying)).accepted).toBe(false);
  });
});

it('takes nothing back where the copy of the database is missing', async () => {
  const folder = installed();
  const releases = openReleases(join(folder, 'lib'));
  releases.workshop();
  expect(releases.begin(PLAN)).toBe(true);
  expect(releases.begin(PLAN)).toBe(false);
  releases.switchTo(PLAN.to);
  const data = { directory: join(folder, 'data'), oldest: () => 2, restore: async () => {} };
  await expect(takeBack(releases, data)).rejects.toThrow('base does not run on schema 2, and there is no');
  expect(releases.current()).toBe(PLAN.to);
});
