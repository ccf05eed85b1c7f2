import { expect, it, onTestFinished, vi } from 'vitest';
import { openDaemon } from './simulators/daemon.ts';
import { temporaryFolder } from './temporary.ts';

const DOORS = 1_000;
const TIMEOUT_MS = 120_000;

it(
  'kill -9 in the middle of an import loses nothing that is written, and a second import completes',
  async () => {
    const daemon = await openDaemon({
      directory: temporaryFolder(),
      http: { host: '127.0.0.1', port: 0 },
      mqtt: { host: '127.0.0.1', port: 0 },
      vendorRoots: [],
    });
    onTestFinished(() => daemon[Symbol.asyncDispose]());
    await daemon.start();
    const document = {
      schedules: [{ id: 'office', intervals: [{ days: ['mon'], start: '08:00', end: '18:00' }] }],
      doors: Array.from({ length: DOORS }, (_, index) => ({
        accessPointId: index + 1,
        name: `Room ${index + 1}`,
        scheduleId: 'office',
      })),
    };
    const { status, body } = await daemon.callLocally('POST', '/site/import', { document });
    expect(status).toBe(202);
    const job = async () => (await daemon.callLocally('GET', `/jobs/${body.id}`)).body;
    let done = 0;
    await vi.waitFor(
      async () => {
        ({ done } = (await job()).progress as { done: number });
        expect(done).toBeGreaterThan(DOORS / 10);
      },
      { timeout: 60_000, interval: 1 },
    );
    await daemon.kill();
    await daemon.start();
    expect(await job()).toMatchObject({ status: 'failed', error: { code: 'INTERRUPTED' } });
    const { counts } = (await daemon.callLocally('POST', '/site/plan', { document })).body as {
      counts: { added: number; changed: number; unchanged: number };
    };
    expect(counts).toMatchObject({ added: DOORS + 1 - counts.unchanged, changed: 0 });
    expect(counts.unchanged).toBeGreaterThanOrEqual(done);
    expect(counts.added).toBeGreaterThan(0);
    expect(await daemon.importSite(document)).toMatchObject({ written: true, counts });
    expect(await daemon.importSite(document)).toMatchObject({
      written: false,
      counts: { added: 0, changed: 0, unchanged: DOORS + 1 },
    });
  },
  TIMEOUT_MS,
);
