/** Makes a path free for the admin socket, without taking it from a daemon that lives. */
import { lstatSync, unlinkSync } from 'node:fs';
import { createConnection } from 'node:net';

/** sockaddr_un.sun_path less its final zero (unix(7)). */
const PATH_MAX_BYTES = 107;

/** Removes a socket no one answers on. Throws when one does, or when the path is something else. */
export async function claimSocketPath(path: string): Promise<void> {
  if (Buffer.byteLength(path) > PATH_MAX_BYTES) {
    throw new Error(`${path} is longer than ${PATH_MAX_BYTES} bytes: set adminSocket to a shorter path`);
  }
  const there = lstatSync(path, { throwIfNoEntry: false });
  if (!there) return;
  if (!there.isSocket()) throw new Error(`${path} is not a socket: move it away, or change adminSocket`);
  if (await answers(path)) {
    throw new Error(`another gatehouse answers on ${path}: stop it first, or change adminSocket`);
  }
  unlinkSync(path);
}

/** The kernel decides at once, so this needs no deadline. A full backlog (EAGAIN) is a daemon that lives. */
function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ path });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', (error: NodeJS.ErrnoException) => {
      resolve(error.code !== 'ECONNREFUSED' && error.code !== 'ENOENT');
    });
  });
}
