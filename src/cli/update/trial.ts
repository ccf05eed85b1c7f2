/**
 * The trial of a release, and the way back. A trial ends with the update accepted, or with it still pending: then the next
 * start of the service takes it back, whether the release was ill, the trial was killed or the power was cut.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../platform/clock.ts';
import type { Status } from '../../services/status/schema.ts';
import { CommandFailed } from '../shell.ts';
import type { Plan, Releases } from './releases.ts';

/** The service as the updater sees it. */
export interface Service {
  /** Resolves when it has ended. */
  stop(): Promise<void>;
  /** Begins to start it, and waits for nothing. */
  start(): Promise<void>;
  /** Undefined: it does not answer. */
  status(): Promise<Pick<Status, 'version' | 'startedAt' | 'field'> | undefined>;
}

const LOOK_MS = 500;
const SECOND_MS = 1_000;
/** So long all has to be well without a break: one that dies soon after its start is none to keep. */
const STEADY_MS = 10 * SECOND_MS;

/** Throws CommandFailed, with the update pending, where the release does not do. */
export async function tryOut(releases: Releases, service: Service, clock: Clock): Promise<Plan> {
  const plan = releases.pending();
  if (!plan) throw new CommandFailed('No update is under way.');
  await service.stop();
  releases.switchTo(plan.to);
  await service.start();
  await provesWell(plan, service, clock);
  releases.accept();
  return plan;
}

async function provesWell(plan: Plan, service: Service, clock: Clock): Promise<void> {
  const deadline = clock.monotonic() + plan.waitSeconds * SECOND_MS;
  let well: { startedAt: string; since: number } | undefined;
  for (;;) {
    const status = await service.status();
    const fault = faultOf(status, plan);
    const now = clock.monotonic();
    if (fault !== undefined || !status) well = undefined;
    else if (well?.startedAt !== status.startedAt) well = { startedAt: status.startedAt, since: now };
    if (well && now - well.since >= STEADY_MS) return;
    if (!well && now > deadline)
      throw new CommandFailed(
        `${plan.version} is taken back: after ${plan.waitSeconds} s ${fault}. Its own log: journalctl -u gatehouse`,
      );
    await clock.sleep(LOOK_MS);
  }
}

function faultOf(status: Awaited<ReturnType<Service['status']>>, plan: Plan): string | undefined {
  if (!status) return 'the service does not answer';
  if (status.version !== plan.version) return `the service is ${status.version}`;
  const down = plan.links.filter((id) => !status.field.links.some((link) => link.id === id && link.up));
  return down.length > 0 ? `these links are not back: ${down.join(', ')}` : undefined;
}

/** The database, as far as the way back needs it. */
export interface Data {
  directory: string;
  /** The oldest schema whose programs run on it. Undefined: there is none. */
  oldest(): number | undefined;
  /** Puts a copy of the database in its place, by the program of a release. */
  restore(release: string, copy: string): Promise<void>;
}

/** Before each start of the service, which is not running. Can be cut short anywhere, and is then done again. */
export async function takeBack(releases: Releases, data: Data): Promise<Plan | undefined> {
  const plan = releases.pending();
  if (!plan) return undefined;
  const oldest = data.oldest();
  if (oldest !== undefined && oldest > plan.schema) {
    // The start before a new schema has made it (src/platform/database/migrate.ts).
    const copy = join(data.directory, 'backups', `gatehouse.db.schema-${plan.schema}`);
    if (!existsSync(copy))
      throw new CommandFailed(`${plan.from} does not run on schema ${oldest}, and there is no ${copy}.`);
    await data.restore(plan.from, copy);
  }
  releases.switchTo(plan.from);
  releases.forget();
  return plan;
}
