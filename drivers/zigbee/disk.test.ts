/** A disk that takes nothing any more: doors are served without it, and what was to be stored is when it takes it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import {
  CONFIRMED,
  folder,
  hurried,
  joined,
  LOCK,
  OTHER_LOCK,
  opened,
  simulated,
  unlockOf,
} from '../../test/drivers/zigbee/gateway.ts';
import { canMount, smallDisk } from '../../test/small-disk.ts';
import { disk } from './kept-files.ts';

vi.setConfig({ testTimeout: 90_000 });

interface FailingDisk {
  folder: string;
  begin(): void;
  end(): void;
}

function fullDisk(): FailingDisk {
  const { folder, fill, makeRoom } = smallDisk(1_048_576);
  return { folder, begin: fill, end: makeRoom };
}

function readOnlyDisk(): FailingDisk {
  const { folder, setReadOnly } = smallDisk(1_048_576);
  return { folder, begin: () => setReadOnly(true), end: () => setReadOnly(false) };
}

function brokenDisk(): FailingDisk {
  const fails = () => {
    throw Object.assign(new Error('EIO: i/o error, write'), { code: 'EIO' });
  };
  const spies = [vi.spyOn(disk, 'replace'), vi.spyOn(disk, 'prepare')];
  const end = () => {
    for (const spy of spies) spy.mockRestore();
  };
  onTestFinished(end);
  return {
    folder: folder(),
    begin() {
      for (const spy of spies) spy.mockImplementation(fails);
    },
    end,
  };
}

const DISKS: [string, () => FailingDisk][] = [['broken', brokenDisk]];
if (canMount()) DISKS.push(['full', fullDisk], ['read-only', readOnlyDisk]);

/** Tries again at once what the disk did not take. */
const hasty = hurried('kept-files', 5_000);

const order = { hwId: LOCK, pin: null };

it.each(DISKS)('a link whose disk is %s executes commands, is closed, and opened again', async (_, fail) => {
  const site = await simulated({ locks: [{ ieee: LOCK }, { ieee: OTHER_LOCK }] });
  const failing = fail();
  const stateDirectory = join(failing.folder, 'state');
  const first = await opened(site, { stateDirectory }, { clock: hasty });
  await joined(first, site);
  expect(await first.execute('standOpen', order)).toEqual({ outcome: 'confirmed' });
  failing.begin();
  expect(await first.execute('endStandOpen', order)).toMatchObject({ outcome: 'confirmed' });
  const code = { hwId: OTHER_LOCK, code: '83fed3407a939723a5c639b26916d505c3b5' };
  const window = { seconds: 60, allowed: [OTHER_LOCK], installCodes: [code] };
  // Only what is stored can be given back to the lock, finished after a crash, or taken back from the coordinator.
  for (const [kind, data] of [
    ['standOpen', order],
    ['moveChannel', { channel: 20 }],
    ['permitJoin', window],
  ] as const)
    await expect(first.execute(kind, data), kind).rejects.toMatchObject({ code: 'REFUSED' });
  expect(await site.state(LOCK)).toMatchObject({ lockState: 1, operatingMode: 0 });
  expect((await site.stats()).stick.channel).toBe(15);
  await joined(first, site, OTHER_LOCK);
  await site.drop();
  expect(await first.ended).toMatchObject({ code: 'LINK_LOST' });
  await first.close();

  const knownLocks = [LOCK, OTHER_LOCK];
  const again = await opened(site, { stateDirectory, knownLocks }, { clock: hasty });
  for (const hwId of knownLocks) expect(await again.execute('unlock', unlockOf(hwId))).toEqual(CONFIRMED);
  const database = () => readFileSync(join(stateDirectory, 'database.db'), 'utf8');
  expect(database()).toContain('"standing":{');
  expect(again.logged.join('\n')).toContain('files of the network cannot be stored');
  failing.end();
  await expect.poll(database).toContain(OTHER_LOCK);
  expect(database()).not.toContain('"standing":{');
  await expect.poll(() => again.logged.join('\n')).toContain('the files of the network are stored again');
});

it.each(DISKS)('a start with a disk that is %s needs nothing of it', async (_, fail) => {
  const site = await simulated({ locks: [{ ieee: LOCK }] });
  const failing = fail();
  const stateDirectory = join(failing.folder, 'state');
  const first = await opened(site, { stateDirectory });
  await joined(first, site);
  await first.close();
  failing.begin();
  const again = await opened(site, { stateDirectory, knownLocks: [LOCK] });
  expect(await again.execute('unlock', unlockOf(LOCK))).toEqual(CONFIRMED);
  await again.close();
  failing.end();
});

it('nothing is written by a start that finds everything as it was', async () => {
  const site = await simulated({ locks: [{ ieee: LOCK }] });
  const stateDirectory = folder();
  const first = await opened(site, { stateDirectory });
  await joined(first, site);
  await first.close();
  const replace = vi.spyOn(disk, 'replace');
  onTestFinished(() => replace.mockRestore());
  const again = await opened(site, { stateDirectory, knownLocks: [LOCK] });
  expect(await again.execute('unlock', unlockOf(LOCK))).toEqual(CONFIRMED);
  const written = replace.mock.calls.map(([path]) => path);
  expect(written.filter((path) => path.startsWith(stateDirectory))).toEqual([]);
});
