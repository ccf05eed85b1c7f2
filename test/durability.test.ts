/**
 * The gateway killed with -9 while clients change doors, RS-485 devices and encoders 200 times a second. What was
 * answered 200 is there afterwards, content and revision, together with its row in the audit, whose chain is whole.
 *
 * DURABILITY_SEED repeats the moments, DURABILITY_RUNS makes it shorter or longer.
 */
import { readFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { createSecureContext } from 'node:tls';
import { expect, it } from 'vitest';
import { change, type Known, makeSubjects, read, type Subject, WIRING } from './crash/changes.ts';
import { generator } from './crash/plan.ts';
import { openTestSite, type TestSite } from './simulators/test-site.ts';

const SEED = Number(process.env.DURABILITY_SEED ?? Date.now() % 1_000_000);
const RUNS = Number(process.env.DURABILITY_RUNS ?? 40);
const PER_SECOND = 200;
/** A life under load lasts between these, milliseconds. */
const SHORTEST_MS = 80;
const LONGEST_MS = 800;

const title = `loses no change that it answered, through ${RUNS} kills (DURABILITY_SEED=${SEED})`;
it(title, { timeout: 600_000 }, async () => {
  await using site = await openTestSite({ more: WIRING });
  const random = generator(SEED);
  const known = new Map<Subject, Known>();
  const secureContext = createSecureContext({ ca: readFileSync(site.daemon.caFile, 'utf8') });
  const keep = () => new Agent({ keepAlive: true, maxSockets: 1, secureContext });
  const reader = keep();
  for (const subject of await makeSubjects(site)) {
    const { revision } = await read(site, subject, reader);
    known.set(subject, { change: 0, revision, underWay: undefined });
  }
  const made = await auditedChanges(site);
  const first = new Map([...known].map(([subject, { revision }]) => [subject, revision]));
  const cut = { stored: 0, lost: 0 };
  let verified = 0;
  for (let run = 0; run < RUNS; run += 1) {
    const dead = new AbortController();
    const changing = change(site, known, { keep, perSecond: PER_SECOND, signal: dead.signal });
    const lifeMs = SHORTEST_MS + random() * (LONGEST_MS - SHORTEST_MS);
    await Promise.race([changing, new Promise((resolve) => setTimeout(resolve, lifeMs))]);
    const killed = site.daemon.kill();
    dead.abort();
    await Promise.all([killed, changing]);
    await site.daemon.start();
    for (const [subject, expected] of known) {
      const found = await read(site, subject, reader);
      const outcome = check(found, subject, expected, `life ${run}, DURABILITY_SEED=${SEED}`);
      if (outcome) cut[outcome] += 1;
    }
    verified = await verifyAudit(site, verified);
  }
  reader.destroy();
  expect(await verifyAudit(site, 0)).toBe(verified);
  const audited = await auditedChanges(site);
  let changes = 0;
  for (const [subject, { revision }] of known) {
    const own = revision - (first.get(subject) ?? 0);
    expect((audited.get(subject.object) ?? 0) - (made.get(subject.object) ?? 0), subject.object).toBe(own);
    changes += own;
  }
  console.log(`DURABILITY_SEED=${SEED}: ${changes} changes stored; cut off by the kill:`, cut);
  if (RUNS >= 40) expect(cut.stored + cut.lost).toBeGreaterThan(0);
});

/** What became of the change under way: both are right. Brings what is known up to date. */
function check(found: Awaited<ReturnType<typeof read>>, subject: Subject, known: Known, where: string) {
  const { body, revision } = found;
  const { underWay } = known;
  known.underWay = undefined;
  if (revision === known.revision || underWay === undefined) {
    expect(revision, `${subject.path}, ${where}`).toBe(known.revision);
    if (known.change > 0) expect(body, `${subject.path}, ${where}`).toMatchObject(subject.body(known.change));
    return underWay === undefined ? undefined : 'lost';
  }
  expect(revision, `${subject.path}, ${where}`).toBe(known.revision + 1);
  expect(body, `${subject.path}, ${where}`).toMatchObject(subject.body(underWay));
  Object.assign(known, { change: underWay, revision });
  return 'stored';
}

/** From the row after `after` to the last one, whose number it returns. */
async function verifyAudit({ daemon }: TestSite, after: number): Promise<number> {
  const { body } = await daemon.callLocally('POST', '/local/audit/verify', { after });
  expect(body.fault).toBe(null);
  return body.complete ? Number(body.through) : verifyAudit({ daemon } as TestSite, Number(body.through));
}

/** How many rows the audit has of each object. */
async function auditedChanges({ daemon }: TestSite): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (let after: string | null = '0'; after !== null; ) {
    const { body } = await daemon.callLocally('GET', `/local/audit/export?after=${after}`);
    const page = body as { items: { object: string }[]; next: string | null };
    for (const { object } of page.items) counts.set(object, (counts.get(object) ?? 0) + 1);
    after = page.next;
  }
  return counts;
}
