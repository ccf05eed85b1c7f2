import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../clock.ts';
import { type Log, silentLog } from '../log.ts';
import { openField } from './field.ts';
import { groupsOf, startProcess } from './process.ts';

const OPTIONS = { execPath: process.execPath, clock: systemClock, log: silentLog };
const LINK = { id: 'a', protocol: 'loopback', host: 'one', options: {} };

it('may run before the field is opened; the next one is started by the field', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-process-'));
  const first = startProcess({ name: 'one', protocols: ['loopback', 'none'] }, OPTIONS);
  const kill = (pid: number) => process.kill(pid, 'SIGKILL');
  const field = openField({
    ...OPTIONS,
    directory,
    kill,
    first: { name: 'one', process: first },
    onEvent: async () => undefined,
  });
  field.open([LINK]);
  onTestFinished(async () => {
    await field[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true });
  });
  const up = () => vi.waitFor(() => expect(field.state().links[0]?.up).toBe(true), { timeout: 20_000 });
  await up();
  expect(field.state().hosts[0]?.pid).toBe(first.pid);
  field.restart('a');
  expect(await first.exited).toBe('it ended with code 0');
  await up();
  expect(field.state().hosts[0]?.pid).not.toBe(first.pid);
});

it('that has received no link ends with its channel', async () => {
  const { stream, exited } = startProcess({ name: 'one', protocols: ['loopback'] }, OPTIONS);
  stream.destroy();
  expect(await exited).toBe('it ended with code 3');
});

it('has no pieces of memory that its buffers share and only a full collection gives back', async () => {
  const says = "process.on('exit',()=>console.log(Buffer.poolSize))";
  const environment = { NODE_OPTIONS: `--import=data:text/javascript,${says}` };
  const printed: unknown[] = [];
  const warn: Log['warn'] = ({ output }) => void printed.push(output);
  const log = { ...silentLog, child: () => ({ ...silentLog, warn }) };
  const { stream, exited } = startProcess({ name: 'one', protocols: [] }, { ...OPTIONS, log, environment });
  stream.destroy();
  await exited;
  await vi.waitFor(() => expect(printed).toEqual(['0\n']));
});

it('that cannot be started has ended', async () => {
  const process = startProcess({ name: 'one', protocols: [] }, { ...OPTIONS, execPath: '/nowhere/node' });
  expect(process.pid).toBeUndefined();
  expect(await process.exited).toBe('it could not be started: spawn /nowhere/node ENOENT');
  await process.end(true);
});

it('has the protocols of its links, each once', () => {
  const links = [LINK, { ...LINK, host: 'two', protocol: 'modbus' }, LINK, { ...LINK, protocol: 'osdp' }];
  expect(groupsOf(links)).toEqual([
    { name: 'one', protocols: ['loopback', 'osdp'] },
    { name: 'two', protocols: ['modbus'] },
  ]);
});
