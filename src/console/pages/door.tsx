/** One door: what is known of it and how old that is, what is wanted and what the lock has, and the way to open it. */
import type { Door as DoorFields, DoorState } from '../../resources/doors/schema.ts';
import { call, DOORS, exchange, mayDo } from '../api.ts';
import { DoorActions } from '../door-actions.tsx';
import { DoorSettings } from '../door-settings.tsx';
import { doorName, placeNames, readPlaceNames } from '../doors-list.ts';
import { EventLog } from '../event-log.tsx';
import { Fact } from '../fact.tsx';
import { HistoryChart } from '../history-chart.tsx';
import type { LiveEvent } from '../live.ts';
import { Presence } from '../presence.tsx';
import { useRead } from '../use-read.ts';
import type { Words } from '../words.en.ts';
import { ago, moment, reasonOf, sentence, t } from '../words.ts';

/** Ages grow, and what is reported every few seconds comes without an event. */
const READ_MS = 5_000;
/** Gateways are renamed rarely. */
const NAMES_READ_MS = 300_000;

const BOLT = { locked: 'boltLocked', unlocked: 'boltUnlocked', notFullyLocked: 'boltBetween' } as const;
const SENSOR = {
  open: 'sensorOpen',
  closed: 'sensorClosed',
  jammed: 'sensorJammed',
  forcedOpen: 'sensorForced',
  error: 'sensorFault',
} as const;
const UNLOCKED = {
  confirmed: 'didUnlock',
  accepted: 'didAccept',
  jammed: 'didJam',
  refused: 'didRefuse',
  unknown: 'didMaybe',
  failed: 'didNothing',
} as const;

interface Known {
  door: DoorFields;
  state: DoorState;
  etag: string | undefined;
}

export function Door({ id }: { id: string }) {
  const path = `${DOORS}/${encodeURIComponent(id)}`;
  const isMine = ({ source }: LiveEvent) => source === `doors/${id}`;
  const read = async (): Promise<Known> => {
    const [{ value: door, etag }, state] = await Promise.all([
      exchange<DoorFields>('GET', path),
      call<DoorState>('GET', `${path}/state`),
    ]);
    return { door, state, etag };
  };
  useRead(readPlaceNames, { key: 'places', everyMs: NAMES_READ_MS, isMine: () => false });
  const { value: known, fault, again } = useRead(read, { key: id, everyMs: READ_MS, isMine });
  return (
    <>
      <p>
        <a class="back" href="#/doors">
          ← {t('back')}
        </a>
      </p>
      {fault && <p role="alert">{fault}</p>}
      {known ? <Shown {...known} ended={again} /> : !fault && <p role="status">{t('loading')}</p>}
      {known && (
        <section>
          <h2>{t('events')}</h2>
          <EventLog query={{ subject: id }} isMine={isMine} />
        </section>
      )}
    </>
  );
}

function Shown({ door, state, etag, ended }: Known & { ended: () => void }) {
  const { offline, connection, standingOpen, configuration } = state;
  const presence = connection?.status ?? (state.relay ? (offline ? 'disconnected' : 'connected') : null);
  return (
    <>
      <h1 dir="auto">{doorName(door)}</h1>
      <p class="marks">
        <Presence presence={presence} />
        {connection && <span class="soft">{t('since', { time: moment(connection.since) })}</span>}
        {standingOpen && <span class="mark warn">{t('standing')}</span>}
      </p>
      {offline && <p class="card bad">{sentence(reasonOf(offline))}</p>}
      {state.doubled && <p class="card bad">{sentence(state.doubled.message)}</p>}
      {mayDo('front-desk-admin', 'service-tool') && presence !== null && (
        <DoorActions door={door} state={state} ended={ended} />
      )}
      <Facts door={door} state={state} />
      {connection && (
        <section>
          <h2>{t('wanted')}</h2>
          <p>{configuration.inForce ? t('settingsApplied') : t('settingsWaiting')}</p>
          <dl class="facts">
            <Fact name={t('wanted')}>{configuration.wanted}</Fact>
            <Fact name={t('inLock')}>{configuration.applied ?? '–'}</Fact>
          </dl>
          {configuration.failure && <p class="card warn">{sentence(configuration.failure.message)}</p>}
        </section>
      )}
      {connection && <HistoryChart id={door.id} />}
      {mayDo('front-desk-admin') && (
        <section>
          <h2>{t('settings')}</h2>
          <DoorSettings door={door} etag={etag} saved={ended} />
        </section>
      )}
    </>
  );
}

function Facts({ door, state }: Omit<Known, 'etag'>) {
  const { lqi, lastSeen } = door.connectionState;
  const { lastUnlock, lockState, doorState } = state;
  const now = Date.now();
  const reported = (word: keyof Words | null, last: { at: string } | null) =>
    word && last ? `${t(word)} · ${ago(last.at, now)}` : t('notReported');
  return (
    <section>
      <h2>{t('state')}</h2>
      <dl class="facts">
        <Fact name={t('lockState')}>{reported(lockState && BOLT[lockState.value], lockState)}</Fact>
        <Fact name={t('doorState')}>{reported(doorState && SENSOR[doorState.value], doorState)}</Fact>
        <Fact name={t('radio')}>{lqi ?? t('notReported')}</Fact>
        <Fact name={t('lastSeen')}>{lastSeen === null ? t('notReported') : ago(lastSeen, now)}</Fact>
        <Fact name={t('lastUnlock')}>
          {lastUnlock
            ? `${moment(lastUnlock.at)} · ${lastUnlock.outcome ? t(UNLOCKED[lastUnlock.outcome]) : '…'}`
            : t('never')}
        </Fact>
        <Fact name={t('number')}>{door.accessPointId}</Fact>
        <Fact name={t('pmsId')}>{door.pmsId ?? '–'}</Fact>
        <Fact name={t('group')}>{state.group ?? door.groupId ?? '–'}</Fact>
        <Fact name={t('mac')}>{door.mac ?? '–'}</Fact>
        <Fact name={t('gateway')}>
          {placeNames.value.gateways.get(door.gatewayId ?? '') ?? door.gatewayId ?? '–'}
        </Fact>
        <Fact name={t('schedule')}>{state.effective.schedule?.id ?? '–'}</Fact>
        <Fact name={t('template')}>{state.effective.template?.id ?? '–'}</Fact>
      </dl>
    </section>
  );
}
