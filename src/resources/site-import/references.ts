/**
 * What entries of a site's file refer to. Other entries may come later, as over the interface: an id that no one knows
 * yet is stored, and named, since in a file it is mostly a slip of the pen. Wiring is declared in the configuration, and
 * what it does not declare is not there.
 */
import { inPieces } from '../../platform/time-slice.ts';
import { nearest } from '../../platform/yaml/nearest.ts';
import type { Problem } from '../../platform/yaml/problem.ts';
import type { DoorEntry } from '../doors/site-entry.ts';
import type { SiteContext } from './context.ts';
import type { Site } from './site-document.ts';

/** Unknown ids named at once; each is compared with all there are for the one that was likely meant. */
const UNKNOWN_MAX = 100;

type Kind = 'group' | 'schedule' | 'template' | 'door';

export interface References {
  /** What cannot be stored. */
  refused: Problem[];
  /** What can be, once for each id, where it is named first. */
  unknown: Problem[];
}

interface Unknown {
  kind: Kind;
  id: string;
  path: PropertyKey[];
  /** How many places name it. */
  count: number;
}

export async function references(site: Site, context: SiteContext): Promise<References> {
  const { catalogue, doors, clock } = context;
  /** Whether it is on the site. */
  const known: Record<Kind, (id: string) => boolean> = {
    group: (id) => catalogue.groupName(id) !== undefined,
    schedule: (id) => catalogue.schedule(id) !== undefined,
    template: (id) => catalogue.template(id) !== undefined,
    door: doors.exists,
  };
  const ids: Record<Kind, Set<string | undefined>> = {
    group: idsOf(site.groups),
    schedule: idsOf(site.schedules),
    template: idsOf(site.templates),
    door: idsOf(site.doors),
  };
  const exists = (kind: Kind, id: string) => ids[kind].has(id) || known[kind](id);
  const unknown = new Map<string, Unknown>();
  const look = ({ kind, id, path }: Reference) => {
    if (id === null || id === undefined || exists(kind, id)) return;
    const known = unknown.get(`${kind} ${id}`);
    if (known) known.count += 1;
    else unknown.set(`${kind} ${id}`, { kind, id, path, count: 1 });
  };
  for await (const { piece, position } of inPieces(clock, site.doors))
    for (const [index, door] of piece.entries()) doorReferences(door, position + index).forEach(look);
  deviceReferences(site).forEach(look);
  return {
    refused: [...danglingParents(site, exists), ...danglingWiring(site, context)],
    unknown: [...unknown.values()].slice(0, UNKNOWN_MAX).map((one) => ({
      path: one.path,
      message: inWords(
        one,
        [...ids[one.kind]].filter((id) => id !== undefined),
      ),
    })),
  };
}

function inWords({ kind, id, count }: Unknown, inFile: string[]): string {
  const guess = nearest(id, inFile);
  const hint = guess === undefined ? '' : ` (did you mean "${guess}"?)`;
  const times = count === 1 ? '' : ` ${count} times`;
  return `there is no ${kind} ${id}, in the file or on the site${hint}: stored as unknown${times}`;
}

interface Reference {
  kind: Kind;
  id: string | null | undefined;
  path: PropertyKey[];
}

function doorReferences(door: DoorEntry, index: number): Reference[] {
  const at = (...path: PropertyKey[]) => ['doors', index, ...path];
  const keysOf = (list: readonly { id: string }[] | null | undefined, ...path: PropertyKey[]) =>
    (list ?? []).map(({ id }, nth): Reference => ({ kind: 'door', id, path: at(...path, nth, 'id') }));
  const outputs = door.options?.outputs ?? [];
  return [
    { kind: 'group', id: door.groupId, path: at('groupId') },
    { kind: 'schedule', id: door.scheduleId, path: at('scheduleId') },
    { kind: 'template', id: door.templateId, path: at('templateId') },
    ...keysOf(door.options?.accessInternal?.doors, 'options', 'accessInternal', 'doors'),
    ...outputs.flatMap(({ doorId, access }, nth): Reference[] => [
      { kind: 'door', id: doorId, path: at('options', 'outputs', nth, 'doorId') },
      ...keysOf(access?.doors, 'options', 'outputs', nth, 'access', 'doors'),
    ]),
  ];
}

function deviceReferences({ rs485 }: Site): Reference[] {
  return rs485.flatMap(({ groupId, doorId }, index): Reference[] => [
    { kind: 'group', id: groupId, path: ['rs485', index, 'groupId'] },
    { kind: 'door', id: doorId, path: ['rs485', index, 'doorId'] },
  ]);
}

/** Values are inherited at the import, so that there must be something to inherit. */
function danglingParents({ templates }: Site, exists: (kind: Kind, id: string) => boolean): Problem[] {
  return templates.flatMap(({ extends: parent }, index) => {
    if (parent === undefined || exists('template', parent)) return [];
    const message = `there is no template ${parent}, in the file or on the site`;
    return [{ path: ['templates', index, 'extends'], message }];
  });
}

function danglingWiring({ doors, rs485 }: Site, context: SiteContext): Problem[] {
  /** Ids of the configuration's links that are RS-485 buses. */
  const buses = context.rs485.buses.ids();
  const problems: Problem[] = [];
  const refuse = (path: PropertyKey[], message: string) => problems.push({ path, message });
  for (const [index, { gatewayId, networkId }] of doors.entries()) {
    if (gatewayId && !context.zgates.exists(gatewayId))
      refuse(
        ['doors', index, 'gatewayId'],
        `there is no Zigbee gateway ${gatewayId}: see zgates of the configuration`,
      );
    if (networkId && !context.networks.exists(networkId))
      refuse(
        ['doors', index, 'networkId'],
        `there is no network ${networkId}: see networks of the configuration`,
      );
  }
  for (const [index, { bus }] of rs485.entries()) {
    if (buses.includes(bus)) continue;
    const guess = nearest(bus, buses);
    const there = buses.length > 0 ? buses.join(', ') : 'none';
    const hint = guess === undefined ? `buses there: ${there}` : `did you mean "${guess}"?`;
    refuse(['rs485', index, 'bus'], `links of the configuration has no bus "${bus}" (${hint})`);
  }
  return problems;
}

function idsOf(entries: readonly { id?: string | undefined }[]): Set<string | undefined> {
  return new Set(entries.map(({ id }) => id));
}
