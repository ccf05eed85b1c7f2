/**
 * The program of a host: a child process that runs a group of links (src/platform/field/hosts.ts starts it). Touches
 * `process`, as only main.ts and start.js do beside it; everything else is serve.ts. Arguments: the
 * name of the group, for `ps`, and the protocols of its links.
 */
import { Socket } from 'node:net';
import { DRIVERS } from '../../../../drivers/index.ts';
import { systemClock } from '../../clock.ts';
import { DAEMON_DESCRIPTOR } from '../channel.ts';
import { serve } from './serve.ts';

// What drivers write (network backups, keys) is for this user alone.
process.umask(0o077);
// Ctrl-C and a closed terminal reach the whole group; the daemon decides in which order things end.
process.on('SIGINT', () => undefined);
process.on('SIGHUP', () => undefined);
const asked = new AbortController();
process.on('SIGTERM', () => asked.abort());

// Node cuts short buffers from pieces of 64 KiB. With so few as a host makes, a piece is in use while V8 collects its young objects,
// and then stays until a full collection, which a quiet host has once in many hours: its memory grew by 11 MB a day until then.
Buffer.poolSize = 0;

const stream = new Socket({ fd: DAEMON_DESCRIPTOR });
const protocols = process.argv.slice(3);
process.exit(await serve({ stream, protocols, drivers: DRIVERS, clock: systemClock, signal: asked.signal }));
