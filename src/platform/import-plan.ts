/**
 * `gatehouse import`: what every slice that takes part does with its section of the site's file. site-import/ puts the
 * plans together and has them written, a few entries in each commit; site-import passes them in.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Principal } from './principal.ts';

/** Plain data, as JSON has it. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** What the import does to one resource. Nothing is ever deleted: what the file does not name is left alone. */
export interface Change {
  /** As the file's section calls one of its entries: group, schedule, template, door, rs485 device. */
  resource: string;
  id: string;
  name: string | null;
  change: 'added' | 'changed' | 'unchanged' | 'left alone';
  /** Of what is added or changed; `from` is null for what is added. */
  fields: { field: string; from: Json; to: Json }[];
}

export interface ImportCaller {
  principal: Principal;
  correlationId: string;
}

export interface ImportPlan {
  /** First one for each entry, in their order; then what else is stored and left alone. */
  changes: Change[];
  /** Inside the commit job the plan was made in; audit rows included. */
  write(): void;
  /** After that commit: wakes the loops that send what was written. Resolves when nothing acts on what was there before. */
  written?(): Promise<void>;
}

/**
 * Compares entries of the file with what is stored; reads only. Called for a dry run, and again inside the commit job
 * that writes.
 * May throw a GatehouseError; paths of its details start at the section, such as `/3/doorId`.
 */
export type MakeImportPlan<Entry> = (entries: readonly Entry[], caller: ImportCaller) => ImportPlan;

/** `before` is undefined for what is not stored yet; fields that are undefined in `after` stay as they are. */
export function changeOf(
  resource: string,
  id: string,
  before: Readonly<Record<string, Json>> | undefined,
  after: Readonly<Record<string, Json | undefined>>,
): Change {
  const fields = Object.entries(after).flatMap(([field, to]) => {
    const from = before?.[field] ?? null;
    return to === undefined || isDeepStrictEqual(from, to) ? [] : [{ field, from, to }];
  });
  const name = (after.name === undefined ? before?.name : after.name) ?? null;
  const change = before === undefined ? 'added' : fields.length > 0 ? 'changed' : 'unchanged';
  return { resource, id, name: typeof name === 'string' ? name : null, change, fields };
}

/** What is stored and not in the file. */
export function leftAlone(resource: string, id: string, name: string | null): Change {
  return { resource, id, name, change: 'left alone', fields: [] };
}
