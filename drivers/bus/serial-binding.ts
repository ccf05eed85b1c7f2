/**
 * How serialport reads and writes on Linux, without the thread pool. Its own binding misses a hang-up when a read is in
 * the pool at that moment: read(2) returns 0 for ever, no `close` comes, and the loop takes a whole core
 * (node-serialport issues 2043, 2323). And with the pool at work elsewhere each read waits for it. The descriptor is
 * non-blocking, so reading it here costs a few microseconds and tells an end from nothing yet.
 */
import { readSync, writeSync } from 'node:fs';
import { BindingsError, LinuxBinding, type LinuxPortBinding } from '@serialport/bindings-cpp';

type Binding = typeof LinuxBinding;

export const syncBinding: Binding = {
  list: LinuxBinding.list,
  async open(options) {
    const port = await LinuxBinding.open(options);
    return Object.assign(port, {
      read: (buffer: Buffer, offset: number, length: number) => read(port, buffer, offset, length),
      write: (buffer: Buffer) => write(port, buffer),
    });
  },
};

async function read(port: LinuxPortBinding, buffer: Buffer, offset: number, length: number) {
  for (;;) {
    await ready(port, 'readable');
    const bytesRead = attempt(() => readSync(descriptorOf(port), buffer, offset, length, null));
    if (bytesRead === undefined) continue;
    // End of file is what a terminal that was hung up gives (termios(3), Modem disconnect).
    if (bytesRead === 0) throw new BindingsError('the port was hung up');
    return { buffer, bytesRead };
  }
}

async function write(port: LinuxPortBinding, buffer: Buffer): Promise<void> {
  let written = 0;
  while (written < buffer.length) {
    const bytes = attempt(() => writeSync(descriptorOf(port), buffer, written));
    if (bytes === undefined) await ready(port, 'writable');
    else written += bytes;
  }
}

/** Undefined when it would block. */
function attempt(call: () => number): number | undefined {
  try {
    return call();
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'EAGAIN' || code === 'EINTR') return undefined;
    throw error;
  }
}

function descriptorOf({ fd }: LinuxPortBinding): number {
  if (fd === null) throw new BindingsError('the port is closed', { canceled: true });
  return fd;
}

/** Rejects when the port is closed or hung up meanwhile. */
function ready(port: LinuxPortBinding, event: 'readable' | 'writable'): Promise<void> {
  descriptorOf(port);
  return new Promise((resolve, reject) => {
    port.poller.once(event, (error) => (error ? reject(error) : resolve()));
  });
}
