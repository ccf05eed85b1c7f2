/** The gateway's ports, and the way to the broker of the encoders and to each notification service. */
import { connect as connectPlain, createServer, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { failureWords } from '../../../drivers/contract/connection-failure.ts';
import { TLS } from '../../../drivers/contract/tls.ts';
import { settles } from '../../../drivers/contract/waiting.ts';
import type { Clock } from '../../platform/clock.ts';
import { isExternal } from '../../platform/config/encoder-broker.ts';
import { placedSinks, type SinkConfig } from '../../platform/config/sinks.ts';
import { readNamedFile } from '../../platform/host/regular-file.ts';
import { shownUrl } from '../../platform/shown-url.ts';
import type { Diagnosis, Patient } from './diagnosis.ts';

const CONNECT_DEADLINE_MS = 5_000;
const DEFAULT_PORT: Record<string, number> = {
  'mqtt:': 1883,
  'mqtts:': 8883,
  'nats:': 4222,
  'tls:': 4222,
  'http:': 80,
  'https:': 443,
};

export async function checkPorts({ config: { http, encoders }, running }: Patient): Promise<Diagnosis[]> {
  const found = [await port('http.listen', http.listen, running)];
  // With a broker of the site the gateway has no port for encoders.
  if (isExternal(encoders.broker)) return found;
  return [...found, await port('encoders.listen', encoders.listen, running)];
}

interface Address {
  host: string;
  port: number;
}

async function port(setting: string, { host, port }: Address, running: boolean): Promise<Diagnosis> {
  const subject = `port ${port}`;
  if (port === 0) return { severity: 'good', subject, text: `${setting} takes any free port` };
  const code = await failureToListen({ host, port });
  if (running) {
    if (code === 'EADDRINUSE') return { severity: 'good', subject, text: `${setting}: the daemon has it` };
    const remedy = 'systemctl restart gatehouse';
    return {
      severity: 'bad',
      subject,
      text: `${setting}: the daemon runs, but not with this setting`,
      remedy,
    };
  }
  switch (code) {
    case undefined:
      return { severity: 'good', subject, text: `${setting}: free` };
    case 'EADDRINUSE': {
      const remedy = `stop the other program (ss -ltnp 'sport = :${port}'), or change ${setting}`;
      return { severity: 'bad', subject, text: `${setting}: another program has it`, remedy };
    }
    case 'EADDRNOTAVAIL': {
      const text = `${setting}: this host does not have the address ${host}`;
      return { severity: 'bad', subject, text, remedy: `change ${setting}; what it has: ip addr` };
    }
    default:
      return { severity: 'bad', subject, text: `${setting}: ${code}`, remedy: `change ${setting}` };
  }
}

function failureToListen(address: Address): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen(address, () => server.close(() => resolve(undefined)));
  });
}

export async function checkSinks({ config, shell: { clock } }: Patient): Promise<Diagnosis[]> {
  const found: Diagnosis[] = [];
  for (const { sink, at } of placedSinks(config))
    for (const url of sink.urls) found.push(await checkServer(serverOf(sink, at), url, clock));
  return found;
}

function serverOf(sink: SinkConfig, at: PropertyKey[]): Server {
  const subject = sink.name === 'upstream' ? sink.name : `sink ${sink.name}`;
  return { subject, at: at.join('.'), away: 'events wait', files: sink };
}

export async function checkBroker({ config, shell: { clock } }: Patient): Promise<Diagnosis[]> {
  const { broker } = config.encoders;
  if (!isExternal(broker)) return [];
  const found: Diagnosis[] = [];
  for (const url of broker.urls) {
    const server = {
      subject: 'broker',
      at: 'encoders.broker',
      away: 'encoders there cannot be reached',
      files: broker,
    };
    found.push(await checkServer(server, url, clock));
  }
  return found;
}

interface Server {
  subject: string;
  /** Its section in the configuration. */
  at: string;
  /** What it means that it is away. */
  away: string;
  files: { caFile?: string | undefined; certFile?: string | undefined; keyFile?: string | undefined };
}

async function checkServer(
  { subject, at, away, files }: Server,
  address: string,
  clock: Clock,
): Promise<Diagnosis> {
  const url = new URL(address);
  // A NATS server speaks first, and TLS begins after that: the connection alone is tried.
  const secure = url.protocol === 'mqtts:' || url.protocol === 'https:';
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const port = Number(url.port) || (DEFAULT_PORT[url.protocol] ?? 0);
  const contents = (file: string | undefined) => file && readNamedFile(file);
  const trust = { ca: contents(files.caFile), cert: contents(files.certFile), key: contents(files.keyFile) };
  // An address is no server name (RFC 6066, 3).
  const open = () =>
    secure
      ? connectTls({ host, port, ...TLS, ...(isIP(host) ? {} : { servername: host }), ...trust })
      : connectPlain({ host, port });
  const failure = await failureToConnect(open, secure ? 'secureConnect' : 'connect', clock);
  if (failure === undefined) {
    const text = `${shownUrl(address)} ${secure ? 'is reached, its certificate is good' : 'is reached'}`;
    return { severity: 'good', subject, text };
  }
  const remedy = /certificate|altname|self.signed|issuer/i.test(failure)
    ? `correct ${at}.caFile or the name in ${at}.url`
    : `check ${at}.url, the name server and the firewall: nc -vz ${host} ${port}`;
  return {
    severity: 'bad',
    subject,
    text: `${shownUrl(address)} is not reached: ${failure}; ${away}`,
    remedy,
  };
}

async function failureToConnect(
  open: () => Socket,
  event: string,
  clock: Clock,
): Promise<string | undefined> {
  let socket: Socket | undefined;
  try {
    const connected = new Promise<undefined>((resolve, reject) => {
      socket = open();
      socket.once('error', reject);
      socket.once(event, () => resolve(undefined));
    });
    const isInTime = await settles(connected, CONNECT_DEADLINE_MS, clock);
    return isInTime ? await connected : `no answer within ${CONNECT_DEADLINE_MS / 1_000} s`;
  } catch (error) {
    return failureWords(error as Error);
  } finally {
    socket?.destroy();
  }
}
