/** One encoder going through its runs: ask for keys, kill at the moment, start again, wait for every outcome. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { EncoderEvent } from '../simulators/encoder/commands.ts';
import type { SiteEncoder } from '../simulators/site.ts';
import { drawKeys, type KeyData, type TestSite } from '../simulators/test-site.ts';
import { type CloudEvent, isTerminalEvent } from '../simulators/upstream.ts';
import type { Run } from './plan.ts';

export interface Finished {
  run: Run;
  encoder: SiteEncoder;
  requestId: string;
  entries: KeyData[];
}

export interface Lane {
  site: TestSite;
  encoder: SiteEncoder;
  /** Kills the daemon now and resolves when it serves again; one after the other for all lanes. */
  crashDaemon(): Promise<void>;
}

const OUTCOME_TIMEOUT_MS = 60_000;
const ACCEPTED_TIMEOUT_MS = 60_000;
const RETRY_MS = 25;
/** When the moment never comes (a crash of another lane's run took it away) the run strikes all the same. */
const MOMENT_TIMEOUT_MS = 5_000;

export async function runOnce(lane: Lane, run: Run): Promise<Finished> {
  const { site, encoder } = lane;
  const requestId = `run-${run.number}`;
  const entries = drawKeys(Array.from({ length: run.entries }, () => randomUUID()));
  const keyId = entries[run.entry]?.keyId ?? '';
  const moment = Promise.race([momentOf(lane, run, keyId), sleep(MOMENT_TIMEOUT_MS)]);
  const accepted = request(lane, requestId, entries);
  // "accepted" strikes while the request may still be on its way.
  await (run.moment === 'accepted' ? sleep(run.delayMs) : moment);
  await sleep(run.delayMs);
  await strike(lane, run);
  await accepted;
  for (const entry of entries) {
    await site.upstream.waitFor(
      (event) => event.subject === entry.keyId && isTerminalEvent(event),
      OUTCOME_TIMEOUT_MS,
    );
  }
  return { run, encoder, requestId, entries };
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

/** Resolves when the encoder told, or the event upstream said, that the key came to the state. */
function momentOf({ site, encoder }: Lane, { moment }: Run, keyId: string): Promise<unknown> {
  const status = moment.replace('upstream ', '');
  if (moment.startsWith('upstream ')) {
    const fits = ({ subject, data }: CloudEvent) => subject === keyId && data.status === status;
    // The step may never be told upstream, when it was overtaken by a crash.
    return site.upstream.waitFor(fits, MOMENT_TIMEOUT_MS).catch(() => undefined);
  }
  return new Promise<void>((resolve) => {
    encoder.onTold = (told: EncoderEvent) => {
      if (told.event === 'entry' && told.keyId === keyId && told.status === status) resolve();
    };
  });
}

/** As a careful front desk does: the same request again until it is accepted. */
async function request({ site, encoder }: Lane, requestId: string, entries: KeyData[]): Promise<void> {
  const deadline = performance.now() + ACCEPTED_TIMEOUT_MS;
  for (;;) {
    const answer = await site.requestWrite(encoder.id, requestId, entries).catch(() => undefined);
    if (answer?.status === 202) return;
    const isPassing = answer === undefined || answer.status === 503 || answer.body.error === 'NOT_CONNECTED';
    if (!isPassing || performance.now() > deadline) {
      throw new Error(`${requestId} was not accepted: ${JSON.stringify(answer)}`);
    }
    await sleep(RETRY_MS);
  }
}
