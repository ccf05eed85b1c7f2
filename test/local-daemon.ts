/** Serves some operations on an admin socket, for tests of the command line against the real thing. */
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { systemClock } from '../src/platform/clock.ts';
import { createApp } from '../src/platform/http/app.ts';
import type { Operation } from '../src/platform/http/operation.ts';
import { listenUnix } from '../src/platform/http/server.ts';
import { silentLog } from '../src/platform/log.ts';
import { temporaryFolder } from './temporary.ts';

export interface LocalDaemon {
  socket: string;
  close(): Promise<void>;
}

/** Closed when the test ends. */
export async function openLocalDaemon(operations: readonly Operation[]): Promise<LocalDaemon> {
  const socket = join(temporaryFolder(), 'admin.sock');
  const common = { clock: systemClock, log: silentLog };
  const surface = { kind: 'local' } as const;
  const app = createApp({ ...common, surface, operations, version: '1', checkResponses: true });
  const server = await listenUnix({ ...common, app, path: socket });
  let closed: Promise<void> | undefined;
  const close = async () => {
    closed ??= Promise.resolve(server[Symbol.asyncDispose]());
    await closed;
  };
  onTestFinished(close);
  return { socket, close };
}
