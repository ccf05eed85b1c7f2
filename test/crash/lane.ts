/** One encoder going through its runs: ask for keys, kill at the moment, start again, wait for every outcome. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { EncoderEvent } from '../simulators/encoder/commands.ts';
import type { EntryStatus } from '../simulators/encoder/journal.ts';
import type { SiteEncoder } from '../simulators/site.ts';
import { drawKeys, type KeyData, type TestSite } from '../simulators/test-site.ts';
import { type CloudEvent, isTerminalEvent } from '../simulators/upstream.ts';
import type { Run } from './plan.ts';

export interface Finished {
  run: Run;
  /** What the encoder had last reported of the run's entry when the victim was killed. */
  struckIn: EntryStatus | 'queued';
  encoder: SiteEncoder;
  requestId: string;
  entries: KeyData[];
}

export interface Lane {
  site: TestSite;
  encoder: SiteEncoder;
  /** Kills the daemon now and resolves when it serves again; one after the other for all lanes. */
  crashDaemon(): Promise<void>;
  /** Resolves when the daemon serves that was killed last. */
  daemonIsBack(): Promise<void>;
}

/** Meanwhile each other lane may crash the daemon, and then waits as well. */
const OUTCOME_TIMEOUT_MS = 240_000;
const ACCEPTED_TIMEOUT_MS = 240_000;
const RETRY_MS = 25;
/** When the moment does not come the run strikes all the same. */
const MOMENT_TIMEOUT_MS = 5_000;

export async function runOnce(lane: Lane, run: Run): Promise<Finished> {
  const { site, encoder } = lane;
  const requestId = `run-${run.number}`;
  const entries = drawKeys(Array.from({ length: run.entries }, () => randomUUID()));
  const keyId = entries[run.entry]?.keyId ?? '';
  const reported = follow(encoder, keyId);
  const moment = momentOf(lane, run, keyId, reported.reached);
  const accepted = request(lane, requestId, entries);
  if (run.moment !== 'accepted') await Promise.race([moment, sleep(MOMENT_TIMEOUT_MS)]);
  await sleep(run.delayMs);
  const struckIn = reported.last();
  await strike(lane, run);
  await accepted;
  for (const entry of entries) {
    await site.upstream.waitFor(
      (event) => event.subject === entry.keyId && isTerminalEvent(event),
      OUTCOME_TIMEOUT_MS,
    );
  }
  return { run, struckIn, encoder, requestId, entries };
}

async function strike({ encoder, crashDaemon }: Lane, { victim, losesJournal }: Run): Promise<void> {
  const daemonIsBack = victim === 'encoder' ? undefined : crashDaemon();
  if (victim !== 'daemon') {
    if (losesJournal) await encoder.loseJournal();
    else await encoder.kill();
    encoder.start();
  }
  await daemonIsBack;
}

/** What the encoder reports of one key. */
function follow(encoder: SiteEncoder, keyId: string) {
  let last: EntryStatus | 'queued' = 'queued';
  const reached = new Map<EntryStatus, () => void>();
  encoder.onMessage = (message: EncoderEvent) => {
    if (message.event !== 'entry' || message.keyId !== keyId) return;
    last = message.status;
    reached.get(message.status)?.();
  };
  return {
    last: () => last,
    reached: (status: EntryStatus) => new Promise<void>((resolve) => reached.set(status, resolve)),
  };
}

/** Resolves when the encoder reported, or the event upstream said, that the key came to the state. */
function momentOf(
  { site }: Lane,
  { moment }: Run,
  keyId: string,
  reached: (status: EntryStatus) => Promise<void>,
): Promise<unknown> {
  const status = moment.replace('upstream ', '');
  if (!moment.startsWith('upstream ')) return reached(status as EntryStatus);
  const fits = ({ subject, data }: CloudEvent) => subject === keyId && data.status === status;
  // The step may never be reported upstream, when a crash of another lane's run took it away.
  return site.upstream.waitFor(fits, MOMENT_TIMEOUT_MS).catch(() => undefined);
}

/** As a careful front desk does: the same request again until it is accepted. */
async function request(
  { site, encoder, daemonIsBack }: Lane,
  requestId: string,
  entries: KeyData[],
): Promise<void> {
  const deadline = performance.now() + ACCEPTED_TIMEOUT_MS;
  for (;;) {
    const answer = await site.requestWrite(encoder.id, requestId, entries).catch(() => undefined);
    if (answer?.status === 202) return;
    const isPassing = answer === undefined || answer.status === 503 || answer.body.error === 'NOT_CONNECTED';
    if (!isPassing || performance.now() > deadline) {
      throw new Error(`${requestId} was not accepted: ${JSON.stringify(answer)}`);
    }
    await Promise.all([daemonIsBack(), sleep(RETRY_MS)]);
  }
}
