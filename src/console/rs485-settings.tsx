/**
 * The settings of an RS-485 device. What is typed stays until it is saved; when somebody else has changed the device meanwhile
 * (412), the person sees what, and decides.
 */
import { useSignal } from '@preact/signals';
import type { Rs485Device } from '../resources/rs485/schema.ts';
import { call, exchange, Refused } from './api.ts';
import { wordsOf } from './use-read.ts';
import { t } from './words.ts';

const EDITABLE = [
  'name',
  'description',
  'doorId',
  'relayIndex',
  'unlockDurationMilliseconds',
  'useInputPinMemory',
  'ioPins',
] as const;
type Field = (typeof EDITABLE)[number];
type Edit = Partial<Pick<Rs485Device, Field>>;

interface Base {
  device: Rs485Device;
  etag: string | undefined;
}

export function Rs485Settings({ device, etag, saved }: Base & { saved: () => void }) {
  /** As it was when the first field was changed. */
  const base = useSignal<Base | undefined>(undefined);
  const edit = useSignal<Edit>({});
  const message = useSignal('');
  const conflict = useSignal<Base | undefined>(undefined);
  const shown = { ...device, ...edit.value };
  const change = (fields: Edit) => {
    base.value ??= { device, etag };
    edit.value = { ...edit.value, ...fields };
    message.value = '';
  };
  const forget = () => {
    base.value = conflict.value = undefined;
    edit.value = {};
  };
  const save = async (version: string | undefined) => {
    const path = `/network/rs485/${device.deviceId}`;
    try {
      await call('PUT', path, { body: edit.value, ifMatch: version });
      forget();
      message.value = t('saved');
      saved();
    } catch (error) {
      if (error instanceof Refused && error.status === 412) {
        const { value, etag: present } = await exchange<Rs485Device>('GET', path);
        conflict.value = { device: value, etag: present };
      } else message.value = wordsOf(error);
    }
  };
  const submit = (event: Event) => {
    event.preventDefault();
    void save(base.value?.etag ?? etag);
  };
  const text = (field: 'name' | 'description' | 'doorId', label: string) => (
    <label>
      {label}
      <input
        dir="auto"
        value={shown[field] ?? ''}
        onInput={({ currentTarget }) => change({ [field]: currentTarget.value || null })}
      />
    </label>
  );
  const theirs = conflict.value;
  return (
    <form onSubmit={submit}>
      {text('name', t('label'))}
      {text('description', t('description'))}
      {text('doorId', t('opensDoor'))}
      <Relay shown={shown} change={change} />
      <fieldset>
        <legend>{t('pinsInUse')}</legend>
        {Object.entries(shown.ioPins).map(([pin, isUsed]) => (
          <label key={pin} class="check">
            <input
              type="checkbox"
              checked={isUsed}
              onChange={({ currentTarget }) =>
                change({ ioPins: { ...shown.ioPins, [pin]: currentTarget.checked } })
              }
            />
            {pin}
          </label>
        ))}
        <label class="check whole">
          <input
            type="checkbox"
            checked={shown.useInputPinMemory}
            onChange={({ currentTarget }) => change({ useInputPinMemory: currentTarget.checked })}
          />
          {t('inputMemory')}
        </label>
      </fieldset>
      <button type="submit" class="primary" disabled={Object.keys(edit.value).length === 0}>
        {t('save')}
      </button>
      <div role="status">
        {message.value && <p>{message.value}</p>}
        {theirs && (
          <div class="card warn">
            <p>{t('changedMeanwhile', { fields: differences(base.value?.device, theirs.device) })}</p>
            <span class="choices">
              <button type="button" onClick={() => save(theirs.etag)}>
                {t('saveMine')}
              </button>
              <button
                type="button"
                onClick={() => {
                  forget();
                  saved();
                }}
              >
                {t('takeTheirs')}
              </button>
            </span>
          </div>
        )}
      </div>
    </form>
  );
}

function Relay({ shown, change }: { shown: Rs485Device; change: (fields: Edit) => void }) {
  const { relayIndex, unlockDurationMilliseconds } = shown;
  const numberOf = (text: string) => (text === '' ? null : Number(text));
  return (
    <>
      <label>
        {t('relay')}
        <select
          value={relayIndex ?? ''}
          onChange={({ currentTarget }) => change({ relayIndex: numberOf(currentTarget.value) })}
        >
          <option value="">{t('noRelay')}</option>
          {[0, 1, 2, 3, 4, 5, 6, 7].map((relay) => (
            <option key={relay} value={relay}>
              {relay}
            </option>
          ))}
        </select>
      </label>
      <label>
        {t('seconds')}
        <input
          type="number"
          min="0.1"
          max="600"
          step="0.1"
          value={unlockDurationMilliseconds === null ? '' : unlockDurationMilliseconds / 1_000}
          onInput={({ currentTarget }) => {
            const seconds = numberOf(currentTarget.value);
            change({ unlockDurationMilliseconds: seconds === null ? null : Math.round(1_000 * seconds) });
          }}
        />
      </label>
    </>
  );
}

/** What is stored now where it differs from what was edited. */
function differences(before: Rs485Device | undefined, now: Rs485Device): string {
  const word = (device: Rs485Device, field: Field) => JSON.stringify(device[field]);
  return EDITABLE.filter((field) => before && word(before, field) !== word(now, field))
    .map((field) => `${field} ${word(now, field)}`)
    .join(', ');
}
