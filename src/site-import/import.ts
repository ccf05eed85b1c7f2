/** `gatehouse import`: the site's file against what is stored, section by section, and all of it in one commit. */
import type { Audit } from '../audit/audit.ts';
import type { Database } from '../database/database.ts';
import { type ErrorDetail, GatehouseError } from '../errors.ts';
import type { Change, ImportCaller, ImportPlan, MakeImportPlan } from '../import-plan.ts';
import { contradictions, type DoorEntry, type Rs485Entry, type Site } from '../site-document.ts';
import { danglingReferences, type Known } from './references.ts';
import type { ImportResult } from './schema.ts';

/** Mistakes told at once: a file with more has one mistake that explains them. */
const DETAILS_MAX = 100;

export interface SiteImportOptions {
  database: Database;
  audit: Audit;
  /** What is stored already. */
  known: Known;
  catalogue(sections: Site, caller: ImportCaller): ImportPlan;
  doors(entries: readonly DoorEntry[], caller: ImportCaller, catalogueChanges: readonly Change[]): ImportPlan;
  rs485: MakeImportPlan<Rs485Entry>;
}

export type SiteImport = ReturnType<typeof openSiteImport>;

export function openSiteImport({ database, audit, known, ...slices }: SiteImportOptions) {
  function plans(site: Site, caller: ImportCaller): ImportPlan[] {
    assertSound(site, known);
    const catalogue = inSection('/document', () => slices.catalogue(site, caller));
    const doors = inSection('/document/doors', () => slices.doors(site.doors, caller, catalogue.changes));
    const rs485 = inSection('/document/rs485', () => slices.rs485(site.rs485, caller));
    return [catalogue, doors, rs485];
  }

  return {
    async run({ document, dryRun }: { document: Site; dryRun: boolean }, caller: ImportCaller) {
      if (dryRun) return resultOf(plans(document, caller), false);
      const { parts, result } = await database.commit(() => {
        const parts = plans(document, caller);
        const result = resultOf(parts, true);
        if (!result.written) return { parts: [], result };
        for (const part of parts) part.write();
        const { counts } = result;
        audit.record({ ...caller, action: 'site.import', object: 'site', outcome: 'done', detail: counts });
        return { parts, result };
      });
      for (const part of parts) part.written?.();
      return result;
    },
  };
}

/** Throws VALIDATION_FAILED when the document contradicts itself, or names what nobody knows. */
function assertSound(site: Site, known: Known): void {
  const problems = [...contradictions(site), ...danglingReferences(site, known)];
  if (problems.length === 0) return;
  const pointer = (path: PropertyKey[]) => `/document/${path.map(String).join('/')}`;
  const details = problems.slice(0, DETAILS_MAX).map(({ path, message, see }): ErrorDetail => {
    const told = see ? `${message}: see ${pointer(see)}` : message;
    return { path: pointer(path), code: 'CONTRADICTION', message: told };
  });
  throw new GatehouseError(
    'VALIDATION_FAILED',
    'The file contradicts itself, or names what does not exist.',
    {
      details,
    },
  );
}

/** A refusal's details are told from the whole document. */
function inSection<T>(prefix: string, plan: () => T): T {
  try {
    return plan();
  } catch (error) {
    if (!(error instanceof GatehouseError) || !error.details) throw error;
    const details = error.details.map((detail) => ({ ...detail, path: prefix + detail.path }));
    throw new GatehouseError(error.code, error.message, { details, cause: error });
  }
}

function resultOf(plans: readonly ImportPlan[], write: boolean): ImportResult {
  const changes = plans.flatMap((plan) => plan.changes);
  const count = (wanted: Change['change']) => changes.filter(({ change }) => change === wanted).length;
  const counts = {
    added: count('added'),
    changed: count('changed'),
    unchanged: count('unchanged'),
    leftAlone: count('left alone'),
  };
  return { written: write && counts.added + counts.changed > 0, counts, changes };
}
