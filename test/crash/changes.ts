/**
 * Doors, RS-485 devices and encoders that clients change again and again, each over a kept connection, one change after
 * the other: so it is known what each must be after the gateway was killed, give or take the change under way.
 */
import { randomUUID } from 'node:crypto';
import { type Agent, request } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Role } from '../simulators/daemon.ts';
import type { TestSite } from '../simulators/test-site.ts';

const DOORS = 8;
const DEVICES = 4;
const ENCODERS = 4;
/** A kept connection that hears nothing for so long is not waited for. */
const ANSWER_TIMEOUT_MS = 10_000;

export interface Subject {
  /** As the audit names it. */
  object: string;
  path: string;
  /** How it is updated: PUT, but POST for encoders (interface specification 4.2). */
  method: 'PUT' | 'POST';
  role: Role;
  /** The body of its n-th change; the resource shows the same fields. */
  body(n: number): Record<string, unknown>;
}

/** What is known of a subject from the answers to its client. */
export interface Known {
  /** Number and revision of the last change that was answered 200. */
  change: number;
  revision: number;
  /** The change that was sent and not answered. */
  underWay: number | undefined;
}

/** Configuration of a site that makeSubjects can make its resources on. */
export const WIRING = { links: [{ id: 'bus-1', protocol: 'loopback' as const }] };

/** Makes the resources; nothing of them has been changed yet. */
export async function makeSubjects(site: TestSite): Promise<Subject[]> {
  const { daemon, tokens } = site;
  const subjects: Subject[] = [];
  for (let door = 0; door < DOORS; door += 1) {
    const { body } = await daemon.call('POST', '/access/doors', tokens['front-desk-admin'], {});
    subjects.push({
      object: `door/${body.id}`,
      path: `/access/doors/${body.id}`,
      method: 'PUT',
      role: 'front-desk-admin',
      // The schedule travels to the lock, so that a reconciler is at work as well.
      body: (n) => ({ name: `change ${n}`, scheduleId: `schedule ${n}` }),
    });
  }
  const deviceIds = Array.from({ length: DEVICES }, () => randomUUID());
  const rs485 = deviceIds.map((deviceId, index) => ({ deviceId, bus: 'bus-1', hwId: `io-${index}` }));
  await daemon.importSite({ rs485 });
  for (const deviceId of deviceIds) {
    subjects.push({
      object: `rs485/${deviceId}`,
      path: `/network/rs485/${deviceId}`,
      method: 'PUT',
      role: 'service-tool',
      body: (n) => ({ description: `change ${n}`, unlockDurationMilliseconds: 1_000 + (n % 1_000) }),
    });
  }
  for (let encoder = 0; encoder < ENCODERS; encoder += 1) {
    const id = `desk-${encoder}`;
    await site.register(id);
    subjects.push({
      object: `encoder/${id}`,
      path: `/encoder/${id}`,
      method: 'POST',
      role: 'front-desk-admin',
      body: (n) => ({ name: `change ${n}`, metadata: { change: String(n) } }),
    });
  }
  return subjects;
}

/** How a subject is now, asked for over a connection of `agent`. */
export async function read({ daemon, tokens }: TestSite, { path, role }: Subject, agent: Agent) {
  const { status, body, headers } = await daemon.call('GET', path, tokens[role], undefined, agent);
  if (status !== 200) throw new Error(`${path} was answered ${status}`);
  return { body, revision: revisionOf(headers.etag) };
}

/** Changes every subject, `perSecond` changes in all, until the signal, which comes with the kill. */
export async function change(
  { daemon, tokens }: TestSite,
  subjects: ReadonlyMap<Subject, Known>,
  options: { keep(): Agent; perSecond: number; signal: AbortSignal },
): Promise<void> {
  const { keep, perSecond, signal } = options;
  const periodMs = (1_000 * subjects.size) / perSecond;
  const begun = performance.now();
  await Promise.all(
    [...subjects].map(async ([subject, known], index) => {
      const agent = keep();
      // Two at a time start together, so that commits hold more than one change.
      const phase = ((index - (index % 2)) / subjects.size) * periodMs;
      for (let turn = 0; !signal.aborted; turn += 1) {
        await sleep(Math.max(0, begun + phase + turn * periodMs - performance.now()));
        if (signal.aborted) break;
        const n = (known.underWay ?? known.change) + 1;
        known.underWay = n;
        const { method, role, body } = subject;
        const exchange = { agent, method, token: tokens[role], body: body(n), signal };
        const revision = await send(`${daemon.baseUrl}${subject.path}`, exchange);
        if (revision === undefined) break;
        Object.assign(known, { change: n, revision, underWay: undefined });
      }
      agent.destroy();
    }),
  );
}

interface Sent {
  agent: Agent;
  method: string;
  token: string;
  body: object;
  /** Aborted with the kill: from then on there need not be an answer. */
  signal: AbortSignal;
}

/** The revision that the answer names, or undefined when the kill came first. Throws at any other end. */
function send(url: string, { agent, method, token, body, signal }: Sent): Promise<number | undefined> {
  const content = JSON.stringify(body);
  const headers = {
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(content),
  };
  return new Promise((resolve, reject) => {
    const sent = request(url, { agent, method, headers, timeout: ANSWER_TIMEOUT_MS }, (response) => {
      // The head of the answer is enough: what it promises must hold.
      if (response.statusCode === 200) resolve(revisionOf(response.headers.etag));
      else reject(new Error(`${method} ${url} was answered ${response.statusCode}`));
      response.on('error', () => {}).resume();
    });
    sent.on('timeout', () => reject(new Error(`${method} ${url} was not answered`)));
    sent.on('error', (error) => (signal.aborted ? resolve(undefined) : reject(error)));
    sent.end(content);
  });
}

function revisionOf(etag: unknown): number {
  const [, revision] = /^"(\d+)"$/.exec(String(etag)) ?? [];
  if (revision === undefined) throw new Error(`${etag} is not the ETag of a revision`);
  return Number(revision);
}
