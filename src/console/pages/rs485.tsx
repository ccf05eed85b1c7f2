/** The RS-485 buses with how well their wires work, the devices on them, and the search for more. */
import type { BusOverview } from '../../resources/rs485/bus-schema.ts';
import type { Rs485Device } from '../../resources/rs485/schema.ts';
import { call, gatewayNow, mayDo, readAll } from '../api.ts';
import { asking } from '../ask.tsx';
import { BusDoctor } from '../bus-doctor.tsx';
import { type BusSample, ERROR_CLASSES, remember } from '../bus-history.ts';
import { Chart, type Point } from '../chart.tsx';
import { Fact } from '../fact.tsx';
import { type Job, JobButton } from '../job-button.tsx';
import { Reads } from '../messages.tsx';
import { Pairing } from '../osdp.tsx';
import { useRead } from '../use-read.ts';
import { compareNames, counterOf, linkFault, listed, moment, reasonOf, sentence, t } from '../words.ts';
import { Connected } from './encoders.tsx';

const READ_MS = 5_000;

export function Rs485() {
  const read = async () => {
    const [buses, devices] = await Promise.all([
      call<{ items: BusOverview[] }>('GET', '/network/rs485/buses'),
      readAll<Rs485Device>('/network/rs485'),
    ]);
    const now = gatewayNow();
    return { buses: buses.items.map((bus) => ({ bus, samples: remember(bus, now) })), devices };
  };
  const { value, fault, again } = useRead(read, {
    everyMs: READ_MS,
    isMine: ({ type }) => type.startsWith('gatehouse.rs485.connection.'),
  });
  return (
    <>
      <h1>{t('rs485')}</h1>
      <Reads value={value} fault={fault} />
      {value?.buses.length === 0 && <p>{t('noBuses')}</p>}
      {value?.buses.map((each) => (
        <Bus key={each.bus.id} {...each} ended={again} />
      ))}
      {value && <Devices devices={value.devices} buses={value.buses.map(({ bus }) => bus)} />}
    </>
  );
}

interface BusProps {
  bus: BusOverview;
  samples: readonly BusSample[];
  ended(): void;
}

function Bus({ bus, samples, ended }: BusProps) {
  const { id, up, since, lastError, pollsPerSecond, strayBytes, warnings, devices } = bus;
  const silent = up ? devices.filter(({ alive }) => !alive).map(({ address }) => address) : [];
  const isWell = up && warnings.length === 0 && devices.every(({ alive }) => alive);
  return (
    <section class={`card ${isWell ? 'good' : 'bad'}`} aria-labelledby={`bus-${id}`}>
      <h2 id={`bus-${id}`}>{id}</h2>
      <p class="marks">
        <span class={`mark ${up ? 'good' : 'bad'}`}>{t(up ? 'busUp' : 'busDown')}</span>
        <span class="soft">
          {bus.protocol} · {bus.port} {since !== null && `· ${t('since', { time: moment(since) })}`}
        </span>
      </p>
      {!up && lastError !== null && <p>{linkFault(lastError)}</p>}
      {warnings.map((warning) => (
        <p key={warning.message}>{sentence(reasonOf(warning))}</p>
      ))}
      {silent.length > 0 && <p>{t('silentAddresses', { addresses: silent.join(', ') })}</p>}
      <dl class="facts">
        <Fact name={t('polls')}>{pollsPerSecond === null ? '–' : pollsPerSecond.toFixed(1)}</Fact>
        <Fact
          name={t('answering')}
        >{`${devices.filter(({ alive }) => alive).length} / ${devices.length}`}</Fact>
        <Fact name={t('stray')}>{strayBytes ?? '–'}</Fact>
      </dl>
      {up && <BusPlots samples={samples} />}
      {up && mayDo('service-tool') && (
        <JobButton
          {...asking('scan', { bus: id })}
          path="/network/rs485/scan"
          of={`scan ${bus.id}`}
          body={{ bus: id }}
          running={(percent) => t('scanning', { bus: id, percent })}
          done={foundIn}
          ended={ended}
        />
      )}
      {up && mayDo('service-tool') && <BusDoctor bus={id} ended={ended} />}
      {up && bus.protocol === 'osdp' && mayDo('service-tool') && <Pairing bus={bus} ended={ended} />}
    </section>
  );
}

function foundIn({ result }: Job): string {
  const addresses = (result?.addresses ?? []) as { answered: boolean }[];
  const found = t('scanFound', { count: addresses.filter(({ answered }) => answered).length });
  return listed([found, result?.advice], ' ');
}

interface Placed {
  device: Rs485Device;
  /** Bus and address; "" while it is not heard of. */
  place: string;
}

/** Those that do not answer first, then as they are on the wires. */
function placed(devices: readonly Rs485Device[], buses: readonly BusOverview[]): Placed[] {
  const places = new Map(
    buses.flatMap((bus) => bus.devices.map(({ deviceId, address }) => [deviceId, `${bus.id} · ${address}`])),
  );
  return devices
    .map((device) => ({ device, place: places.get(device.deviceId) ?? '' }))
    .toSorted(
      (one, other) =>
        Number(one.device.connectionState.connected) - Number(other.device.connectionState.connected) ||
        compareNames(one.place, other.place),
    );
}

function Devices({ devices, buses }: { devices: Rs485Device[]; buses: BusOverview[] }) {
  return (
    <section>
      <h2>{t('devices')}</h2>
      {devices.length === 0 && <p>{t('noDevices')}</p>}
      <ul class="cards">
        {placed(devices, buses).map(({ device: { deviceId, name, hwId, type, connectionState }, place }) => (
          <li key={deviceId}>
            <a class="card row" href={`#/rs485/${deviceId}`}>
              <span class="what">
                <strong dir="auto">{name ?? hwId}</strong>
                <span class="soft">
                  {listed([place, type ?? hwId, t('since', { time: moment(connectionState.changedOn) })])}
                </span>
              </span>
              <Connected {...connectionState} />
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}

// How busy a bus is, how fast its devices answer and what goes wrong on it, as lines that go on while one looks.

/** Below it noise would look like a peak. */
const LATENCY_LEAST_MS = 20;
const ERRORS_LEAST = 5;
const MINUTE_MS = 60_000;

function BusPlots({ samples }: { samples: readonly BusSample[] }) {
  const errorsOf = ({ errors }: BusSample) => ERROR_CLASSES.reduce((sum, name) => sum + errors[name], 0);
  const sums = ERROR_CLASSES.flatMap((name) => {
    const sum = samples.reduce((all, { errors }) => all + errors[name], 0);
    return sum > 0 ? `${counterOf(name)} ${sum}` : [];
  });
  const last = samples.at(-1);
  const now = gatewayNow();
  const windowMs = Math.max(MINUTE_MS, now - (samples[0]?.at ?? now));
  return (
    <div class="plots">
      <Plot
        name={t('utilisation')}
        now={last?.utilisation == null ? '–' : `${Math.round(100 * last.utilisation)} %`}
        points={samples.map(({ at, utilisation }) => ({ at, value: utilisation }))}
        windowMs={windowMs}
        least={1}
      />
      <Plot
        name={t('slowestAnswer')}
        now={last?.latencyMs == null ? '–' : `${last.latencyMs} ms`}
        points={samples.map(({ at, latencyMs }) => ({ at, value: latencyMs }))}
        windowMs={windowMs}
        least={LATENCY_LEAST_MS}
      />
      <Plot
        name={t('errorsInWindow', { minutes: Math.ceil(windowMs / MINUTE_MS) })}
        now={sums.join(' · ') || t('noneChosen')}
        points={samples.map((sample) => ({ at: sample.at, value: errorsOf(sample) }))}
        windowMs={windowMs}
        least={ERRORS_LEAST}
      />
    </div>
  );
}

interface PlotProps {
  name: string;
  /** The figure itself. */
  now: string;
  points: readonly Point[];
  windowMs: number;
  /** The top is never below. */
  least: number;
}

function Plot({ name, now, points, windowMs, least }: PlotProps) {
  const most = Math.max(least, ...points.map(({ value }) => value ?? 0));
  return (
    <figure>
      <figcaption>
        {name}: {now}
      </figcaption>
      <Chart label={name} windowMs={windowMs} series={[{ kind: 'first', points, most }]} />
    </figure>
  );
}
