/** Makes a door, and shows it. */
import { useSignal } from '@preact/signals';
import type { Door } from '../resources/doors/schema.ts';
import { call, DOORS } from './api.ts';
import { TextField } from './edit-form.tsx';
import { wordsOf } from './use-read.ts';
import { t } from './words.ts';

/** As locks have it printed on them: with or without colons. */
const macOf = (text: string | null) => text?.replaceAll(/[\s:-]/g, '').toLowerCase() ?? null;

export function NewDoor() {
  const name = useSignal<string | null>(null);
  const number = useSignal<string | null>(null);
  const mac = useSignal<string | null>(null);
  const refusal = useSignal('');
  const busy = useSignal(false);
  const make = async (event: Event) => {
    event.preventDefault();
    if (busy.value) return;
    busy.value = true;
    try {
      const body = {
        name: name.value,
        ...(number.value !== null && { accessPointId: Number(number.value) }),
        ...(mac.value !== null && { mac: macOf(mac.value) }),
      };
      // A browser that sends it again makes no second one.
      const { id } = await call<Door>('POST', DOORS, { body, key: crypto.randomUUID() });
      location.hash = `#/doors/${id}`;
    } catch (error) {
      refusal.value = wordsOf(error);
    }
    busy.value = false;
  };
  const field = (kept: typeof name) => ({
    value: kept.value,
    change: (value: string | null) => {
      kept.value = value;
    },
  });
  return (
    <details>
      <summary>{t('newDoor')}</summary>
      <form onSubmit={make}>
        <TextField label={t('label')} {...field(name)} />
        <TextField label={t('newNumber')} isExact {...field(number)} />
        <TextField label={t('newMac')} isExact {...field(mac)} />
        <button type="submit" class="primary" disabled={busy.value || name.value === null}>
          {t('make')}
        </button>
        <div role="status">{refusal.value && <p class="card bad">{refusal.value}</p>}</div>
      </form>
    </details>
  );
}
