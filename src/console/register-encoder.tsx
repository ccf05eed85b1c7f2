/** Registers an encoder: its signed message goes in as a file, and what it connects with comes out as one. */
import { useSignal } from '@preact/signals';
import { call } from './api.ts';
import { download } from './download.ts';
import { Typed } from './edit-form.tsx';
import { wordsOf } from './use-read.ts';
import { t } from './words.ts';

export function RegisterEncoder({ ended }: { ended: () => void }) {
  const id = useSignal('');
  const message = useSignal<object | undefined>(undefined);
  const said = useSignal('');
  const busy = useSignal(false);
  const load = async (file: File | undefined) => {
    message.value = undefined;
    said.value = '';
    try {
      if (file) message.value = JSON.parse(await file.text());
      const { id: own } = (message.value ?? {}) as { id?: unknown };
      if (typeof own === 'string') id.value = own;
    } catch {
      said.value = t('registerNotJson');
    }
  };
  const register = async (event: Event) => {
    event.preventDefault();
    if (busy.value) return;
    busy.value = true;
    try {
      const answer = await call('PUT', `/encoder/${encodeURIComponent(id.value)}`, { body: message.value });
      // It is answered once: saved before anything else is done.
      download(`${id.value}.credentials.json`, 'application/json', `${JSON.stringify(answer, null, 2)}\n`);
      said.value = t('registered', { id: id.value });
      ended();
    } catch (error) {
      said.value = wordsOf(error);
    }
    busy.value = false;
  };
  return (
    <details>
      <summary>{t('register')}</summary>
      <p class="soft">{t('registerHelp')}</p>
      <form onSubmit={register}>
        <label>
          {t('registerFile')}
          <input
            type="file"
            accept="application/json,.json"
            onChange={({ currentTarget }) => load(currentTarget.files?.[0])}
          />
        </label>
        <Typed label={t('encoderId')} isExact text={id} />
        <button type="submit" class="primary" disabled={busy.value || !message.value || id.value === ''}>
          {t('register')}
        </button>
        <div role="status">{said.value && <p>{said.value}</p>}</div>
      </form>
    </details>
  );
}
