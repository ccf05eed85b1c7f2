/**
 * `gatehouse import`: what the site's file changes, written by a job in commits that are small, because encoders and
 * requests wait for each: first the catalogue, then the doors that refer to what changed in it, a few at a time, then the
 * doors of the file, as many in a commit as a slice of time has room for, in its order, last the RS-485 devices. Each commit plans
 * its entries again and writes only what was
 * planned before. What ends the job in between leaves what is written; the same import again writes the rest.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../platform/clock.ts';
import { type ErrorCode, GatehouseError } from '../../platform/errors.ts';
import type { Change, ImportCaller, ImportPlan } from '../../platform/import-plan.ts';
import type { Role } from '../../platform/principal.ts';
import { openTimeSlice, workAndRest } from '../../platform/time-slice.ts';
import type { Audit } from '../../services/audit/audit.ts';
import type { JobWork } from '../../services/jobs/job-order.ts';
import type { Job } from '../../services/jobs/schema.ts';
import type { SiteContext } from './context.ts';
import { readDocument } from './document.ts';
import { changesOf, countsOf, digestOf, isOpen, planSite, type SitePlan } from './plan.ts';
import type { ImportRequest, ImportResult, PlanRequest } from './schema.ts';
import type { Site } from './site-document.ts';

/** They may change each section of the document by itself as well. */
export const IMPORTERS: readonly [Role, ...Role[]] = ['front-desk-admin'];
/** What the plan of a step throws when the site has come to contradict its entries. */
const CONTRADICTED: readonly ErrorCode[] = ['VALIDATION_FAILED', 'RELAY_IN_USE'];

/** Called after the commit. */
type Publish = () => Promise<void> | undefined;

/** What is written in one piece. */
interface Step {
  /** Entries that it changes. */
  open: Change[];
  /** Inside the commit job: the plan as it is now. */
  plan(): ImportPlan;
  /** It has a commit of its own. */
  isAlone?: boolean;
  /** What goes on after the commit, before the next step. */
  follow?(signal: AbortSignal): Promise<void>;
}

export interface SiteImport {
  exported(): Promise<Site>;
  plan(request: PlanRequest, caller: ImportCaller): Promise<ImportResult>;
  /** Resolves with the job. Throws VERSION_CONFLICT when the plan is no longer the one of this digest. */
  start(request: ImportRequest, caller: ImportCaller): Promise<Job>;
}

export function openSiteImport(options: SiteContext): SiteImport {
  const { database, jobs, clock } = options;

  async function planned(document: PlanRequest['document'], caller: ImportCaller) {
    const site = await readDocument(document, options.clock);
    const plan = await planSite(site, caller, options);
    const changes = changesOf(plan);
    const result: ImportResult = {
      counts: countsOf(changes),
      changes,
      digest: await digestOf(changes, options.clock),
      warnings: plan.warnings,
    };
    return { site, plan, result };
  }

  return {
    exported: () => exportedSite(options),
    async plan({ document }, caller) {
      return (await planned(document, caller)).result;
    },
    async start({ document, digest }, caller) {
      const { site, plan, result } = await planned(document, caller);
      if (digest !== undefined && digest !== result.digest) throw changedMeanwhile();
      const { changes: _, ...rest } = result;
      const steps = stepsOf(site, plan, caller, options);
      const run: JobWork = async (progress, signal) => {
        const total = countOpen(steps);
        let done = 0;
        for (let next = 0; next < steps.length; ) {
          signal.throwIfAborted();
          progress({ done, total });
          const written = await workAndRest(clock, signal, async () => {
            const some = await database
              .commit(() => {
                const now = writeSome(steps, next, clock);
                if (next + now.length === steps.length) recordEnd(options.audit, caller, rest.counts);
                return now;
              })
              .catch((error: unknown) => {
                throw stoppedAt(error, steps, next);
              });
            for (const { publish } of some) await publish();
            return some;
          });
          next += written.length;
          done += countOpen(written.map(({ step }) => step));
          await written.at(-1)?.step.follow?.(signal);
        }
        progress({ done, total });
        return { ...rest, written: total > 0 };
      };
      return jobs.start({ kind: 'import', object: 'site', roles: IMPORTERS, ...caller, run });
    },
  };
}

/** Those that change nothing are left out. */
function stepsOf(
  site: Site,
  plan: SitePlan,
  caller: ImportCaller,
  { catalogue, doors, rs485, clock }: SiteContext,
): Step[] {
  const steps: Step[] = [
    {
      open: plan.catalogueChanges.filter(isOpen),
      plan() {
        const made = catalogue.importPlan(site, caller);
        return {
          changes: made.changes,
          write() {
            made.write();
            doors.catalogueChanges.store(made.changes, caller);
          },
        };
      },
      isAlone: true,
      follow: (signal) => doors.catalogueChanges.follow(clock, signal),
    },
  ];
  const open = plan.doors.filter(({ change }) => isOpen(change));
  for (const { entry, change } of open)
    steps.push({ open: [change], plan: () => doors.siteImport.plan([entry], caller, noneFree) });
  steps.push({
    open: plan.rs485Changes.filter(isOpen),
    plan: () => rs485.importPlan(plan.rs485, caller),
    isAlone: true,
  });
  return steps.filter((step) => step.open.length > 0);
}

/** Inside the commit job: the steps from `first` on, as many as there is time for. */
function writeSome(
  steps: readonly Step[],
  first: number,
  clock: Pick<Clock, 'monotonic'>,
): { step: Step; publish: Publish }[] {
  const isOver = openTimeSlice(clock);
  const written: { step: Step; publish: Publish }[] = [];
  for (let index = first; index < steps.length; index += 1) {
    const step = steps[index];
    if (!step || (step.isAlone && written.length > 0)) break;
    written.push({ step, publish: write(step) });
    if (step.isAlone || isOver()) break;
  }
  return written;
}

/** Inside the commit job. */
function write(step: Step): Publish {
  const plan = step.plan();
  const open = plan.changes.filter(isOpen);
  const other = open.find((change, index) => !isDeepStrictEqual(change, step.open[index]));
  if (other || open.length !== step.open.length) throw differing(other ?? step.open[open.length]);
  plan.write();
  return () => plan.written?.();
}

function recordEnd(audit: Audit, caller: ImportCaller, counts: ImportResult['counts']): void {
  audit.record({ ...caller, action: 'site.import', object: 'site', outcome: 'done', detail: counts });
}

const countOpen = (steps: readonly Step[]) => steps.reduce((sum, { open }) => sum + open.length, 0);

/** Entries of a step have the access points that the plan has drawn. */
function noneFree(): number {
  throw new Error('an entry of an import has no access point');
}

function changedMeanwhile(): GatehouseError {
  const message =
    'The site changed meanwhile, and nothing was written: import again and look at the new changes.';
  return new GatehouseError('VERSION_CONFLICT', message);
}

function differing(change: Change | undefined): GatehouseError {
  const what = change ? `${change.resource} ${nameOf(change)}` : 'An entry';
  return new GatehouseError('VERSION_CONFLICT', `${what} was changed meanwhile.`);
}

/** Why the import stops before this step, with what is written and what is not. */
function stoppedAt(error: unknown, steps: readonly Step[], index: number): unknown {
  if (!(error instanceof GatehouseError)) return error;
  const [first] = steps[index]?.open ?? [];
  const done = countOpen(steps.slice(0, index));
  const left = countOpen(steps) - done;
  const from = first ? ` from ${first.resource} ${nameOf(first)} on` : '';
  const code = CONTRADICTED.includes(error.code) ? 'VERSION_CONFLICT' : error.code;
  // That speaks of the last commit alone.
  const reason = error.message.replace('; nothing was changed', '');
  const message = `${reason} Written: ${done} changes. Not written: ${left} changes${from}. Import again: what is written stays, and the rest is written.`;
  return new GatehouseError(code, message, { cause: error });
}

function nameOf({ id, name }: Change): string {
  return name === null || name === id ? id : `${id} (${name})`;
}

/** Devices on a bus that the configuration does not have are left out, for an import refuses them. */
async function exportedSite({ catalogue, rs485, doors }: SiteContext): Promise<Site> {
  const sections = catalogue.sections();
  const buses = rs485.buses.ids();
  const devices = rs485.entries().filter(({ bus }) => buses.includes(bus));
  return { ...sections, doors: await doors.siteImport.entries(), rs485: devices };
}
