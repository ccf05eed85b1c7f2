/** One door: what is known of it and how old that is, what is wanted and what the lock has, and the way to open it. */
import type { DoorPending } from '../../resources/doors/list-schema.ts';
import type { Door as DoorFields, DoorOptionsResult, DoorState } from '../../resources/doors/schema.ts';
import { call, exchange, gatewayNow, mayDo } from '../api.ts';
import { DoorActions } from '../door-actions.tsx';
import { DoorSettings, doorField } from '../door-settings.tsx';
import { doorName, placeNames, readPlaceNames } from '../doors-list.ts';
import { EventLog } from '../event-log.tsx';
import { Fact } from '../fact.tsx';
import { HistoryChart } from '../history-chart.tsx';
import type { LiveEvent } from '../live.ts';
import { Back, Reads } from '../messages.tsx';
import { DOORS } from '../place.ts';
import { Presence } from '../presence.tsx';
import { OnTheWay } from '../settings-on-the-way.tsx';
import { useRead } from '../use-read.ts';
import type { Words } from '../words.en.ts';
import { ago, errorOf, listed, moment, reasonOf, sentence, t } from '../words.ts';

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
  /** Names of the fields that are on their way to the lock. */
  waiting: string[];
  /** Of a lock that has not all that is wanted. */
  options: DoorOptionsResult | undefined;
}

export function Door({ id }: { id: string }) {
  const path = `${DOORS}/${encodeURIComponent(id)}`;
  const isMine = ({ source }: LiveEvent) => source === `doors/${id}`;
  const read = async (): Promise<Known> => {
    // One after the other: whether the settings are in force is said of none that are newer.
    const { value: door, etag } = await exchange<DoorFields>('GET', path);
    const state = await call<DoorState>('GET', `${path}/state`);
    if (state.configuration.inForce) return { door, state, etag, waiting: [], options: undefined };
    const [waiting, options] = await Promise.all([
      readWaiting(path),
      call<DoorOptionsResult>('GET', `${path}/options`),
    ]);
    return { door, state, etag, waiting, options };
  };
  useRead(readPlaceNames, { everyMs: NAMES_READ_MS });
  const { value: known, fault, again } = useRead(read, { key: id, everyMs: READ_MS, isMine });
  return (
    <>
      <Back to="#/doors" label={t('all')} />
      <Reads value={known} fault={fault} />
      {known && <Shown {...known} ended={again} />}
      {known && (
        <section>
          <h2>{t('events')}</h2>
          <EventLog query={{ subject: id }} isMine={isMine} />
        </section>
      )}
    </>
  );
}

async function readWaiting(path: string): Promise<string[]> {
  if (!mayDo('front-desk-admin', 'service-tool', 'monitor')) return [];
  const { items } = await call<DoorPending>('GET', `${path}/pending`);
  const open = items.filter(({ status }) => status === 'queued' || status === 'sent');
  return [...new Set(open.flatMap(({ fields }) => fields))];
}

function Shown({ door, state, etag, waiting, options, ended }: Known & { ended(): Promise<void> }) {
  const { offline, connection, standingOpen } = state;
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
      {connection && <Configuration door={door} state={state} waiting={waiting} options={options} />}
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

function Configuration({ door, state, waiting, options }: Omit<Known, 'etag'>) {
  const { inForce, wanted, applied, reported, failure } = state.configuration;
  return (
    <section>
      <h2>{t('wanted')}</h2>
      <p>
        {t(inForce ? 'settingsApplied' : 'settingsWaiting')} {waiting.map(doorField).join(', ')}
      </p>
      {options && <OnTheWay door={door} state={state} options={options} />}
      {applied !== null && reported !== null && reported !== applied && (
        <p>{t('lockHasOther', { version: reported })}</p>
      )}
      <dl class="facts">
        <Fact name={t('wanted')}>{wanted}</Fact>
        <Fact name={t('inLock')}>{applied ?? '–'}</Fact>
      </dl>
      {failure && <p class="card warn">{errorOf(failure)}</p>}
    </section>
  );
}

function Facts({ door, state }: Pick<Known, 'door' | 'state'>) {
  const { lqi, lastSeen } = door.connectionState;
  const { lastUnlock, lockState, doorState, battery } = state;
  const now = gatewayNow();
  const reported = (word: keyof Words | null, last: { at: string } | null) =>
    word && last ? `${t(word)} · ${ago(last.at, now)}` : t('notReported');
  return (
    <section>
      <h2>{t('state')}</h2>
      <dl class="facts">
        <Fact name={t('lockState')}>{reported(lockState && BOLT[lockState.value], lockState)}</Fact>
        <Fact name={t('doorState')}>{reported(doorState && SENSOR[doorState.value], doorState)}</Fact>
        <Fact name={t('radio')}>{lqi ?? t('notReported')}</Fact>
        <Fact name={t('battery')}>
          {battery === null
            ? t('notReported')
            : listed([battery.percent !== null && `${battery.percent} %`, battery.low && t('batteryLow')]) ||
              t('batteryGood')}
        </Fact>
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
