/** Makes a door, and shows it. */
import { useSignal } from '@preact/signals';
import type { Door } from '../resources/doors/schema.ts';
import { call } from './api.ts';
import { Typed } from './edit-form.tsx';
import { DOORS } from './place.ts';
import { wordsOf } from './use-read.ts';
import { t } from './words.ts';

/** As locks have it printed on them: with or without colons. */
const macOf = (text: string) => text.replaceAll(/[\s:-]/g, '').toLowerCase();

export function NewDoor() {
  const name = useSignal('');
  const number = useSignal('');
  const mac = useSignal('');
  const refusal = useSignal('');
  const busy = useSignal(false);
  const make = async (event: Event) => {
    event.preventDefault();
    if (busy.value) return;
    busy.value = true;
    try {
      const body = {
        name: name.value,
        ...(number.value !== '' && { accessPointId: Number(number.value) }),
        ...(mac.value !== '' && { mac: macOf(mac.value) }),
      };
      // A browser that sends it again makes no second one.
      const { id } = await call<Door>('POST', DOORS, { body, key: crypto.randomUUID() });
      location.hash = `#/doors/${id}`;
    } catch (error) {
      refusal.value = wordsOf(error);
    }
    busy.value = false;
  };
  return (
    <details>
      <summary>{t('newDoor')}</summary>
      <form onSubmit={make}>
        <Typed label={t('label')} text={name} />
        <Typed label={t('newNumber')} isExact text={number} />
        <Typed label={t('newMac')} isExact text={mac} />
        <button type="submit" class="primary" disabled={busy.value || name.value === ''}>
          {t('make')}
        </button>
        <div role="status">{refusal.value && <p class="card bad">{refusal.value}</p>}</div>
      </form>
    </details>
  );
}
