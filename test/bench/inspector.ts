/** The debugger of a process that was started with `--inspect`, by the protocol of Chrome's DevTools. */

import { setTimeout as sleep } from 'node:timers/promises';

/** Bytes. */
export interface LiveMemory {
  objects: number;
  /** Compiled code, bytecode and what belongs to it. */
  code: number;
  /** Their bytes are beside the heap. */
  buffers: number;
  /** Of glibc's, in use. */
  malloc: number;
}

export interface Inspector extends Disposable {
  /** What lives, after everything else was collected. */
  live(): Promise<LiveMemory>;
}

interface Answer {
  backingStorageSize?: number;
  result?: { value: string };
}

interface Evaluated {
  spaces: { space_name: string; space_used_size: number }[];
  malloc: number;
}

const FINALIZERS_MS = 500;

/** `url`: as the process prints it, "Debugger listening on ws://…". `addon`: the file made of malloc-in-use.c. */
export async function openInspector(url: string, addon: string): Promise<Inspector> {
  const socket = new WebSocket(url);
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = () => reject(new Error(`the debugger at ${url} does not answer`));
  });
  const waiting = new Map<number, PromiseWithResolvers<Answer>>();
  let last = 0;
  socket.onmessage = ({ data }) => {
    const { id, result, error } = JSON.parse(String(data));
    const failure = error?.message ?? result?.exceptionDetails?.exception?.description;
    if (failure) waiting.get(id)?.reject(new Error(failure));
    else waiting.get(id)?.resolve(result);
    waiting.delete(id);
  };
  function call(method: string, params: object = {}): Promise<Answer> {
    last += 1;
    const answer = Promise.withResolvers<Answer>();
    waiting.set(last, answer);
    socket.send(JSON.stringify({ id: last, method, params }));
    return answer.promise;
  }
  const load = `{ const loaded = { exports: {} }; process.dlopen(loaded, ${JSON.stringify(addon)}); globalThis.mallocInUse = loaded.exports; }`;
  await call('Runtime.evaluate', { expression: load });
  const look = `JSON.stringify({ malloc: mallocInUse(), spaces: process.getBuiltinModule('node:v8').getHeapSpaceStatistics() })`;
  return {
    async live() {
      // Twice: the finalizers of what the first one has collected let go of more, in a turn of the event loop of their own.
      await call('HeapProfiler.collectGarbage');
      await sleep(FINALIZERS_MS);
      await call('HeapProfiler.collectGarbage');
      const { backingStorageSize: buffers = Number.NaN } = await call('Runtime.getHeapUsage');
      const { result } = await call('Runtime.evaluate', { expression: look });
      const { spaces, malloc }: Evaluated = JSON.parse(result?.value ?? '{}');
      const used = (isCode: boolean) =>
        spaces
          .filter(({ space_name: name }) => /^(code|trusted)/.test(name) === isCode)
          .reduce((sum, space) => sum + space.space_used_size, 0);
      return { objects: used(false), code: used(true), buffers, malloc };
    },
    [Symbol.dispose]: () => socket.close(),
  };
}
