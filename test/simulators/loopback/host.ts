/** src/platform/field/host/host.ts, where each loopback link is a simulated one (driver.ts). */
import { Socket } from 'node:net';
import { DRIVERS } from '../../../drivers/index.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import { DAEMON_DESCRIPTOR } from '../../../src/platform/field/channel.ts';
import { serve } from '../../../src/platform/field/host/serve.ts';
import { openSimulatedLink } from './driver.ts';

process.umask(0o077);
for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined);
const asked = new AbortController();
process.on('SIGTERM', () => asked.abort());

const drivers = new Map([...DRIVERS, ['loopback', async () => openSimulatedLink] as const]);
const stream = new Socket({ fd: DAEMON_DESCRIPTOR });
const protocols = process.argv.slice(3);
process.exit(await serve({ stream, protocols, drivers, clock: systemClock, signal: asked.signal }));
