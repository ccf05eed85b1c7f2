/**
 * Pseudo-terminals: serial ports that end in this process. No system package is needed, only the prebuilt addon of
 * @lydell/node-pty. The package's own open() is of no use, for it reads the slave and so takes bytes from the gateway.
 */
import { spawnSync } from 'node:child_process';
import { closeSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Duplex } from 'node:stream';
import { ReadStream } from 'node:tty';

export interface Pty extends AsyncDisposable {
  /** What a gateway opens: the link when there is one, which stays the same over hang-up and replug. */
  readonly path: string;
  /** The far end of the wire, to read and write. Another one after each replug; throws while hung up. */
  readonly master: Duplex;
  /** The same as a descriptor, for who cannot wait for an event loop. Non-blocking. */
  readonly fd: number;
  /** What the process that has it open has set it to. Takes some milliseconds. */
  baudRate(): number;
  /** What pulling a USB adapter does: who has the port open reads nothing and gets EIO when writing; the link is gone. */
  hangUp(): Promise<void>;
  /** A new port, behind the same link. Hangs up first when that was not done. */
  replug(): Promise<void>;
}

interface Addon {
  open(columns: number, rows: number): { master: number; slave: number; pty: string };
}

/** Loaded with the first pty: a package of Gatehouse has simulators, and not this. */
const loadAddon = (): Addon =>
  createRequire(import.meta.url)(`@lydell/node-pty-${process.platform}-${process.arch}/pty.node`);

/** Both ends of a raw pty. The slave is held so that the master does not read EIO while no one has the port open. */
function openPair(): { master: number; slave: number; path: string } {
  const { master, slave, pty } = loadAddon().open(80, 24);
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
function swapLink(path: string, link: string): void {
  const next = `${link}.next`;
  rmSync(next, { force: true });
  symlinkSync(path, next);
  renameSync(next, link);
}

/**
 * A pty whose far end is in this process. `link`: path of a symlink to it, removed at the end. A process that is started
 * while it is open inherits it, and keeps it from hanging up until it ends.
 */
export function openPty(link?: string): Pty {
  let plugged: { path: string; slave: number; fd: number; master: ReadStream } | undefined = plug();

  function plug() {
    const { path, slave, master } = openPair();
    if (link !== undefined) swapLink(path, link);
    return { path, slave, fd: master, master: new ReadStream(master) };
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
    get fd() {
      return held().fd;
    },
    baudRate() {
      const { stdout } = spawnSync('stty', ['speed'], {
        stdio: [held().slave, 'pipe', 'ignore'],
        encoding: 'utf8',
      });
      return Number(stdout);
    },
    hangUp,
    async replug() {
      await hangUp();
      plugged = plug();
    },
    [Symbol.asyncDispose]: hangUp,
  };
}
