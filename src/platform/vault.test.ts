import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../../test/temporary.ts';
import { openVault } from './vault.ts';

const keyFile = () => join(temporaryFolder(), 'keys', 'vault.key');

it('makes a key that only its owner can read, once', () => {
  const file = keyFile();
  const sealed = openVault(file).seal(Buffer.from('blocks'), 'row 1');
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(statSync(dirname(file)).mode & 0o777).toBe(0o700);
  expect(readdirSync(dirname(file))).toEqual(['vault.key']);
  const key = readFileSync(file);
  expect(key).toHaveLength(32);
  expect(openVault(file).open(sealed, 'row 1').toString()).toBe('blocks');
  expect(readFileSync(file).equals(key)).toBe(true);
});

it('opens a value only unchanged, in its context and with its key', () => {
  const vault = openVault(keyFile());
  const sealed = vault.seal(Buffer.from('blocks'), 'row 1');
  expect(sealed.includes('blocks')).toBe(false);
  expect(vault.seal(Buffer.from('blocks'), 'row 1').equals(sealed)).toBe(false);
  expect(() => vault.open(sealed, 'row 2')).toThrow();
  expect(() => openVault(keyFile()).open(sealed, 'row 1')).toThrow();
  for (let index = 0; index < sealed.length; index += 1) {
    const changed = Buffer.from(sealed);
    changed.writeUInt8(changed.readUInt8(index) ^ 1, index);
    expect(() => vault.open(changed, 'row 1')).toThrow();
  }
  for (const length of [0, 1, 27, sealed.length - 1])
    expect(() => vault.open(sealed.subarray(0, length), 'row 1')).toThrow();
});

it('seals nothing and much', () => {
  const vault = openVault(keyFile());
  for (const plain of [Buffer.alloc(0), Buffer.alloc(1_000_000, 7)])
    expect(vault.open(vault.seal(plain, ''), '').equals(plain)).toBe(true);
});

it('derives unrelated keys for each purpose, the same at each start', () => {
  const file = keyFile();
  const [vault, later] = [openVault(file), openVault(file)];
  expect(vault.deriveKey('audit')).toHaveLength(32);
  expect(vault.deriveKey('audit').equals(later.deriveKey('audit'))).toBe(true);
  expect(vault.deriveKey('audit').equals(vault.deriveKey('digest'))).toBe(false);
  expect(vault.digest('a', 'x')).toMatch(/^[0-9a-f]{64}$/);
  expect(vault.digest('a', 'x')).toBe(later.digest('a', 'x'));
  expect(new Set([vault.digest('a', 'x'), vault.digest('b', 'x'), vault.digest('a', 'y')]).size).toBe(3);
});

it('refuses a key that others can read, or that is not whole', () => {
  const file = keyFile();
  openVault(file);
  chmodSync(file, 0o640);
  expect(() => openVault(file)).toThrow(/can be read by others: run chmod 600/);
  chmodSync(file, 0o600);
  for (const length of [0, 31, 33]) {
    writeFileSync(file, Buffer.alloc(length));
    expect(() => openVault(file)).toThrow(/not a key of 32 bytes/);
  }
});

it('says what to do about a key that this user may not read', () => {
  const file = keyFile();
  openVault(file);
  const isRoot = process.getuid?.() === 0;
  chmodSync(dirname(dirname(file)), 0o711);
  if (!isRoot) chmodSync(file, 0o000);
  try {
    // Root reads everything: be somebody else meanwhile.
    if (isRoot) process.seteuid?.('nobody');
    for (const create of [true, false])
      expect(() => openVault(file, { create })).toThrow(`${file} may not be read by this user: run chown`);
  } finally {
    if (isRoot) process.seteuid?.(0);
    chmodSync(file, 0o600);
  }
});

it('makes no new key where there are sealed values already', () => {
  const file = keyFile();
  expect(() => openVault(file, { create: false })).toThrow(/is missing.*restore it/);
  expect(existsSync(file)).toBe(false);
});

it('makes its key in spite of a start that was cut short', () => {
  const file = keyFile();
  openVault(file);
  const other = join(dirname(file), 'other.key');
  writeFileSync(`${other}.new`, 'half');
  openVault(other);
  expect(readFileSync(other)).toHaveLength(32);
});
