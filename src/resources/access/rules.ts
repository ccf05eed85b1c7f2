/** Which inputs and readers open which door: nothing does until it is set. */
import { isDeepStrictEqual } from 'node:util';
import { storedJson } from '../../platform/database/damaged-rows.ts';
import { GatehouseError, notPossible } from '../../platform/errors.ts';
import type { Caller } from '../../platform/principal.ts';
import type { AccessContext } from './context.ts';
import { type AccessRules, type RulesBody, type RulesResult, storedRules } from './schema.ts';
import type { RulesRow } from './table.ts';

const NONE: AccessRules = { requestToExit: [], readers: [], decisionService: false, allowList: false };

export interface Rules {
  rules(doorId: string): RulesResult;
  /**
   * Throws NOT_FOUND; VALIDATION_FAILED for a device that is not there and a pin that is not in use; IN_USE where an input or a reader is one
   * of another door.
   */
  setRules(doorId: string, body: RulesBody, caller: Caller): Promise<RulesResult>;
  /** The same in memory, for a decision. */
  of(doorId: string): AccessRules;
  doorOfInput(deviceId: string, input: string): string | undefined;
  /** `own`: the door of the device. A reader that a door names is of that door alone. */
  doorOfReader(deviceId: string, reader: number, own: string | null): string | undefined;
}

export function openRules({ database, table, audit, doors, rs485, service }: AccessContext): Rules {
  const stored = ({ door_id, rules }: RulesRow) => storedJson(`door/${door_id}`, storedRules, rules);
  function of(doorId: string): AccessRules {
    const row = table.rules.get(doorId);
    return row ? stored(row) : NONE;
  }
  /** Made again after each change. What it says of a door that is no more does no harm: a decision reads the rules themselves. */
  let index: Map<string, string> | undefined;
  function indexed(): Map<string, string> {
    index ??= new Map(
      table.allRules.all().flatMap((row) => {
        const [rules] = database.legible(`door/${row.door_id}`, () => stored(row));
        return placesOf(rules ?? NONE).map((place) => [place, row.door_id] as const);
      }),
    );
    return index;
  }
  function assertOwn(doorId: string, rules: AccessRules): void {
    for (const place of placesOf(rules)) {
      const other = indexed().get(place);
      if (other !== undefined && other !== doorId && doors.exists(other)) throw inUse(place, other);
    }
  }
  /** A place of which nothing would ever be heard: a door that does not open is noticed last by the one who set it. */
  function assertHeard(before: AccessRules, after: AccessRules): void {
    const known = new Set(placesOf(before));
    for (const field of ['requestToExit', 'readers'] as const)
      for (const [index, place] of after[field].entries()) {
        const { deviceId } = place;
        if (known.has(placeOf(deviceId, 'input' in place ? place.input : place.reader))) continue;
        const usesPin = rs485.usesPin(deviceId);
        if (!usesPin) throw notPossible(`/${field}/${index}/deviceId`, 'is no RS-485 device of this gateway');
        if ('input' in place && !usesPin(place.input))
          throw notPossible(
            `/${field}/${index}/input`,
            `is not in use: set ioPins.${place.input} of the device first`,
          );
      }
  }
  function rules(doorId: string): RulesResult {
    if (!doors.exists(doorId)) throw new GatehouseError('NOT_FOUND', `There is no door ${doorId}.`);
    return { doorId, ...of(doorId), hasDecisionService: service !== undefined };
  }

  return {
    of,
    rules,
    doorOfInput: (deviceId, input) => indexed().get(placeOf(deviceId, input)),
    doorOfReader: (deviceId, reader, own) => indexed().get(placeOf(deviceId, reader)) ?? own ?? undefined,
    async setRules(doorId, body, { principal, correlationId }) {
      await database.commit(() => {
        rules(doorId);
        const before = of(doorId);
        const after = { ...before, ...given(body) };
        if (isDeepStrictEqual(before, after)) return;
        assertHeard(before, after);
        assertOwn(doorId, after);
        if (isDeepStrictEqual(after, NONE)) table.deleteRules.run(doorId);
        else table.setRules.run(doorId, JSON.stringify(after));
        const entry = { principal, correlationId, object: `door/${doorId}`, outcome: 'done' };
        audit.record({ ...entry, action: 'door.set-access-rules', detail: { ...given(body) } });
      });
      index = undefined;
      return rules(doorId);
    },
  };
}

/** Absent stays. */
function given(body: RulesBody): Partial<AccessRules> {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined));
}

const placeOf = (deviceId: string, place: string | number) =>
  `${typeof place === 'number' ? `reader ${place}` : place} of device ${deviceId}`;

function placesOf({ requestToExit, readers }: AccessRules): string[] {
  return [
    ...requestToExit.map(({ deviceId, input }) => placeOf(deviceId, input)),
    ...readers.map(({ deviceId, reader }) => placeOf(deviceId, reader)),
  ];
}

function inUse(place: string, doorId: string): GatehouseError {
  const message = `Nothing was changed: ${place} is of door ${doorId}. Take it away there first.`;
  return new GatehouseError('IN_USE', message);
}
