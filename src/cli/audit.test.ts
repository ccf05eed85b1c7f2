import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { openLocalDaemon } from '../../test/local-daemon.ts';
import { openTestAudit, type TestAudit } from '../../test/services/audit/audit.ts';
import { type TestShell, testShell } from '../../test/shell.ts';
import { temporaryFolder } from '../../test/temporary.ts';
import { auditOperations } from '../services/audit/operations.ts';
import { run } from './program.ts';

let opened: TestAudit;
let shell: TestShell;
let socket: string;
let file: string;

beforeEach(async () => {
  opened = await openTestAudit();
  for (let n = 0; n < 5; n += 1) await opened.record(`encoder/${n}`);
  ({ socket } = await openLocalDaemon(auditOperations(opened.audit)));
  file = join(temporaryFolder(), 'audit.jsonl');
  shell = testShell();
});

async function audit(...argv: string[]): Promise<number> {
  shell.written = Object.assign(shell.written, { stdout: '', stderr: '' });
  return run(['audit', ...argv, '--socket', socket], shell);
}
const lines = () =>
  readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);

describe('audit export', () => {
  it('writes every entry and a checkpoint, for no one else to read', async () => {
    expect(await audit('export', '--out', file)).toBe(0);
    expect(lines().map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 6]);
    expect(lines()[3]).toMatchObject({ object: 'encoder/2', principal: { label: 'Ada' } });
    expect(lines().at(-1)).toMatchObject({ checkpoint: expect.any(String) });
    expect(statSync(file).mode & 0o077).toBe(0);
    expect(existsSync(`${file}.new`)).toBe(false);
    expect(shell.written.stderr).toContain('6 entries');
  });

  it('takes a part, chosen by time', async () => {
    await opened.clock.advance(3_600_000);
    await opened.record('encoder/late');
    const from = new Date(opened.clock.now() - 1_000).toISOString();
    expect(await audit('export', '--out', file, '--from', from)).toBe(0);
    expect(lines().map(({ object }) => object)).toEqual(['encoder/late', undefined]);
    expect(await audit('export', '--out', file, '--to', from, '--json')).toBe(0);
    expect(JSON.parse(shell.written.stdout)).toMatchObject({ file, entries: 6, checkpoint: { seq: 7 } });
  });

  it.each([
    [['--from', 'yesterday'], 2],
    [['--out', '/nowhere/at/all'], 1],
  ])('%s is refused', async (argv, code) => {
    expect(await audit('export', '--out', file, ...argv)).toBe(code);
    if (argv[1] === '/nowhere/at/all')
      expect(shell.written.stderr).toContain('there is no folder /nowhere/at');
    expect(existsSync(file)).toBe(false);
  });
});

describe('audit verify', () => {
  it('says that all is well', async () => {
    expect(await audit('verify')).toBe(0);
    expect(shell.written.stdout).toContain('intact: 6 entries');
    expect(await audit('verify', '--json')).toBe(0);
    expect(JSON.parse(shell.written.stdout)).toMatchObject({ intact: true, entries: 6 });
  });

  it('names the first bad entry and ends with 1', async () => {
    await opened.withoutTriggers();
    await opened.tamper("UPDATE audit SET actor = 'Eve' WHERE seq = 4");
    expect(await audit('verify')).toBe(1);
    expect(shell.written.stdout).toContain('entry 4 is not what was written');
    expect(await audit('verify', '--json')).toBe(1);
    expect(JSON.parse(shell.written.stdout)).toEqual({ intact: false, firstBad: 4, reason: 'changed' });
  });

  it('finds newest entries taken away, with an export kept elsewhere or its last line alone', async () => {
    await audit('export', '--out', file);
    expect(await audit('verify', '--checkpoint', file)).toBe(0);
    expect(shell.written.stdout).toContain('as the checkpoint says');
    await opened.withoutTriggers();
    await opened.tamper('DELETE FROM audit WHERE seq >= 5');
    await opened.tamper("UPDATE sqlite_sequence SET seq = 4 WHERE name = 'audit'");
    await opened.tamper('DELETE FROM audit_checkpoint');
    expect(await audit('verify')).toBe(0);
    expect(await audit('verify', '--checkpoint', file)).toBe(1);
    expect(shell.written.stdout).toContain('entry 5 is missing');
    writeFileSync(file, `${String(lines().at(-1)?.checkpoint)}\n`);
    expect(await audit('verify', '--checkpoint', file)).toBe(1);
  });

  it('verifies many pages', async () => {
    await opened.database.commit(() => {
      const entry = { action: 'a.b', object: 'x', outcome: 'done', correlationId: 'c' };
      for (let n = 0; n < 25_000; n += 1)
        opened.audit.record({ principal: { id: 'p', label: 'l' }, ...entry });
    });
    expect(await audit('verify', '--json')).toBe(0);
    expect(JSON.parse(shell.written.stdout)).toMatchObject({ intact: true, entries: 25_006 });
    await opened.withoutTriggers();
    await opened.tamper('DELETE FROM audit WHERE seq = 20123');
    expect(await audit('verify')).toBe(1);
    expect(shell.written.stdout).toContain('entry 20123 is missing');
  });

  it.each([
    ['', 2, 'does not end with a checkpoint'],
    ['{"seq":1', 2, 'cannot be read'],
    ['{"seq":1}\n', 2, 'does not end with a checkpoint'],
    ['eyJ.eyJ.x', 1, 'not a checkpoint of this site'],
  ])('refuses the checkpoint %j', async (content, code, message) => {
    writeFileSync(file, content);
    expect(await audit('verify', '--checkpoint', file)).toBe(code);
    expect(shell.written.stderr).toContain(message);
  });
});
