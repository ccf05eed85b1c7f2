/** Makes a token for a program: it is shown once, and by then it counts. */
import { useSignal } from '@preact/signals';
import type { CreatedToken } from '../services/auth/schema.ts';
import { call, session } from './api.ts';
import { Choice, Typed } from './edit-form.tsx';
import { wordsOf } from './use-read.ts';
import { moment, t } from './words.ts';

/** The gateway gives no role that the caller does not have. */
export function NewToken({ ended }: { ended: () => void }) {
  const roles = session.value?.roles ?? [];
  const label = useSignal('');
  const role = useSignal<string>(roles[0] ?? '');
  const days = useSignal('90');
  const made = useSignal<CreatedToken | undefined>(undefined);
  const fault = useSignal('');
  const busy = useSignal(false);
  const make = async (event: Event) => {
    event.preventDefault();
    if (busy.value) return;
    busy.value = true;
    made.value = undefined;
    fault.value = '';
    try {
      const body = { label: label.value, roles: [role.value], expiresInDays: Number(days.value) };
      made.value = await call<CreatedToken>('POST', '/tokens', { body, key: crypto.randomUUID() });
      label.value = '';
      ended();
    } catch (error) {
      fault.value = wordsOf(error);
    }
    busy.value = false;
  };
  return (
    <details>
      <summary>{t('newToken')}</summary>
      <p class="soft">{t('newTokenHelp')}</p>
      <form onSubmit={make}>
        <Typed label={t('newTokenFor')} text={label} />
        <Choice
          label={t('newTokenRole')}
          value={role.value}
          choices={roles.map((each) => ({ id: each, name: each }))}
          change={(chosen) => {
            role.value = chosen ?? '';
          }}
        />
        <Typed label={t('newTokenDays')} isExact text={days} />
        <button type="submit" class="primary" disabled={busy.value || label.value === ''}>
          {t('newTokenMake')}
        </button>
        <div role="status">
          {fault.value && <p class="card bad">{fault.value}</p>}
          {made.value && (
            <div class="card good">
              <p>{t('newTokenMade', { time: moment(made.value.expiresAt) })}</p>
              <p>
                <code>{made.value.token}</code>
              </p>
            </div>
          )}
        </div>
      </form>
    </details>
  );
}
