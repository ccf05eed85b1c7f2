/** A restore that is killed at each of the steps that put things in place, as by a power cut. */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { backedUp, restore, rowsIn, tokensIn } from '../../test/cli/archives.ts';
import { openTestGateway } from '../../test/gateway.ts';
import { temporaryFolder } from '../../test/temporary.ts';
import { assertFinished } from './leftovers.ts';

vi.setConfig({ testTimeout: 120_000 });

/** What a kill lets happen: so many more of these calls, and nothing after them, not even to clear up. */
const life = vi.hoisted(() => ({ left: Number.POSITIVE_INFINITY, renamesLeft: Number.POSITIVE_INFINITY }));
vi.mock('node:fs', async (original) => {
  const fs = await original<typeof import('node:fs')>();
  const mortal = <Args extends unknown[], Result>(call: (...args: Args) => Result) =>
    vi.fn((...args: Args) => {
      life.left -= 1;
      if (life.left < 0) throw new Error('killed');
      return call(...args);
    });
  return {
    ...fs,
    renameSync: mortal((...args: Parameters<typeof fs.renameSync>) => {
      life.renamesLeft -= 1;
      if (life.renamesLeft < 0) throw new Error('the disk fails');
      fs.renameSync(...args);
    }),
    linkSync: mortal(fs.linkSync),
    fchmodSync: mortal(fs.fchmodSync),
    rmSync: mortal(fs.rmSync),
    mkdtempSync: mortal(fs.mkdtempSync),
  };
});

/** Runs `attempt` in a world of its own for each number of calls before the kill, until it comes to its end. */
async function atEachStep(attempt: (calls: number) => Promise<number>): Promise<number> {
  for (let calls = 0; ; calls += 1) if ((await attempt(calls)) === 0) return calls;
}

async function killed(after: number, work: () => Promise<number>): Promise<number> {
  life.left = after;
  try {
    return await work();
  } catch {
    return 1;
  } finally {
    life.left = Number.POSITIVE_INFINITY;
  }
}

/** With the modes of what is in it. */
function copyFolder(from: string, to: string): void {
  execFileSync('cp', ['-a', `${from}/.`, to]);
}

const systemIdIn = (data: string) =>
  rowsIn<{ id: string }>(join(data, 'gatehouse.db'), 'SELECT system_id AS id FROM system')[0]?.id;

/** Undefined when a start may go on. */
function refusal(dataDirectory: string): string | undefined {
  try {
    assertFinished(dataDirectory);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

describe('a restore that is killed', () => {
  it('leaves the system of before, or the restored one, or a start that says what to do', async () => {
    const { gateway, archive } = await backedUp();
    await gateway.close();
    const other = await openTestGateway();
    await other.token('service-tool');
    // With a log of its own, as a power cut leaves it.
    const before = temporaryFolder();
    copyFolder(other.folder, before);
    await other.close();
    expect(existsSync(join(before, 'data', 'gatehouse.db-wal'))).toBe(true);
    const seen = new Set<string>();

    const steps = await atEachStep(async (calls) => {
      const folder = temporaryFolder();
      copyFolder(before, folder);
      const site = { configFile: join(folder, 'gatehouse.yaml') };
      const data = join(folder, 'data');
      const code = await killed(calls, () => restore(site, archive));
      const refused = refusal(data);
      if (refused) {
        expect(refused).toMatch(
          /run gatehouse restore again, with the archive that .*restore-unfinished names/,
        );
        expect(readFileSync(join(data, 'restore-unfinished'), 'utf8')).toBe(`${archive}\n`);
        expect(await restore(site, archive)).toBe(0);
        expect(refusal(data)).toBeUndefined();
      }
      const isNew = systemIdIn(data) === gateway.gateway.systemId;
      const state = refused ? 'refused' : isNew ? 'new' : 'old';
      if (!seen.has(state)) await (await openTestGateway({}, folder)).close();
      seen.add(state);
      expect(tokensIn(join(data, 'gatehouse.db'))).toEqual(isNew ? ['pms'] : ['service-tool']);
      expect(isNew || !refused).toBe(true);
      // Nothing of the other system is lost: it is in place, or kept.
      const kept = existsSync(join(data, 'backups')) ? readdirSync(join(data, 'backups')) : [];
      expect(isNew).toBe(kept.length > 0);
      return code;
    });
    expect(steps).toBeGreaterThan(8);
    expect([...seen].sort()).toEqual(['new', 'old', 'refused']);
  });

  it('begins no new system with the configuration that it has brought to a blank machine', async () => {
    const { gateway, archive } = await backedUp();
    await gateway.close();
    const mask = process.umask(0o077);
    onTestFinished(() => void process.umask(mask));
    const seen = new Set<string>();
    await atEachStep(async (calls) => {
      const folder = temporaryFolder();
      const site = { configFile: join(folder, 'etc', 'gatehouse.yaml') };
      const code = await killed(calls, () => restore(site, archive));
      const data = join(folder, 'etc', 'data');
      const isConfigured = existsSync(site.configFile);
      const refused = refusal(data);
      // The file of a service that is another user than root: with the rights of the service from its first moment.
      if (isConfigured) expect(statSync(site.configFile).mode & 0o777).toBe(0o640);
      if (refused) expect(await restore(site, archive)).toBe(0);
      if (isConfigured) expect(tokensIn(join(data, 'gatehouse.db'))).toEqual(['pms']);
      seen.add(refused ? 'refused' : isConfigured ? 'new' : 'blank');
      return code;
    });
    expect([...seen].sort()).toEqual(['blank', 'new', 'refused']);
  });
});

describe('a restore on a disk that moves nothing any more from a step on', () => {
  it('is taken back, or lets no start pass and says what to do', async () => {
    const { gateway, archive } = await backedUp();
    await gateway.close();
    const other = await openTestGateway();
    await other.token('service-tool');
    await other.close();
    const seen = new Set<string>();
    await atEachStep(async (calls) => {
      const folder = temporaryFolder();
      copyFolder(other.folder, folder);
      const data = join(folder, 'data');
      const key = () => readFileSync(join(data, 'keys', 'vault.key'));
      const before = key();
      life.renamesLeft = calls;
      const code = await restore({ configFile: join(folder, 'gatehouse.yaml') }, archive).catch(() => 1);
      life.renamesLeft = Number.POSITIVE_INFINITY;
      const refused = refusal(data);
      seen.add(code === 0 ? 'new' : refused ? 'refused' : 'old');
      if (code !== 0 && !refused) expect(key()).toEqual(before);
      if (refused) expect(await restore({ configFile: join(folder, 'gatehouse.yaml') }, archive)).toBe(0);
      return code;
    });
    expect([...seen].sort()).toEqual(['new', 'old', 'refused']);
  });
});
