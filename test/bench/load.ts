/** Changes of doors over plain HTTP, at a pace or as fast as they are answered. */
import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { quantile } from './table.ts';

/** Something that takes changes: where, and on whose behalf. */
export interface Target {
  baseUrl: string;
  paths: readonly string[];
  /** Taken in turn. */
  tokens: readonly string[];
}

export interface Answered {
  /** Milliseconds after the begin of the load at which it was to be sent. */
  scheduledMs: number;
  /** From that time to the last byte of the answer. */
  latencyMs: number;
  /** 0: the connection broke. */
  status: number;
}

/** Half of what the gateway takes. Beyond it requests wait in the client, and that counts. */
const CONNECTIONS = 256;
/** How late a request may leave, at most; that counts as well. */
const TICK_MS = 1;

/** Open loop: requests leave when they are due, whatever the answers do. */
export async function sendAtPace(
  target: Target,
  { perSecond, seconds }: { perSecond: number; seconds: number },
): Promise<Answered[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  const total = perSecond * seconds;
  const answers: Promise<Answered>[] = [];
  const begun = performance.now();
  while (answers.length < total) {
    const due = Math.min(total, ((performance.now() - begun) / 1_000) * perSecond);
    while (answers.length < due) {
      const scheduledMs = (answers.length * 1_000) / perSecond;
      const sent = change(agent, target, answers.length).catch(() => 0);
      answers.push(
        sent.then((status) => ({
          scheduledMs,
          status,
          latencyMs: performance.now() - begun - scheduledMs,
        })),
      );
    }
    await sleep(TICK_MS);
  }
  const answered = await Promise.all(answers);
  agent.destroy();
  return answered;
}

/** Closed loop: each of `clients` sends the next request when the last one was answered. Throws unless all are 200. */
export async function sendInTurn(
  target: Target,
  { requests, clients }: { requests: number; clients: number },
): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: clients });
  let begun = 0;
  await Promise.all(
    Array.from({ length: clients }, async () => {
      while (begun < requests) {
        begun += 1;
        const status = await change(agent, target, begun);
        if (status !== 200) throw new Error(`a change was answered ${status}`);
      }
    }),
  );
  agent.destroy();
}

let changes = 0;

function change(agent: Agent, { baseUrl, paths, tokens }: Target, turn: number): Promise<number> {
  changes += 1;
  // Does not travel to the lock, which would be another story.
  const content = JSON.stringify({ pmsId: `${changes}` });
  const headers = {
    authorization: `Bearer ${tokens[turn % tokens.length]}`,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(content),
  };
  return new Promise((resolve, reject) => {
    const url = `${baseUrl}${paths[changes % paths.length]}`;
    const sent = request(url, { agent, method: 'PUT', headers }, (response) => {
      response.on('error', reject).on('end', () => resolve(response.statusCode ?? 0));
      response.resume();
    });
    sent.on('error', reject);
    sent.end(content);
  });
}

export function latencies(answered: readonly Answered[], share: number): number {
  return quantile(
    answered.map(({ latencyMs }) => latencyMs),
    share,
  );
}
