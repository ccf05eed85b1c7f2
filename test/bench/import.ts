/** The desk while a site of 5,000 doors is imported, beside the same without an import. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { openTestSite } from '../simulators/test-site.ts';
import { connectEncoders, residentMegabytes } from './desk.ts';
import { openRequests, type Requests } from './requests.ts';
import { drawSite, storeSite, WIRING } from './stored-site.ts';
import { type BenchTable, quantile, type Row } from './table.ts';

const ENCODERS = 50;
const DOORS = 5_000;
/** Of the first imported door; those that are there before have the ones below. */
const ACCESS_POINT = 10_000;
/** Each a write request and a GET of a door. */
const PER_SECOND = 25;
const QUIET_SECONDS = 20;
const TARGET_MORE_MS = 10;
const MEMORY_LOOK_MS = 50;

interface Samples {
  delivered: number[];
  read: number[];
}

export async function benchImport(): Promise<BenchTable> {
  await using site = await openTestSite({ more: WIRING });
  const paths = await storeSite(site.daemon);
  // The first start of a new version fills Node's code cache.
  await site.daemon.kill();
  await site.daemon.start();
  // Before anything is measured: the measuring process stands still meanwhile.
  const { document } = drawSite({ doors: DOORS, accessPointId: ACCESS_POINT, devices: 0 });
  const asked = new Map<string, number>();
  let samples: Samples = { delivered: [], read: [] };
  await using _encoders = await connectEncoders(
    site,
    (message) => {
      const sent = message.event === 'write' ? asked.get(message.requestId) : undefined;
      if (sent !== undefined) samples.delivered.push(performance.now() - sent);
    },
    ENCODERS,
  );
  using requests = openRequests(site);
  const desk = async (until: Promise<unknown>) => {
    samples = { delivered: [], read: [] };
    await drive(requests, paths, { asked, samples, until });
    return samples;
  };
  await desk(sleep(QUIET_SECONDS * 500));
  const quiet = await desk(sleep(QUIET_SECONDS * 1_000));
  const before = residentMegabytes(site.daemon.pid);
  const first = await watched(site.daemon.pid, desk, () => site.daemon.importSite(document));
  const again = await watched(site.daemon.pid, desk, () =>
    site.daemon.importSite({ systemConfigVersion: 2 }),
  );
  const after = residentMegabytes(site.daemon.pid);
  return {
    title: `An import of ${DOORS} doors while ${ENCODERS} encoders take ${PER_SECOND} write requests/s and ${PER_SECOND} doors/s are read`,
    rows: [
      ...rowsOf('nothing is imported', quiet),
      ...rowsOf(`${DOORS} doors are imported`, first.samples, quiet),
      ...rowsOf(`a new system configuration version reaches all doors`, again.samples, quiet),
      { what: 'the import takes', figure: `${(first.milliseconds / 1_000).toFixed(1)} s` },
      {
        what: 'memory before, at most while importing, after',
        figure: `${before}, ${Math.max(first.most, again.most)}, ${after} MB`,
      },
    ],
    notes: ['client, encoders, notification service and daemon share the machine'],
  };
}

async function watched(
  pid: number,
  desk: (until: Promise<unknown>) => Promise<Samples>,
  work: () => Promise<unknown>,
): Promise<{ samples: Samples; most: number; milliseconds: number }> {
  const begun = performance.now();
  let milliseconds = 0;
  const working = work().then(() => {
    milliseconds = performance.now() - begun;
  });
  let most = 0;
  const look = setInterval(() => {
    most = Math.max(most, residentMegabytes(pid));
  }, MEMORY_LOOK_MS);
  // What is sent to the doors afterwards is a part of it.
  const samples = await desk(Promise.all([working, sleep(QUIET_SECONDS * 250)]));
  clearInterval(look);
  return { samples, most, milliseconds };
}

/** Requests leave at their pace, whatever the answers do. */
async function drive(
  requests: Requests,
  paths: readonly string[],
  { asked, samples, until }: { asked: Map<string, number>; samples: Samples; until: Promise<unknown> },
): Promise<void> {
  let isOver = false;
  const over = until.finally(() => {
    isOver = true;
  });
  const answers: Promise<unknown>[] = [];
  const begun = performance.now();
  for (let index = 0; !isOver; index += 1) {
    await sleep(Math.max(0, begun + (index * 1_000) / PER_SECOND - performance.now()));
    const requestId = randomUUID();
    const data = [{ keyId: randomUUID(), blocks: ['00112233445566778899aabbccddeeff'] }];
    asked.set(requestId, performance.now());
    const path = `/encoder/bench-${index % ENCODERS}/write-request/${requestId}`;
    answers.push(expectStatus(requests.send('PUT', path, 'front-desk', { data }), 202));
    const read = expectStatus(
      requests.send('GET', paths[index % paths.length] ?? '', 'front-desk-admin'),
      200,
    );
    answers.push(read.then((milliseconds) => samples.read.push(milliseconds)));
  }
  await over;
  await Promise.all(answers);
}

async function expectStatus(answer: ReturnType<Requests['send']>, expected: number): Promise<number> {
  const { status, milliseconds, body } = await answer;
  if (status !== expected) throw new Error(`a request was answered ${status}: ${body}`);
  return milliseconds;
}

function rowsOf(when: string, { delivered, read }: Samples, quiet?: Samples): Row[] {
  return [
    row(`write request → encoder, ${when}`, delivered, quiet?.delivered),
    row(`GET of a door, ${when}`, read, quiet?.read),
  ];
}

function row(what: string, samples: readonly number[], quiet: readonly number[] | undefined): Row {
  const p99 = quantile(samples, 0.99);
  const figure = `p50 ${quantile(samples, 0.5).toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, longest ${Math.max(...samples).toFixed(0)} ms of ${samples.length}`;
  if (!quiet) return { what, figure };
  const most = quantile(quiet, 0.99) + TARGET_MORE_MS;
  return { what, figure, target: `p99 ≤ ${most.toFixed(1)} ms`, met: p99 <= most };
}
