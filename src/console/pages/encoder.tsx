/** One encoder: whether it is there, what runs on it, its write requests, and the writing of keys. */

import type { Encoder as EncoderFields, EncoderState } from '../../resources/encoders/schema.ts';
import type { WriteRequestPage } from '../../resources/writes/schema.ts';
import { call, mayDo } from '../api.ts';
import { Ask } from '../ask.tsx';
import { Back, Reads, Said } from '../messages.tsx';
import { useOrder } from '../use-order.ts';
import { useRead } from '../use-read.ts';
import { listed, moment, t } from '../words.ts';
import { cardWord, requestWord, WriteKeys } from '../write-keys.tsx';
import { Connected } from './encoders.tsx';

const READ_MS = 10_000;
const REQUESTS_SHOWN = 10;

export function Encoder({ id }: { id: string }) {
  const path = `/encoder/${encodeURIComponent(id)}`;
  const read = async () => {
    const [encoder, state, requests] = await Promise.all([
      call<EncoderFields>('GET', path),
      call<EncoderState>('GET', `${path}/state`),
      call<WriteRequestPage>('GET', `${path}/write-request?limit=${REQUESTS_SHOWN}`),
    ]);
    return { encoder, queue: state.openRequests, requests: requests.items };
  };
  const { value, fault, again } = useRead(read, {
    key: id,
    everyMs: READ_MS,
    isMine: ({ source }) => source === `encoders/${id}`,
  });
  return (
    <>
      <Back to="#/encoders" label={t('allEncoders')} />
      <Reads value={value} fault={fault} />
      {value && (
        <>
          <h1 dir="auto">{value.encoder.name ?? id}</h1>
          <p class="marks">
            <Connected {...value.encoder.connectionState} />
            <span class="soft">{t('since', { time: moment(value.encoder.connectionState.changedOn) })}</span>
            {value.encoder.alarmState.raised && <span class="mark bad">{t('alarm')}</span>}
          </p>
          <p class="soft">{softwareOf(value.encoder)}</p>
          {mayDo('front-desk', 'front-desk-admin', 'pms') && (
            <WriteKeys
              encoderId={id}
              underWay={value.requests.find(({ position }) => position === 0)?.requestId}
              ended={again}
            />
          )}
          <Requests items={value.requests} queue={value.queue} />
          {mayDo('service-tool', 'front-desk-admin') && <CutOff id={id} path={path} ended={again} />}
        </>
      )}
    </>
  );
}

function softwareOf({ ipAddress, versions, apps }: EncoderFields): string {
  const software = [...versions, ...apps].map(({ name, version }) => `${name} ${version}`);
  return listed([
    ipAddress !== null && `${t('address')} ${ipAddress}`,
    software.length > 0 && `${t('software')} ${software.join(', ')}`,
  ]);
}

function Requests({ items, queue }: { items: WriteRequestPage['items']; queue: number }) {
  return (
    <section>
      <h2>{t('requests')}</h2>
      <p>{t('queue', { count: queue })}</p>
      {items.length === 0 && <p class="soft">{t('noneYet')}</p>}
      <ul class="cards">
        {items.map((request) => (
          <li key={request.requestId} class="card">
            <strong dir="auto">{request.description ?? request.requestId}</strong>
            <p>{requestWord(request)}</p>
            <p class="soft">
              {moment(request.acceptedAt)} ·{' '}
              {request.entries
                .map((entry, index) => `${t('card', { card: index + 1 })}: ${cardWord(entry)}`)
                .join(' · ')}
            </p>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** A stolen encoder is revoked; one that is gone for good is retired as well. */
function CutOff({ id, path, ended }: { id: string; path: string; ended: () => void }) {
  const { said, submit } = useOrder();
  const revoke = submit(async () => {
    await call('POST', `${path}/revoke`, { body: {}, key: crypto.randomUUID() });
    ended();
    return t('revokedEncoder');
  });
  const retire = submit(async () => {
    await call('DELETE', path);
    location.hash = '#/encoders';
  });
  return (
    <section>
      <span class="choices">
        <Ask
          label={t('revoke')}
          question={t('revokeEncoderAsk', { id })}
          yes={t('revokeYes')}
          onYes={revoke}
        />
        <Ask
          label={t('retire')}
          question={t('retireEncoderAsk', { id })}
          yes={t('retireYes')}
          onYes={retire}
        />
      </span>
      <Said text={said.value} />
    </section>
  );
}
