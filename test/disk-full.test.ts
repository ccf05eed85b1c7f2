/** A daemon whose disk runs full while it works, and while it starts: what goes on, what waits, and how it comes back. */
import { randomUUID } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { drawKeys, openTestSite } from './simulators/test-site.ts';
import { isTerminalEvent } from './simulators/upstream.ts';
import { canMount, onSmallDisk } from './small-disk.ts';

vi.setConfig({ testTimeout: 300_000 });

/** The daemon looks at its disk every 5 s, once it has started. */
const SOON = { timeout: 60_000, interval: 100 };
const TIMINGS = { startMs: 5, placeMs: 5, detectMs: 5, writeMs: 10, reconnectMs: 50, repeatMs: 200 };

it.skipIf(!canMount())(
  'keeps serving on a full disk, promises nothing it cannot keep, and recovers by itself',
  async () => {
    await using site = await openTestSite();
    const { daemon, tokens } = site;
    const encoder = await site.addEncoder('desk', { timings: TIMINGS });
    const disk = await onSmallDisk(site);
    encoder.start();
    await encoder.process.waitFor(({ event }) => event === 'connected');

    const create = (label: string) => daemon.callLocally('POST', '/tokens', { label, roles: ['pms'] });
    const all = async () => {
      const items: Token[] = [];
      for (let next: string | null = ''; next !== null; ) {
        const { body } = await daemon.callLocally('GET', `/tokens?limit=100${next && `&cursor=${next}`}`);
        items.push(...(body.items as Token[]));
        next = body.next as string | null;
      }
      return items;
    };
    const status = async () => (await daemon.callLocally('GET', '/local/status')).body as unknown as Shown;
    const read = () => daemon.call('GET', '/encoder/desk', tokens['service-tool']);

    disk.fill();
    // What the write-ahead log has room for already is still stored.
    const stored: string[] = [];
    const refused = await vi.waitFor(
      async () => {
        const label = randomUUID();
        const answer = await create(label);
        if (answer.status === 200) stored.push(label);
        expect(answer.status).toBe(503);
        return answer;
      },
      { timeout: 60_000, interval: 0 },
    );
    expect(refused.body).toMatchObject({
      error: 'STORAGE_UNAVAILABLE',
      message: expect.stringMatching(/disk is full/),
    });
    expect(refused.headers['retry-after']).toBe('5');

    // Everything that only reads goes on, and so does what must: rights can be taken away, and the audit knows.
    expect(await read()).toMatchObject({
      status: 200,
      body: { connectionState: { connected: true } },
    });
    expect((await status()).database.space).toBe('full');
    expect((await daemon.callLocally('GET', '/readyz')).status).toBe(503);
    expect((await daemon.callLocally('GET', '/healthz')).status).toBe(200);
    const pms = (await all()).find(({ label }) => label.endsWith('pms'));
    expect((await daemon.callLocally('DELETE', `/tokens/${pms?.id}`)).status).toBe(200);
    expect((await daemon.call('GET', '/encoder', tokens.pms)).status).toBe(401);
    expect((await site.requestWrite('desk', 'refused', drawKeys([randomUUID()]))).status).toBe(503);

    // An encoder that comes now is heard but not believed: what it says is not acknowledged, its connection stays.
    await encoder.kill();
    encoder.start();
    await vi.waitFor(
      async () => expect((await read()).body).toMatchObject({ connectionState: { connected: false } }),
      SOON,
    );

    disk.makeRoom();
    await vi.waitFor(async () => expect((await status()).database.space).toBe('plenty'), SOON);
    await vi.waitFor(
      async () => expect((await read()).body).toMatchObject({ connectionState: { connected: true } }),
      SOON,
    );
    expect((await create('after')).status).toBe(200);
    const keyId = randomUUID();
    expect((await site.requestWrite('desk', 'accepted', drawKeys([keyId]))).status).toBe(202);
    const { data } = await site.upstream.waitFor(
      (event) => event.subject === keyId && isTerminalEvent(event),
    );
    expect(data.status).toBe('written');
    const verified = await daemon.callLocally('POST', '/local/audit/verify', {});
    expect(verified.body).toMatchObject({ fault: null });

    // And once more, full from the start on.
    await daemon.kill();
    disk.fill();
    // Resolves when the daemon is ready to store things, which may take room.
    const ready = daemon.start();
    // The log still has room from the time before.
    const isOut = async () => expect(['short', 'full']).toContain((await status()).database.space);
    await vi.waitFor(isOut, SOON);
    const labels = (await all()).map(({ label }) => label);
    expect(labels).toEqual(expect.arrayContaining([...stored, 'after']));
    disk.makeRoom();
    await ready;
    expect((await create('at last')).status).toBe(200);
  },
);

it.skipIf(!canMount())(
  'starts on a disk that has run full since it was stopped, serves reads and urgent work, and says what is missing where it cannot',
  async () => {
    await using site = await openTestSite();
    const { daemon, directory } = site;
    const disk = await onSmallDisk(site);
    const status = async () => (await daemon.callLocally('GET', '/local/status')).body as unknown as Shown;
    const create = (label: string) => daemon.callLocally('POST', '/tokens', { label, roles: ['pms'] });
    const revoke = ({ body }: { body: Record<string, unknown> }) =>
      daemon.callLocally('DELETE', `/tokens/${body.id}`);
    const launchedFull = async () => {
      disk.fill();
      daemon.launch();
      // The room has been looked at, too: until then everything is stored that fits.
      const refuses = { space: 'full', plentyBytes: expect.any(Number) };
      await vi.waitFor(async () => expect((await status()).database).toMatchObject(refuses), SOON);
    };
    const stop = async () => {
      process.kill(daemon.pid, 'SIGTERM');
      await daemon.exited();
    };
    const tokens = [await create('a'), await create('b'), await create('c')];

    // In turn: with its ballast; with what is left of that after a stop, and after a kill.
    for (const [index, token] of tokens.entries()) {
      await (index === 2 ? daemon.kill() : stop());
      await launchedFull();
      expect((await create('refused')).status).toBe(503);
      expect((await daemon.callLocally('GET', '/tokens')).status).toBe(200);
      expect((await revoke(token)).status).toBe(200);
    }
    disk.makeRoom();
    await vi.waitFor(async () => expect((await status()).database.space).toBe('plenty'), SOON);

    await stop();
    rmSync(join(directory, 'data', 'ballast'));
    disk.fill();
    daemon.launch();
    const lastLines = () => readFileSync(daemon.logFile, 'utf8').split('\n').slice(-3).join('\n');
    await vi.waitFor(() => expect(lastLines()).toMatch(/is full, 0 KiB are free: .* 2048 KiB more/), SOON);
    disk.makeRoom();
    await daemon.exited();
    expect(lastLines()).not.toContain('    at ');
    await daemon.start();
    expect((await create('at last')).status).toBe(200);
  },
);

interface Shown {
  database: { space: string };
}

interface Token {
  id: string;
  label: string;
}
