/** The encoders of the site and which of them are there. */

import { useSignal } from '@preact/signals';
import type { ListedEncoder } from '../../resources/encoders/schema.ts';
import { call, mayDo, readAll } from '../api.ts';
import { download } from '../download.ts';
import { Typed } from '../edit-form.tsx';
import { Reads, Said } from '../messages.tsx';
import { useOrder } from '../use-order.ts';
import { useRead } from '../use-read.ts';
import { listed, moment, t } from '../words.ts';

const READ_MS = 30_000;

export function Encoders() {
  const {
    value: encoders,
    fault,
    again,
  } = useRead(() => readAll<ListedEncoder>('/encoder'), {
    everyMs: READ_MS,
    // Each card that is seen is no change of the list.
    isMine: ({ type }) =>
      /^gatehouse\.encoder\.(connection|alarm|write\.(started|written|failed|cancelled|expired|unknown))\./.test(
        type,
      ),
  });
  return (
    <>
      <h1>{t('encoders')}</h1>
      {mayDo('service-tool') && <RegisterEncoder ended={again} />}
      <Reads value={encoders} fault={fault} />
      {encoders?.length === 0 && <p>{t('noEncoders')}</p>}
      <ul class="cards">
        {encoders?.map(({ id, name, connectionState, alarmState, openRequests }) => (
          <li key={id}>
            <a class="card row" href={`#/encoders/${encodeURIComponent(id)}`}>
              <span class="what">
                <strong dir="auto">{name ?? id}</strong>
                <span class="soft">
                  {listed([
                    t('since', { time: moment(connectionState.changedOn) }),
                    openRequests > 0 && t('queue', { count: openRequests }),
                  ])}
                </span>
              </span>
              <span class="marks">
                <Connected {...connectionState} />
                {alarmState.raised && <span class="mark bad">{t('alarm')}</span>}
              </span>
            </a>
          </li>
        ))}
      </ul>
    </>
  );
}

export function Connected({ connected }: { connected: boolean }) {
  return (
    <span class={`mark ${connected ? 'good' : 'bad'}`}>{t(connected ? 'connected' : 'disconnected')}</span>
  );
}

// Registers an encoder: its signed message goes in as a file, and what it connects with comes out as one.

function RegisterEncoder({ ended }: { ended: () => void }) {
  const id = useSignal('');
  const message = useSignal<object | undefined>(undefined);
  const { busy, said, submit } = useOrder(ended);
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
  const register = submit(async () => {
    const answer = await call('PUT', `/encoder/${encodeURIComponent(id.value)}`, { body: message.value });
    // It is answered once: saved before anything else is done.
    download(`${id.value}.credentials.json`, 'application/json', `${JSON.stringify(answer, null, 2)}\n`);
    return t('registered', { id: id.value });
  });
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
        <Said text={said.value} />
      </form>
    </details>
  );
}
