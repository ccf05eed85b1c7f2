/** A site whose links are played by host processes of their own, on a database that outlives it. */
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Plain } from '../drivers/contract/driver.ts';
import { openFieldResources } from '../src/app/field-resources.ts';
import { systemClock } from '../src/platform/clock.ts';
import { configSchema } from '../src/platform/config/config.ts';
import { silentLog } from '../src/platform/log.ts';
import { LOCAL_ADMINISTRATOR } from '../src/platform/principal.ts';
import { supervise } from '../src/platform/supervise.ts';
import { openVault } from '../src/platform/vault.ts';
import { siteSchema } from '../src/resources/site-import/site-document.ts';
import type { AuditEntry } from '../src/services/audit/entry.ts';
import type { LiveEvent } from '../src/services/events/cloud-event.ts';
import type { Job } from '../src/services/jobs/schema.ts';
import { openMeters } from '../src/services/metrics/meters.ts';
import { endedJob } from './ended-job.ts';
import { PROCESSES } from './gateway.ts';
import { temporaryDatabase, temporaryFolder } from './temporary.ts';

export const DEVICE = 'aaaaaaaa-0000-4000-8000-00000000000a';
export const ZGATE = 'bbbbbbbb-0000-4000-8000-00000000000b';
export const NETWORK = 'cccccccc-0000-4000-8000-00000000000c';
export const DOOR = 'dddddddd-0000-4000-8000-00000000000d';
export const LOCK = '00124b00aabbccdd';
export const CALLER = { principal: LOCAL_ADMINISTRATOR, correlationId: 'test', ifMatch: undefined };
export const SITE = siteSchema.parse({
  doors: [{ id: DOOR, accessPointId: 1, mac: LOCK, gatewayId: ZGATE, networkId: NETWORK }],
  rs485: [{ deviceId: DEVICE, hwId: 'io-1', bus: 'bus-1' }],
});
export const linkOptions = (devices: Plain[]) => ({ reportEveryMs: 50, devices });

/** Restarts on the same folder are calls of `open`; what it returns closes it. */
export async function openFieldSite(onBus: Plain[] = [{ kind: 'rs485', hwId: 'io-1' }]) {
  const folder = temporaryFolder();
  const database = await temporaryDatabase(folder);
  const firmwareDirectory = temporaryFolder();
  const config = configSchema.parse({
    dataDirectory: folder,
    firmwareDirectory,
    links: [
      {
        id: 'bus-1',
        protocol: 'loopback',
        host: 'buses',
        options: linkOptions(onBus),
      },
      {
        id: 'zb-1',
        protocol: 'loopback',
        host: 'zigbee',
        options: linkOptions([
          { kind: 'gateway', hwId: '00124b0001020304' },
          { kind: 'lock', hwId: LOCK },
        ]),
      },
    ],
    networks: [{ id: NETWORK }],
    zgates: [{ deviceId: ZGATE, link: 'zb-1', networkId: NETWORK }],
  });

  async function open() {
    const stop = new AbortController();
    const published: LiveEvent[] = [];
    const audits: AuditEntry[] = [];
    const running: Promise<void>[] = [];
    const opening = new AsyncDisposableStack();
    opening.defer(async () => {
      stop.abort();
      await Promise.all(running);
    });
    const services = {
      database,
      meters: openMeters(),
      audit: { record: (entry: AuditEntry) => void audits.push(entry) },
      events: { publish: (event: LiveEvent) => void published.push(event), wake() {} },
      vault: openVault(join(folder, 'keys', 'vault.key')),
      systemId: '0d8c1c1e-7a3e-4f0b-9c57-3a52f1f0a1b2',
      time: { now: systemClock.now, synchronised: () => true },
      tasks: {
        start: (name: string, run: (signal: AbortSignal) => Promise<unknown>) =>
          void running.push(
            supervise({ name, run, signal: stop.signal, clock: systemClock, log: silentLog }),
          ),
      },
    };
    const options = { config, clock: systemClock, log: silentLog, processes: PROCESSES };
    const site = await openFieldResources(options, services, opening);
    site.begin();
    const close = () => opening.disposeAsync();
    onTestFinished(close);
    const { signal } = new AbortController();
    return {
      ...site,
      close,
      published,
      audits,
      behave: (link: string, hwId: string, more: Record<string, Plain>) =>
        site.field.execute(link, { kind: 'behave', data: { hwId, ...more }, timeoutMs: 5_000 }, signal),
      /** Has what plays the gateway do something, such as have a lock join. */
      play: (kind: string, data: Plain = {}) =>
        site.field.execute('zb-1', { kind, data, timeoutMs: 5_000 }, signal),
      isConnected: () => site.rs485.get(DEVICE).device.connectionState.connected,
      change: (relayIndex: number) => site.rs485.update(DEVICE, { relayIndex }, CALLER),
      killHost(name: string) {
        const pid = site.field.state().hosts.find((host) => host.name === name)?.pid;
        if (pid === undefined) throw new Error(`host ${name} does not run`);
        process.kill(pid, 'SIGKILL');
      },
    };
  }
  const first = await open();
  const { id } = (await first.siteImport.start({ document: SITE }, CALLER)) as Job;
  const { error } = await endedJob(first.jobs, id);
  if (error) throw new Error(error.message);
  return { open, first, firmwareDirectory };
}
