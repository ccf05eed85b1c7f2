/**
 * A form for what is wanted of one thing. What is typed stays until it is saved; when somebody else has changed the thing
 * meanwhile (412), the person sees what, and decides. Only the fields that were changed are sent.
 */
import { useSignal } from '@preact/signals';
import { type ComponentChildren, Fragment, type TargetedInputEvent } from 'preact';
import { call, exchange, Refused } from './api.ts';
import { useOrder } from './use-order.ts';
import { wordsOf } from './use-read.ts';
import { t } from './words.ts';

/** A thing and its version. */
export interface Stored<Value> {
  value: Value;
  etag: string | undefined;
}

export interface EditFormProps<Value, Field extends keyof Value & string> {
  /** Of the thing, for PUT, and for GET unless `present` reads it. */
  path: string;
  /** As it is stored now. */
  present?(): Promise<Stored<Value>>;
  value: Value;
  etag: string | undefined;
  /** What a person calls each. */
  fields: Readonly<Record<Field, string>>;
  /** Resolves when `value` is as it is stored now. */
  saved(): Promise<void>;
  children(shown: Value, change: (fields: Partial<Pick<Value, Field>>) => void): ComponentChildren;
}

export function EditForm<Value extends object, Field extends keyof Value & string>({
  path,
  present = () => exchange<Value>('GET', path),
  value,
  etag,
  fields,
  saved,
  children,
}: EditFormProps<Value, Field>) {
  /** As it was when the first field was changed. */
  const base = useSignal<Stored<Value> | undefined>(undefined);
  const edit = useSignal<Partial<Pick<Value, Field>>>({});
  const conflict = useSignal<Stored<Value> | undefined>(undefined);
  const { said, submit } = useOrder(undefined, (error) => wordsOf(error, fields));
  const change = (changed: Partial<Pick<Value, Field>>) => {
    base.value ??= { value, etag };
    edit.value = { ...edit.value, ...changed };
    said.value = '';
  };
  /** What was edited so far is shown until what is stored is; what was typed meanwhile stays. */
  const forget = async (edited: typeof edit.value) => {
    conflict.value = undefined;
    await saved();
    base.value = undefined;
    if (edit.value === edited) edit.value = {};
  };
  const save = (version: string | undefined) =>
    submit(async () => {
      const sent = edit.value;
      try {
        await call('PUT', path, { body: sent, ifMatch: version });
      } catch (error) {
        if (!(error instanceof Refused) || error.status !== 412) throw error;
        conflict.value = await present();
        return;
      }
      await forget(sent);
      return t('saved');
    });
  const theirs = conflict.value;
  return (
    <form onSubmit={save(base.value?.etag ?? etag)}>
      {children({ ...value, ...edit.value }, change)}
      <button type="submit" class="primary" disabled={Object.keys(edit.value).length === 0}>
        {t('save')}
      </button>
      <div role="status">
        {said.value && <p>{said.value}</p>}
        {theirs && (
          <div class="card warn">
            <p>
              {t('changedMeanwhile', {
                fields: differences(fields, base.value?.value, theirs.value, edit.value),
              })}
            </p>
            <span class="choices">
              <button type="button" onClick={save(theirs.etag)}>
                {t('saveMine')}
              </button>
              <button type="button" onClick={() => forget(edit.value)}>
                {t('takeTheirs')}
              </button>
            </span>
          </div>
        )}
      </div>
    </form>
  );
}

/** What is stored now where it differs from what was edited, beside what was typed in its place. */
function differences<Value extends object>(
  fields: Readonly<Partial<Record<keyof Value, string>>>,
  before: Value | undefined,
  now: Value,
  typed: Partial<Value>,
) {
  return (Object.keys(fields) as (keyof Value)[])
    .filter((field) => before && JSON.stringify(before[field]) !== JSON.stringify(now[field]))
    .map((field) => {
      const theirs = `${fields[field]} ${JSON.stringify(now[field])}`;
      return field in typed ? `${theirs} (${t('yours', { value: JSON.stringify(typed[field]) })})` : theirs;
    })
    .join(', ');
}

interface TextFieldProps {
  label: string;
  /** Copied from a label, letter by letter: the browser completes and capitalises nothing. */
  isExact?: boolean;
  value: string | null;
  change(value: string | null): void;
}

/** Empty: cleared. */
export function TextField({ label, isExact = false, value, change }: TextFieldProps) {
  return (
    <label>
      {label}
      <input
        dir="auto"
        {...(isExact && { autocomplete: 'off', autocapitalize: 'off' })}
        value={value ?? ''}
        onInput={({ currentTarget }) => change(currentTarget.value || null)}
      />
    </label>
  );
}

/** Of a field that keeps what is typed in `text`. */
export const typed = (text: { value: string }) => ({
  value: text.value,
  onInput({ currentTarget }: TargetedInputEvent<HTMLInputElement | HTMLTextAreaElement>) {
    text.value = currentTarget.value;
  },
});

/** A text field of no stored thing: what is typed is kept in `text`; empty: nothing. */
export function Typed({
  text,
  ...field
}: Pick<TextFieldProps, 'label' | 'isExact'> & { text: { value: string } }) {
  return (
    <TextField
      {...field}
      value={text.value}
      change={(value) => {
        text.value = value ?? '';
      }}
    />
  );
}

interface CheckProps {
  label: string;
  whole?: boolean;
  value: boolean;
  change(value: boolean): void;
}

export function Check({ label, whole = false, value, change }: CheckProps) {
  return (
    <label class={whole ? 'check whole' : 'check'}>
      <input
        type="checkbox"
        checked={value}
        onChange={({ currentTarget }) => change(currentTarget.checked)}
      />
      {label}
    </label>
  );
}

interface ChoiceProps {
  label: string;
  /** It is not shown. */
  isBare?: boolean;
  /** Absent: one of them is always chosen. */
  none?: string;
  value: string | null;
  choices: readonly { id: string; name: string }[];
  change(value: string | null): void;
}

/** One of a list, or none. What is chosen and not in the list is kept. */
export function Choice({ label, isBare = false, none, value, choices, change }: ChoiceProps) {
  const isMissing = value !== null && !choices.some(({ id }) => id === value);
  const Label = isBare ? Fragment : 'label';
  return (
    <Label>
      {!isBare && label}
      <select
        aria-label={isBare ? label : undefined}
        value={value ?? ''}
        onChange={({ currentTarget }) => change(currentTarget.value || null)}
      >
        {none !== undefined && <option value="">{none}</option>}
        {isMissing && <option value={value}>{value}</option>}
        {choices.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
    </Label>
  );
}

/** The same of no stored thing: what is chosen is kept in `chosen`; none: "". */
export function Chosen<Name extends string>({
  chosen,
  ...field
}: Omit<ChoiceProps, 'value' | 'choices' | 'change'> & {
  chosen: { value: Name };
  choices: readonly { id: NoInfer<Name>; name: string }[];
}) {
  return (
    <Choice
      {...field}
      value={chosen.value || null}
      change={(id) => {
        chosen.value = (id ?? '') as Name;
      }}
    />
  );
}
