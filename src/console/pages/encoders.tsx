/** The encoders of the site and which of them are there. */
import type { ListedEncoder } from '../../resources/encoders/schema.ts';
import { mayDo, readAll } from '../api.ts';
import { RegisterEncoder } from '../register-encoder.tsx';
import { useRead } from '../use-read.ts';
import { moment, t } from '../words.ts';

const READ_MS = 30_000;

export function Encoders() {
  const {
    value: encoders,
    fault,
    again,
  } = useRead(() => readAll<ListedEncoder>('/encoder'), {
    key: 'encoders',
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
      {fault && <p role="alert">{fault}</p>}
      {!encoders && !fault && <p role="status">{t('loading')}</p>}
      {encoders?.length === 0 && <p>{t('noEncoders')}</p>}
      <ul class="cards">
        {encoders?.map(({ id, name, connectionState, alarmState, openRequests }) => (
          <li key={id}>
            <a class="card row" href={`#/encoders/${encodeURIComponent(id)}`}>
              <span class="what">
                <strong dir="auto">{name ?? id}</strong>
                <span class="soft">
                  {[
                    t('since', { time: moment(connectionState.changedOn) }),
                    openRequests > 0 && t('queue', { count: openRequests }),
                  ]
                    .filter(Boolean)
                    .join(' · ')}
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
