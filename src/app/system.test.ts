import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { manualClock } from '../../test/manual-clock.ts';
import { temporaryDatabase, temporaryFolder } from '../../test/temporary.ts';
import { openVault } from '../platform/vault.ts';
import { firstStartMark, isFirstStart, openSystem } from './system.ts';

const clock = manualClock(Date.UTC(2026, 5, 1));

async function installation() {
  const folder = temporaryFolder();
  const database = await temporaryDatabase(folder);
  const vaultFile = join(folder, 'vault.key');
  const start = (configuredId?: string, synchronised = false) => {
    const vault = openVault(vaultFile);
    const time = { now: clock.now, synchronised: () => synchronised };
    return openSystem({ database, time, vault, vaultFile, configuredId });
  };
  return { vaultFile, start };
}

it('stays the same system over its starts, which it counts', async () => {
  const { start } = await installation();
  const [first, second] = [await start(), await start()];
  expect(second.systemId).toBe(first.systemId);
  expect(second.epoch).toBe(first.epoch + 1);
  await expect(start('11111111-2222-4333-8444-555555555555')).rejects.toThrow('the database belongs to');
});

it('keeps the root of its site CA, and begins with it what begins once', async () => {
  const { start } = await installation();
  const first = await start();
  expect(first.rootFingerprint).toBeNull();
  const begun: string[] = [];
  await first.keepRoot('AA:BB', () => begun.push('once'));
  const second = await start();
  expect(second.rootFingerprint).toBe('AA:BB');
  await second.keepRoot('AA:BB', () => begun.push('again'));
  expect(begun).toEqual(['once']);
});

it('keeps the newest time at which its clock could be trusted', async () => {
  const { start } = await installation();
  expect(await (await start()).trustedTime()).toBe(0);
  const right = clock.now();
  expect(await (await start(undefined, true)).trustedTime()).toBe(right);
  clock.jumpWall(86_400_000);
  const later = await start(undefined, true);
  expect(await later.trustedTime()).toBe(clock.now());
  expect(await (await start()).trustedTime()).toBe(right + 86_400_000);
  // Within the hour it is known, and not written for each minute.
  clock.jumpWall(60_000);
  expect(await later.trustedTime()).toBe(clock.now());
  expect(await (await start()).trustedTime()).toBe(right + 86_400_000);
});

it('refuses another vault key, naming the file', async () => {
  const { vaultFile, start } = await installation();
  await start();
  writeFileSync(vaultFile, Buffer.alloc(32, 1));
  await expect(start()).rejects.toThrow(
    `${vaultFile} is not the key this database was written with: restore`,
  );
});

it('distinguishes a first start from a lost database', () => {
  const folder = temporaryFolder();
  const [file, pki] = [join(folder, 'gatehouse.db'), join(folder, 'pki')] as const;
  expect(isFirstStart(file, pki)).toBe(true);
  mkdirSync(pki);
  expect(isFirstStart(file, pki)).toBe(true);
  writeFileSync(join(pki, 'root.crt'), '');
  expect(() => isFirstStart(file, pki)).toThrow(`${file} is missing, but ${pki} is there: restore`);
  writeFileSync(file, '');
  expect(isFirstStart(file, pki)).toBe(false);
  rmSync(pki, { recursive: true });
  expect(isFirstStart(file, pki)).toBe(false);
});

it('distinguishes a first start that was cut short from a lost database and site CA of which the key is left', () => {
  const folder = temporaryFolder();
  const [file, pki, key] = [
    join(folder, 'gatehouse.db'),
    join(folder, 'pki'),
    join(folder, 'vault.key'),
  ] as const;
  expect(isFirstStart(file, pki, key)).toBe(true);
  writeFileSync(key, '');
  expect(() => isFirstStart(file, pki, key)).toThrow(`${file} and ${pki} are missing, but ${key} is there`);
  writeFileSync(firstStartMark(key), '');
  expect(isFirstStart(file, pki, key)).toBe(true);
});
