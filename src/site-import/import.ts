/** `gatehouse import`: the site's file against what is stored, section by section, and all of it in one commit. */
import { createHash } from 'node:crypto';
import type { Audit } from '../audit/audit.ts';
import type { Database } from '../database/database.ts';
import { type ErrorDetail, GatehouseError } from '../errors.ts';
import type { Change, ImportCaller, ImportPlan, MakeImportPlan } from '../import-plan.ts';
import { contradictions, type DoorEntry, type Rs485Entry, type Site } from '../site-document.ts';
import type { Problem } from '../yaml/problem.ts';
import { identifiedDevices, identifiedDoors } from './ids.ts';
import { type Known, references } from './references.ts';
import type { ImportRequest, ImportResult } from './schema.ts';

/** Mistakes told at once: a file with more has one mistake that explains them. */
const DETAILS_MAX = 100;

export interface SiteImportOptions {
  database: Database;
  audit: Audit;
  /** Ids that are drawn belong to it. */
  systemId: string;
  known: Known;
  catalogue(sections: Site, caller: ImportCaller): ImportPlan;
  doors(entries: readonly DoorEntry[], caller: ImportCaller, catalogueChanges: readonly Change[]): ImportPlan;
  rs485: MakeImportPlan<Rs485Entry>;
}

export type SiteImport = ReturnType<typeof openSiteImport>;

interface SitePlan {
  parts: ImportPlan[];
  /** Told, and no reason not to go on. */
  warnings: ImportResult['warnings'];
}

export function openSiteImport({ database, audit, known, systemId, ...slices }: SiteImportOptions) {
  /** Throws all that is wrong with the document at once. */
  function planOf(site: Site, caller: ImportCaller): SitePlan {
    const { refused, unknown } = references(site, known);
    const contradicting = contradictions(site);
    const faults = faultOf([...contradicting, ...refused]);
    const plan = (prefix: string, make: () => ImportPlan): ImportPlan => {
      try {
        return make();
      } catch (error) {
        faults.push(inSection(prefix, error));
        return { changes: [], write() {} };
      }
    };
    // Slices need not cope with circles, nor with one door twice.
    if (contradicting.length > 0) throw merged(faults);
    const catalogue = plan('/document', () => slices.catalogue(site, caller));
    const doors = plan('/document/doors', () => {
      const make = (entries: readonly DoorEntry[]) => slices.doors(entries, caller, catalogue.changes);
      return withIds(site.doors, make, (plan) => identifiedDoors(site.doors, plan, systemId));
    });
    const rs485 = plan('/document/rs485', () => {
      const make = (entries: readonly Rs485Entry[]) => slices.rs485(entries, caller);
      return withIds(site.rs485, make, (plan) => identifiedDevices(site.rs485, plan, systemId));
    });
    if (faults.length > 0) throw merged(faults);
    return {
      parts: [catalogue, doors, rs485],
      warnings: unknown.map(({ path, message }) => ({ path: pointerTo(path), message })),
    };
  }

  return {
    /** Throws VERSION_CONFLICT when the plan is no longer the one of this digest, and writes nothing. */
    async run({ document, dryRun, digest }: ImportRequest, caller: ImportCaller) {
      if (dryRun) return resultOf(planOf(document, caller), false);
      const { parts, result } = await database.commit(() => {
        const plan = planOf(document, caller);
        const result = resultOf(plan, true);
        if (digest !== undefined && digest !== result.digest) throw changedMeanwhile();
        if (!result.written) return { parts: [], result };
        for (const part of plan.parts) part.write();
        const { counts } = result;
        audit.record({ ...caller, action: 'site.import', object: 'site', outcome: 'done', detail: counts });
        return { parts: plan.parts, result };
      });
      for (const part of parts) part.written?.();
      return result;
    },
  };
}

/** Planned again only where ids were drawn: a plan of thousands of doors holds everything else up. */
function withIds<Entry>(
  entries: readonly Entry[],
  make: (entries: readonly Entry[]) => ImportPlan,
  identify: (plan: ImportPlan) => readonly Entry[],
): ImportPlan {
  const plan = make(entries);
  const identified = identify(plan);
  return identified.every((entry, index) => entry === entries[index]) ? plan : make(identified);
}

function pointerTo(path: PropertyKey[]): string {
  return `/document/${path.map(String).join('/')}`;
}

/** That the document contradicts itself, or names wiring that is not there; none without problems. */
function faultOf(problems: Problem[]): GatehouseError[] {
  if (problems.length === 0) return [];
  const details = problems.map(({ path, message, see }): ErrorDetail => {
    const told = see ? `${message}: see ${pointerTo(see)}` : message;
    return { path: pointerTo(path), code: 'CONTRADICTION', message: told };
  });
  const message = 'The file contradicts itself, or names what does not exist.';
  return [new GatehouseError('VALIDATION_FAILED', message, { details })];
}

/** A refusal's details are told from the whole document. */
function inSection(prefix: string, error: unknown): GatehouseError {
  if (!(error instanceof GatehouseError) || !error.details) throw error;
  const details = error.details.map((detail) => ({ ...detail, path: prefix + detail.path }));
  return new GatehouseError(error.code, error.message, { details, cause: error });
}

/** One error with the details of all. */
function merged(faults: readonly GatehouseError[]): GatehouseError {
  const [first, ...others] = faults;
  const details = faults.flatMap((fault) => fault.details ?? []).slice(0, DETAILS_MAX);
  if (first && others.length === 0) return new GatehouseError(first.code, first.message, { details });
  return new GatehouseError('VALIDATION_FAILED', 'Not valid. The details say where.', { details });
}

function changedMeanwhile(): GatehouseError {
  const message =
    'The site changed meanwhile, and nothing was written: import again and look at the new changes.';
  return new GatehouseError('VERSION_CONFLICT', message);
}

function resultOf({ parts, warnings }: SitePlan, write: boolean): ImportResult {
  const changes = parts.flatMap((part) => part.changes);
  const count = (wanted: Change['change']) => changes.filter(({ change }) => change === wanted).length;
  const counts = {
    added: count('added'),
    changed: count('changed'),
    unchanged: count('unchanged'),
    leftAlone: count('left alone'),
  };
  const open = changes.filter(({ change }) => change === 'added' || change === 'changed');
  const digest = createHash('sha256').update(JSON.stringify(open)).digest('hex');
  return { written: write && open.length > 0, counts, changes, digest, warnings };
}
