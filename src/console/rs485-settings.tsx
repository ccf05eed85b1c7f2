/** The settings of an RS-485 device: a field for each that the interface declares (`npm run openapi` writes rs485-fields.json). */
import type { Rs485Device } from '../resources/rs485/schema.ts';
import { doorName, readAllDoors } from './doors-list.ts';
import { Check, Choice, EditForm, TextField } from './edit-form.tsx';
import type { LiveEvent } from './live.ts';
import declared from './rs485-fields.json';
import { useRead } from './use-read.ts';
import { listed, t } from './words.ts';

/** As scripts/settings-fields.ts writes it. */
interface Field {
  kind: string;
  canBeNull?: boolean;
  description?: string;
  minimum?: number;
  maximum?: number;
  choices?: string;
  flags?: string;
}

/** Of the device too, under the same name. */
type Name = keyof typeof declared;
const FIELDS = Object.entries(declared) as [Name, Field][];

/** What a person calls them; one that is new is called as in the interface. */
const labels = (): Partial<Record<Name, string>> => ({
  name: t('label'),
  description: t('description'),
  doorId: t('opensDoor'),
  groupId: t('group'),
  relayIndex: t('relay'),
  unlockDurationMilliseconds: t('relayMilliseconds'),
  useInputPinMemory: t('inputMemory'),
  ioPins: t('pinsInUse'),
});
/** More than so many numbers are typed, and not chosen. */
const CHOSEN_MAX = 16;
const MILLISECONDS = /Milliseconds$/;

/** Doors are made, named and removed with an event. */
const READ_MS = 300_000;
const isMine = ({ type }: LiveEvent) => /^gatehouse\.door\.(changed|lock)\./.test(type);

/** A relay opens a door that has no lock. */
async function readDoors(): Promise<{ id: string; name: string }[]> {
  const doors = await readAllDoors();
  return doors.filter(({ mac }) => mac === null).map((door) => ({ id: door.id, name: doorName(door) }));
}

interface Rs485SettingsProps {
  device: Rs485Device;
  etag: string | undefined;
  saved(): Promise<void>;
}

export function Rs485Settings({ device, etag, saved }: Rs485SettingsProps) {
  const { value: doors } = useRead(readDoors, { everyMs: READ_MS, isMine });
  const called = labels();
  const fields = Object.fromEntries(FIELDS.map(([name]) => [name, called[name] ?? name]));
  return (
    <EditForm
      path={`/network/rs485/${device.deviceId}`}
      value={device}
      etag={etag}
      fields={fields as Record<Name, string>}
      saved={saved}
    >
      {(shown, change) =>
        FIELDS.map(([name, field]) => (
          <AnyField
            key={name}
            label={called[name] ?? listed([name, field.description], ': ')}
            isTime={MILLISECONDS.test(name)}
            field={field}
            choices={name === 'doorId' ? (doors ?? []) : choicesOf(field)}
            value={shown[name]}
            change={(value) => change({ [name]: value })}
          />
        ))
      }
    </EditForm>
  );
}

function choicesOf({ choices, minimum = 0, maximum = Number.MAX_SAFE_INTEGER }: Field) {
  const numbers = maximum - minimum < CHOSEN_MAX ? maximum - minimum + 1 : 0;
  const names = choices?.split(' ') ?? Array.from({ length: numbers }, (_, index) => String(minimum + index));
  return names.length > 0 ? names.map((name) => ({ id: name, name })) : undefined;
}

interface AnyFieldProps {
  label: string;
  /** In milliseconds, and typed in seconds. */
  isTime: boolean;
  field: Field;
  choices: readonly { id: string; name: string }[] | undefined;
  value: unknown;
  change(value: unknown): void;
}

function AnyField({ label, isTime, field, choices, value, change }: AnyFieldProps) {
  const { kind, canBeNull, flags } = field;
  if (flags !== undefined) return <Flags label={label} flags={value as object} change={change} />;
  if (kind === 'boolean') return <Check label={label} whole value={value === true} change={change} />;
  const isNumber = kind === 'integer' || kind === 'number';
  if (choices)
    return (
      <Choice
        label={label}
        {...(canBeNull && { none: t('noneChosen') })}
        value={value === null ? null : String(value)}
        choices={choices}
        change={(chosen) => change(isNumber && chosen !== null ? Number(chosen) : chosen)}
      />
    );
  if (isNumber)
    return (
      <NumberField label={label} unit={isTime ? 1_000 : 1} field={field} value={value} change={change} />
    );
  return <TextField label={label} value={value as string | null} change={change} />;
}

function NumberField({
  label,
  unit,
  field: { minimum, maximum, canBeNull },
  value,
  change,
}: Pick<AnyFieldProps, 'label' | 'field' | 'value' | 'change'> & { unit: number }) {
  return (
    <label>
      {label}
      <input
        type="number"
        required={!canBeNull}
        min={minimum === undefined ? undefined : minimum / unit}
        max={maximum === undefined ? undefined : maximum / unit}
        step={unit === 1 ? 1 : 'any'}
        value={value === null ? '' : Number(value) / unit}
        onInput={({ currentTarget: { value: typed } }) =>
          change(typed === '' ? null : Math.round(unit * Number(typed)))
        }
      />
    </label>
  );
}

interface FlagsProps {
  label: string;
  /** Those that the thing has. */
  flags: object;
  change(value: object): void;
}

function Flags({ label, flags, change }: FlagsProps) {
  return (
    <fieldset>
      <legend>{label}</legend>
      {Object.entries(flags).map(([flag, isSet]) => (
        <Check
          key={flag}
          label={flag}
          value={isSet === true}
          change={(set) => change({ ...flags, [flag]: set })}
        />
      ))}
    </fieldset>
  );
}
