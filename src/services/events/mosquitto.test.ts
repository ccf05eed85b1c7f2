import { spawnSync } from 'node:child_process';
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { numbers } from '../../../test/services/events/arrivals.ts';
import { makeCertificates } from '../../../test/services/events/certificates.ts';
import { openTestLog, SYSTEM_ID, until } from '../../../test/services/events/log.ts';
import {
  mosquittoMissing,
  openMosquitto,
  openSubscriber,
  type Subscriber,
} from '../../../test/services/events/mosquitto.ts';
import { temporaryFolder } from '../../../test/temporary.ts';

const opensslMissing = spawnSync('openssl', ['version']).error !== undefined;
const sequences = ({ received }: Subscriber) =>
  received.map(({ payload }) => Number(JSON.parse(payload).sequence));

describe.skipIf(mosquittoMissing)('mosquitto', () => {
  it.each([5, 4] as const)('gets every event in order, with protocol version %i', async (protocolVersion) => {
    const folder = temporaryFolder();
    await using broker = await openMosquitto({ folder });
    await using subscriber = await openSubscriber(broker.port);
    const log = await openTestLog();
    await log.record(1, 3_000);
    const url = `mqtt://127.0.0.1:${broker.port}`;
    const forwarding = log.forward({ url, protocolVersion, window: 256 });
    await until(() => subscriber.received.length === 3_000);
    await log.record(3_001, 3_001);
    await until(() => subscriber.received.length === 3_001);
    expect(sequences(subscriber)).toEqual(numbers(1, 3_001));
    // The subscriber has an event before the sink has its acknowledgement.
    await until(() => log.events.backlog().waiting === 0);
    await forwarding.stop();
    expect(log.events.backlog()).toMatchObject({ waiting: 0, waitingBytes: 0, deadLetters: 0 });
  });

  it('goes away in the middle and comes back: nothing it has not acknowledged is lost', async () => {
    const folder = temporaryFolder();
    const log = await openTestLog();
    await log.record(1, 4_000);
    const seen = new Set<number>();
    let port: number | undefined;
    const url = () => `mqtt://127.0.0.1:${port}`;
    {
      await using broker = await openMosquitto({ folder });
      port = broker.port;
      await using subscriber = await openSubscriber(port);
      log.forward({ url: url(), window: 64 });
      await until(() => subscriber.received.length > 500);
      await broker.kill();
      for (const n of sequences(subscriber)) seen.add(n);
    }
    await using again = await openMosquitto({ folder, port });
    await using subscriber = await openSubscriber(again.port);
    await log.record(4_001, 4_010);
    await until(() => sequences(subscriber).at(-1) === 4_010);
    for (const n of sequences(subscriber)) seen.add(n);
    // What it acknowledged and had not delivered when it was killed is its own loss: at most what was in flight.
    expect(seen.size).toBeGreaterThan(4_010 - 2_000);
    const second = sequences(subscriber);
    expect(second).toEqual(numbers(second[0] ?? 0, 4_010));
  });

  it('denies a topic: its events become dead letters, and the gap says which', async () => {
    const folder = temporaryFolder();
    const acl = join(folder, 'acl');
    const may = [
      `topic write gatehouse/1/${SYSTEM_ID}/encoders/desk-1/events`,
      `topic write gatehouse/1/+/gaps`,
    ];
    writeFileSync(acl, [...may, 'topic readwrite ready', 'topic read gatehouse/#', ''].join('\n'));
    await using broker = await openMosquitto({ folder, lines: [`acl_file ${acl}`] });
    await using subscriber = await openSubscriber(broker.port);
    const log = await openTestLog();
    await log.record(1, 20, 'desk-1');
    await log.record(1, 2, 'desk-2');
    await log.record(21, 40, 'desk-1');
    const forwarding = log.forward({ url: `mqtt://127.0.0.1:${broker.port}` });
    // One record or two: two gaps of an encoder are one until the first is sent.
    const missing = () =>
      subscriber.received
        .filter(({ topic }) => topic === `gatehouse/1/${SYSTEM_ID}/gaps`)
        .map(({ payload }) => JSON.parse(payload).data)
        .filter(({ encoderId }) => encoderId === 'desk-2')
        .flatMap(({ firstSequence, lastSequence }) => numbers(firstSequence, lastSequence));
    await until(() => missing().length === 2);
    expect(missing()).toEqual([1, 2]);
    // The broker hangs up on what it denies: what it had not acknowledged by then comes again.
    const once = [...new Set(sequences(subscriber).filter((n) => n > 0))];
    expect(once).toEqual(numbers(1, 40));
    await until(() => log.events.backlog().waiting === 0);
    await forwarding.stop();
    expect(log.events.backlog()).toMatchObject({ waiting: 0, deadLetters: 2 });
  });
});

describe.skipIf(mosquittoMissing || opensslMissing)('TLS', () => {
  it('is spoken with a client certificate, and only with a server that the authority names', async () => {
    const folder = temporaryFolder();
    const file = (name: string) => join(folder, name);
    makeCertificates(folder);
    const lines = [
      `cafile ${file('ca.pem')}`,
      `certfile ${file('server.pem')}`,
      `keyfile ${file('server.key')}`,
      'require_certificate true',
    ];
    await using broker = await openMosquitto({ folder, lines });
    const log = await openTestLog();
    await log.record(1, 1);
    copyFileSync(file('other-ca.pem'), file('trusted.pem'));
    const client = { certFile: file('client.pem'), keyFile: file('client.key'), caFile: file('trusted.pem') };
    const forwarding = log.forward({ url: `mqtts://localhost:${broker.port}`, ...client });
    await until(() => /self.signed|unable to (get|verify)/i.test(log.events.backlog().lastError ?? ''));
    expect(log.events.backlog().waiting).toBe(1);
    // The certificate files are read at each connection.
    copyFileSync(file('ca.pem'), file('trusted.pem'));
    await until(() => log.events.link.connectedSince !== null && log.events.link.sentThrough === 1);
    await forwarding.stop();

    await using impostor = await openMosquitto({
      folder,
      name: 'impostor',
      lines: lines.with(1, `certfile ${file('elsewhere.pem')}`).with(2, `keyfile ${file('elsewhere.key')}`),
    });
    await log.record(2, 2);
    log.forward({ url: `mqtts://localhost:${impostor.port}`, ...client });
    await until(() => log.events.backlog().lastError?.includes('elsewhere.example') === true);
    expect(log.events.link.sentThrough).toBe(1);
  });
});
