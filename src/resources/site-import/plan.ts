/** What an import comes to: the site's file against what is stored, section by section, without changing anything. */
import { createHash } from 'node:crypto';
import type { Clock } from '../../platform/clock.ts';
import { type ErrorDetail, GatehouseError } from '../../platform/errors.ts';
import type { Change, ImportCaller, ImportPlan } from '../../platform/import-plan.ts';
import { inPieces, letOthersWork } from '../../platform/time-slice.ts';
import { uuidV5 } from '../../platform/uuid.ts';
import type { Problem } from '../../platform/yaml/problem.ts';
import type { DoorEntry } from '../doors/site-entry.ts';
import type { Rs485Entry } from '../rs485/site-entry.ts';
import type { SiteContext } from './context.ts';
import { references } from './references.ts';
import type { ImportCounts, ImportResult } from './schema.ts';
import { contradictions, type Site } from './site-document.ts';

/** Mistakes shown at once: a file with more has one mistake that explains them. */
const DETAILS_MAX = 100;

export interface SitePlan {
  /** Ids and access points are those that were drawn. */
  doors: { entry: DoorEntry; change: Change }[];
  rs485: Rs485Entry[];
  catalogueChanges: Change[];
  rs485Changes: Change[];
  /** Doors that are stored and not in the file. */
  leftAlone: Change[];
  /** Shown, and no reason not to go on. */
  warnings: ImportResult['warnings'];
}

/** Throws all that is wrong with the document at once. Others have the event loop in between, and may write. */
export async function planSite(site: Site, caller: ImportCaller, options: SiteContext): Promise<SitePlan> {
  const { refused, unknown } = await references(site, options);
  const contradicting = contradictions(site);
  await letOthersWork();
  const faults = faultOf([...contradicting, ...refused]);
  // Slices need not cope with circles, nor with one door twice.
  if (contradicting.length > 0) throw merged(faults);
  const plan = (prefix: string, make: () => ImportPlan): ImportPlan => {
    try {
      return make();
    } catch (error) {
      faults.push(inSection(prefix, error));
      return { changes: [], write() {} };
    }
  };
  const catalogue = plan('/document', () => options.catalogue.importPlan(site, caller));
  const doors = await planDoors(site.doors, caller, options, faults);
  let devices = site.rs485;
  const rs485 = plan('/document/rs485', () => {
    const first = options.rs485.importPlan(devices, caller);
    devices = identifiedDevices(devices, first, options.systemId);
    // Planned again only where ids were drawn.
    return devices.every((entry, index) => entry === site.rs485[index])
      ? first
      : options.rs485.importPlan(devices, caller);
  });
  if (faults.length > 0) throw merged(faults);
  return {
    doors,
    rs485: devices,
    catalogueChanges: catalogue.changes,
    rs485Changes: rs485.changes,
    leftAlone: options.doors.siteImport.leftAlone(new Set(doors.map(({ change }) => change.id))),
    warnings: unknown.map(({ path, message }) => ({ path: pointerTo(path), message })),
  };
}

async function planDoors(
  entries: readonly DoorEntry[],
  caller: ImportCaller,
  { doors, systemId, clock }: SiteContext,
  faults: GatehouseError[],
): Promise<SitePlan['doors']> {
  const freeAccessPoint = doors.siteImport.freeAccessPoints(entries);
  const taken = new Set(doors.siteImport.leftAlone(new Set()).map(({ id }) => id));
  for (const { id } of entries) if (id !== undefined) taken.add(id);
  const planned: SitePlan['doors'] = [];
  for await (const { piece, position } of inPieces(clock, entries)) {
    try {
      const plan = doors.siteImport.plan(piece, caller, freeAccessPoint);
      const identified = identifiedDoors(piece, plan, systemId, taken);
      for (const [index, change] of plan.changes.entries()) {
        const entry = identified[index];
        if (entry) planned.push(resolved(entry, change));
      }
    } catch (error) {
      faults.push(inSection('/document/doors', error, position));
    }
  }
  return planned;
}

/** With the id and the access point that the plan found or drew: a later plan of this entry alone is the same. */
function resolved(entry: DoorEntry, planned: Change): SitePlan['doors'][number] {
  const isAdded = planned.change === 'added';
  const change = isAdded && entry.id !== undefined ? { ...planned, id: entry.id } : planned;
  const drawn = change.fields.find(({ field }) => field === 'accessPointId')?.to;
  return {
    entry: { ...entry, id: change.id, ...(typeof drawn === 'number' && { accessPointId: drawn }) },
    change,
  };
}

/** All that the plan comes to, in the order of the file. */
export function changesOf({ catalogueChanges, doors, leftAlone, rs485Changes }: SitePlan): Change[] {
  return [...catalogueChanges, ...doors.map(({ change }) => change), ...leftAlone, ...rs485Changes];
}

export const isOpen = ({ change }: Change): boolean => change === 'added' || change === 'changed';

export async function digestOf(changes: readonly Change[], clock: Pick<Clock, 'monotonic'>): Promise<string> {
  const hash = createHash('sha256');
  for await (const { piece } of inPieces(clock, changes.filter(isOpen)))
    for (const change of piece) hash.update(JSON.stringify(change));
  return hash.digest('hex');
}

export function countsOf(changes: readonly Change[]): ImportCounts {
  const count = (wanted: Change['change']) => changes.filter(({ change }) => change === wanted).length;
  return {
    added: count('added'),
    changed: count('changed'),
    unchanged: count('unchanged'),
    leftAlone: count('left alone'),
  };
}

function pointerTo(path: PropertyKey[]): string {
  return `/document/${path.map(String).join('/')}`;
}

/** That the document contradicts itself, or names wiring that is not there; none without problems. */
function faultOf(problems: Problem[]): GatehouseError[] {
  if (problems.length === 0) return [];
  const details = problems.map(({ path, message, see }): ErrorDetail => {
    const text = see ? `${message}: see ${pointerTo(see)}` : message;
    return { path: pointerTo(path), code: 'CONTRADICTION', message: text };
  });
  const message = 'The file contradicts itself, or names what does not exist.';
  return [new GatehouseError('VALIDATION_FAILED', message, { details })];
}

/** The details of a refusal count from the whole document. `position`: of the first entry that was planned. */
function inSection(prefix: string, error: unknown, position = 0): GatehouseError {
  if (!(error instanceof GatehouseError) || !error.details) throw error;
  const details = error.details.map((detail) => ({
    ...detail,
    path: prefix + detail.path.replace(/^\/(\d+)/, (_, index) => `/${Number(index) + position}`),
  }));
  return new GatehouseError(error.code, error.message, { details, cause: error });
}

/** One error with the details of all. */
function merged(faults: readonly GatehouseError[]): GatehouseError {
  const [first, ...others] = faults;
  const details = faults.flatMap((fault) => fault.details ?? []).slice(0, DETAILS_MAX);
  if (first && others.length === 0) return new GatehouseError(first.code, first.message, { details });
  return new GatehouseError('VALIDATION_FAILED', 'Not valid. The details say where.', { details });
}

// Ids of entries that are new and have none. They follow from what the entry is found by, so that a dry run shows the ids that the
// import then stores, however often it is asked.

/** `plan` is that of the same entries, without the ids; no id of `taken` is drawn, and those that are drawn are added. */
export function identifiedDoors(
  entries: readonly DoorEntry[],
  plan: ImportPlan,
  systemId: string,
  taken = idsOf(plan),
): DoorEntry[] {
  const draw = drawer(taken, systemId);
  return entries.map((entry, index) =>
    entry.id === undefined && isNew(plan, index)
      ? { ...entry, id: draw('door', String(entry.accessPointId)) }
      : entry,
  );
}

/** As for doors. */
export function identifiedDevices(
  entries: readonly Rs485Entry[],
  plan: ImportPlan,
  systemId: string,
): Rs485Entry[] {
  const draw = drawer(idsOf(plan), systemId);
  return entries.map((entry, index) =>
    entry.deviceId === undefined && isNew(plan, index)
      ? { ...entry, deviceId: draw('rs485 device', entry.bus, entry.hwId) }
      : entry,
  );
}

function idsOf({ changes }: ImportPlan): Set<string> {
  return new Set(changes.map(({ id }) => id));
}

function isNew({ changes }: ImportPlan, index: number): boolean {
  return changes[index]?.change === 'added';
}

/** A device keeps its id when it moves, and its place may be taken by another: hence a number besides. */
function drawer(taken: Set<string>, systemId: string): (...name: string[]) => string {
  return (...name) => {
    let number = 0;
    let id: string;
    do {
      id = uuidV5(systemId, JSON.stringify([...name, number]));
      number += 1;
    } while (taken.has(id));
    taken.add(id);
    return id;
  };
}
