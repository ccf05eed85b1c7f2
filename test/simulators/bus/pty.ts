/**
 * Pseudo-terminals: serial ports that end in this process. No system package is needed, only the prebuilt addon of
 * @lydell/node-pty. The package's own open() is of no use, for it reads the slave and so takes bytes from the gateway.
 */
import { spawnSync } from 'node:child_process';
import { closeSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Duplex } from 'node:stream';
import { ReadStream } from 'node:tty';

/** The two ends as file descriptors, both non-blocking. */
export interface PtyPair {
  readonly master: number;
  /** Held so that the master does not read EIO while nobody has the port open. Never to be read. */
  readonly slave: number;
  /** Of the slave, such as /dev/pts/3. */
  readonly path: string;
}

export interface Pty extends AsyncDisposable {
  /** What a gateway opens: the link when there is one, which stays the same over hang-up and replug. */
  readonly path: string;
  /** The far end of the wire, to read and write. Another one after each replug; throws while hung up. */
  readonly master: Duplex;
  /** What pulling a USB adapter does: who has the port open reads nothing and gets EIO when writing; the link is gone. */
  hangUp(): Promise<void>;
  /** A new port, behind the same link. Hangs up first when that was not done. */
  replug(): Promise<void>;
}

interface Addon {
  open(columns: number, rows: number): { master: number; slave: number; pty: string };
}

const addon: Addon = createRequire(import.meta.url)(
  `@lydell/node-pty-${process.platform}-${process.arch}/pty.node`,
);

/**
 * Both ends of a raw pty; they are the caller's to close, which hangs it up. Processes started in between inherit
 * them and keep it from hanging up until they end.
 */
export function openPtyPair(): PtyPair {
  const { master, slave, pty } = addon.open(80, 24);
  // A new pty echoes: what is written before the gateway has opened it would come back.
  const { status, stderr } = spawnSync('stty', ['raw', '-echo'], {
    stdio: [slave, 'ignore', 'pipe'],
    encoding: 'utf8',
  });
  if (status === 0) return { master, slave, path: pty };
  closeSync(master);
  closeSync(slave);
  throw new Error(`stty cannot make ${pty} raw: ${stderr}`);
}

/** Makes `link` point to `path` at once: there is no moment without a link when there was one before. */
export function swapLink(path: string, link: string): void {
  const next = `${link}.next`;
  rmSync(next, { force: true });
  symlinkSync(path, next);
  renameSync(next, link);
}

/** A pty whose far end is a stream of this process. `link`: path of a symlink to it, removed at the end. */
export function openPty(link?: string): Pty {
  let plugged: { path: string; slave: number; master: ReadStream } | undefined = plug();

  function plug() {
    const pair = openPtyPair();
    if (link !== undefined) swapLink(pair.path, link);
    return { path: pair.path, slave: pair.slave, master: new ReadStream(pair.master) };
  }
  function held() {
    if (!plugged) throw new Error('the pty is hung up: replug it first');
    return plugged;
  }
  async function hangUp(): Promise<void> {
    if (!plugged) return;
    const { master, slave } = plugged;
    plugged = undefined;
    if (link !== undefined) rmSync(link, { force: true });
    const { promise, resolve } = Promise.withResolvers<void>();
    master.once('close', () => resolve()).destroy();
    closeSync(slave);
    await promise;
  }

  return {
    get path() {
      return link ?? held().path;
    },
    get master() {
      return held().master;
    },
    hangUp,
    async replug() {
      await hangUp();
      plugged = plug();
    },
    [Symbol.asyncDispose]: hangUp,
  };
}
