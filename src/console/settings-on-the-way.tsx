/** What is wanted of a door beside what its lock has acknowledged, field by field where the two differ. */
import type { ComponentChildren } from 'preact';
import type { Door, DoorOptions, DoorOptionsResult, DoorState } from '../resources/doors/schema.ts';
import { doorField } from './door-settings.tsx';
import { nameOfDoor, useNames } from './names.ts';
import { timeOf } from './week-grid.tsx';
import { listed, t } from './words.ts';

interface Row {
  field: string;
  inLock: string;
  wanted: string;
}

interface OnTheWayProps {
  door: Door;
  state: DoorState;
  options: DoorOptionsResult;
}

export function OnTheWay({ door, state, options }: OnTheWayProps): ComponentChildren {
  useNames();
  const rows = rowsOf(door, state, options).filter(({ inLock, wanted }) => inLock !== wanted);
  if (rows.length === 0) return null;
  return (
    <dl class="diff">
      {rows.map(({ field, inLock, wanted }) => (
        <div key={field}>
          <dt>{doorField(field)}</dt>
          <dd dir="auto">
            <del>{inLock}</del> → <ins>{wanted}</ins>
          </dd>
        </div>
      ))}
    </dl>
  );
}

const NOTHING: DoorOptions = { accessInternal: { doors: [], interval: null }, outputs: [] };

function rowsOf(
  { name, scheduleId, standOpenEnabled, templateId, applied }: Door,
  { configuration: { acknowledged }, effective }: DoorState,
  { number, options }: DoorOptionsResult,
): Row[] {
  const before = acknowledged?.options ?? NOTHING;
  const versions = applied?.versions;
  const of = (id: string | null | undefined, one: { version: number } | null | undefined) =>
    id && one ? `${id} (${t('version')} ${one.version})` : text(id);
  /** The lock has none, or cannot carry one: then there is no version to compare. */
  const reference = (
    field: string,
    id: string | null,
    was: string | null | undefined,
    now: Version,
    then: Version,
  ) => ({
    field,
    inLock: of(was, then),
    wanted: of(id, then && now),
  });
  return [
    { field: 'name', inLock: text(acknowledged?.name), wanted: text(name) },
    { field: 'number', inLock: text(acknowledged?.number), wanted: text(number) },
    {
      field: 'standOpenEnabled',
      inLock: flag(acknowledged?.standOpenEnabled),
      wanted: flag(standOpenEnabled),
    },
    reference('scheduleId', scheduleId, acknowledged?.scheduleId, effective.schedule, versions?.schedule),
    reference('templateId', templateId, acknowledged?.templateId, effective.template, versions?.template),
    { field: 'accessInternal', inLock: keysOf(before), wanted: keysOf(options) },
    { field: 'outputs', inLock: outputsOf(before), wanted: outputsOf(options) },
  ];
}

type Version = { version: number } | null | undefined;

const text = (value: string | number | null | undefined) => (value == null ? '–' : String(value));
const flag = (value: boolean | undefined) => (value === undefined ? '–' : t(value ? 'yes' : 'no'));
const doorsOf = (doors: DoorOptions['accessInternal']['doors']) =>
  doors.map(({ id }) => nameOfDoor(id)).join(', ') || '–';

function keysOf({ accessInternal: { doors, interval } }: DoorOptions): string {
  return listed([doorsOf(doors), interval && `${timeOf(interval.start)}–${timeOf(interval.end)}`], ', ');
}

function outputsOf({ outputs }: DoorOptions): string {
  return (
    outputs.map(({ doorId, access }) => `${nameOfDoor(doorId)}: ${doorsOf(access.doors)}`).join('; ') || '–'
  );
}
