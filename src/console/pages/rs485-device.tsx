/** One RS-485 device: how it is heard, its inputs and outputs, its settings, and what can be done with it. */
import { useSignal } from '@preact/signals';
import type { PulseResult } from '../../resources/rs485/bus-schema.ts';
import type { Rs485Device as Device, Rs485DeviceState as State } from '../../resources/rs485/schema.ts';
import { Actuate, type Outcome } from '../actuate.tsx';
import { call, exchange, mayDo, readAll } from '../api.ts';
import { Ask, asking } from '../ask.tsx';
import { Chosen, Typed } from '../edit-form.tsx';
import { Fact } from '../fact.tsx';
import { Alert, Back, Reads, Said } from '../messages.tsx';
import { Firmware } from '../osdp.tsx';
import { Rs485Settings } from '../rs485-settings.tsx';
import { useOrder } from '../use-order.ts';
import { useRead } from '../use-read.ts';
import { ago, counterOf, errorOf, listed, moment, t } from '../words.ts';
import { Connected } from './encoders.tsx';

/** Levels are live: the gateway reads them several times a second, and events report activations only. */
const READ_MS = 2_000;
/** Which other devices there are. */
const OTHERS_READ_MS = 15_000;

interface Known {
  device: Device;
  state: State;
  etag: string | undefined;
}

export function Rs485Device({ id }: { id: string }) {
  const path = `/network/rs485/${encodeURIComponent(id)}`;
  const read = async (): Promise<Known> => {
    // One after the other: whether the settings are in force is said of none that are newer.
    const { value: device, etag } = await exchange<Device>('GET', path);
    return { device, etag, state: await call<State>('GET', `${path}/state`) };
  };
  const { value, fault, again } = useRead(read, {
    key: id,
    everyMs: READ_MS,
    isMine: ({ type, data }) => type.startsWith('gatehouse.rs485.') && data.deviceId === id,
  });
  return (
    <>
      <Back to="#/rs485" label={t('allDevices')} />
      <Reads value={value} fault={fault} />
      {value && <Shown {...value} ended={again} />}
    </>
  );
}

function Shown({ device, state, etag, ended }: Known & { ended(): Promise<void> }) {
  const name = device.name ?? device.hwId;
  const { failure, inForce, relayFault, unsupported } = state;
  const isConnected = device.connectionState.connected;
  // Of a device that is dead it is what a technician has come for. The key keeps what it says when it moves.
  const changes = mayDo('service-tool') && (
    <Changes key="changes" device={device} bus={state.bus} name={name} ended={ended} />
  );
  return (
    <>
      <h1 dir="auto">{name}</h1>
      <p class="marks">
        <Connected {...device.connectionState} />
        <span class="soft">{t('since', { time: moment(device.connectionState.changedOn) })}</span>
        {state.tamper && <span class="mark bad">{t('tamper')}</span>}
        {state.supplyFault && <span class="mark bad">{t('supplyFault')}</span>}
      </p>
      {!isConnected && <p class="card bad">{t(silenceOf(state))}</p>}
      {!isConnected && changes}
      {relayFault && <p class="card bad">{t(`relay-${relayFault.fault}`, { relay: relayFault.relay })}</p>}
      {device.relayIndex !== null && mayDo('service-tool') && (
        <Pulse id={device.deviceId} name={name} relay={device.relayIndex} ended={ended} />
      )}
      <Heard device={device} state={state} />
      <Levels state={state} />
      <section>
        <h2>{t('settings')}</h2>
        <p>{t(inForce ? 'settingsDeviceHas' : 'settingsDeviceWaits')}</p>
        {failure && <p class="card warn">{errorOf(failure)}</p>}
        {unsupported.length > 0 && <p class="soft">{unsupported.join(', ')}</p>}
        {mayDo('front-desk-admin', 'service-tool') && (
          <Rs485Settings device={device} etag={etag} saved={ended} />
        )}
      </section>
      {state.security !== null && mayDo('service-tool') && <Firmware device={device} ended={ended} />}
      {isConnected && changes}
    </>
  );
}

function silenceOf({ busUp, security }: State) {
  if (busUp !== true) return 'deviceBusDown';
  return security === 'unpaired' ? 'deviceUnpaired' : 'deviceSilent';
}

function Heard({ device, state: { bus, address, profile, wire, reportAge } }: Omit<Known, 'etag'>) {
  const counters = Object.entries(wire?.counters ?? {});
  const failed = counters.filter(([kind, count]) => kind !== 'replies' && count > 0);
  return (
    <section>
      <h2>{t('state')}</h2>
      <dl class="facts">
        <Fact name={t('bus')}>{`${bus} · ${address ?? '–'}`}</Fact>
        <Fact name={t('profile')}>{profile ?? device.type ?? '–'}</Fact>
        <Fact name={t('lastReply')}>
          {reportAge === null ? t('notReported') : ago(Date.now() - reportAge, Date.now())}
        </Fact>
        <Fact name={t('turnaround')}>
          {wire?.turnaroundMs == null ? '–' : `${Math.round(wire.turnaroundMs)} ms`}
        </Fact>
        <Fact name={t('errors')}>
          {failed.map(([kind, count]) => `${counterOf(kind)} ${count}`).join(' · ') || t('noneChosen')}
        </Fact>
        <Fact name={t('software')}>
          {device.apps.map(({ name, version }) => `${name} ${version}`).join(', ') || '–'}
        </Fact>
        <Fact name="hwId">{device.hwId}</Fact>
      </dl>
    </section>
  );
}

function Levels({ state: { levels, edges } }: { state: State }) {
  const pins = Object.keys({ ...levels, ...edges });
  if (pins.length === 0) return null;
  return (
    <section>
      <h2>{t('inputsOutputs')}</h2>
      <dl class="facts">
        {pins.map((pin) => {
          const level = levels[pin];
          const edge = edges[pin];
          const word = level === undefined ? t('notRead') : t(level ? 'active' : 'inactive');
          const times = edge && `${t('activations', { count: edge.total })}, ${moment(edge.at)}`;
          return (
            <Fact key={pin} name={pin}>
              {listed([word, times])}
            </Fact>
          );
        })}
      </dl>
    </section>
  );
}

interface PulseProps {
  id: string;
  name: string;
  relay: number;
  ended: () => void;
}

function Pulse({ id, name, relay, ended }: PulseProps) {
  return (
    <Actuate
      {...asking('pulse', { relay, name })}
      path={`/network/rs485/${id}/pulse`}
      noAnswer={t('noAnswerPulse')}
      outcomeOf={outcomeOf}
      ended={ended}
    />
  );
}

function outcomeOf({ outcome, relay, milliseconds }: PulseResult): Outcome {
  if (outcome === 'unknown') return { severity: 'bad', text: t('pulseUnknown') };
  return { severity: 'good', text: t('pulseDone', { relay, seconds: milliseconds / 1_000 }) };
}

interface ChangesProps {
  device: Device;
  bus: string;
  name: string;
  ended(): Promise<void>;
}

/** Another device in its place, or none. */
function Changes({ device, bus, name, ended }: ChangesProps) {
  const hwId = useSignal('');
  const replaced = useSignal('');
  const { said, isUnconfirmed, run } = useOrder();
  const path = `/network/rs485/${device.deviceId}`;
  const others = useRead(() => readAll<Device>(`/network/rs485?bus=${encodeURIComponent(bus)}`), {
    key: bus,
    everyMs: OTHERS_READ_MS,
    isMine: ({ type }) => type.startsWith('gatehouse.rs485.connection.'),
  });
  // The one that was mounted last first: it is the one that a technician has in mind.
  const fresh = (others.value ?? [])
    .filter(
      ({ deviceId, name: called, connectionState }) =>
        deviceId !== device.deviceId && called === null && connectionState.connected,
    )
    .toSorted((one, other) => other.connectionState.changedOn.localeCompare(one.connectionState.changedOn));
  const replace = (confirm = false) =>
    run(async () => {
      replaced.value = '';
      await call('POST', `${path}/replace`, { body: { hwId: hwId.value, confirm } });
      // The page has shown the state of the former one until then.
      await Promise.all([others.again(), ended()]);
      replaced.value = t('replaced', { hwId: hwId.value, name });
      hwId.value = '';
    });
  const retire = () =>
    run(async () => {
      replaced.value = '';
      await call('DELETE', path);
      location.hash = '#/rs485';
    });
  return (
    <section>
      <h2>{t('deviceChange')}</h2>
      <form onSubmit={(event) => event.preventDefault()}>
        {fresh.length > 0 && (
          <Chosen
            label={t('newHere')}
            none={t('noneChosen')}
            chosen={hwId}
            choices={fresh.map((each) => ({
              id: each.hwId,
              name: `${each.hwId}, ${t('since', { time: moment(each.connectionState.changedOn) })}`,
            }))}
          />
        )}
        <Typed label={t('replaceWith')} isExact text={hwId} />
        <span class="choices">
          <Ask
            {...asking('replace', { hwId: hwId.value, name })}
            disabled={hwId.value === ''}
            onYes={() => replace()}
          />
          <Ask {...asking('retire', { name })} onYes={retire} />
        </span>
      </form>
      <Alert text={said.value} />
      <Said text={replaced.value} tone="card good" />
      {isUnconfirmed.value && (
        <button type="button" onClick={() => replace(true)}>
          {t('replaceAnyway')}
        </button>
      )}
    </section>
  );
}
