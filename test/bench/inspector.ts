/** The debugger of a process that was started with `--inspect`, by the protocol of Chrome's DevTools. */

import { setTimeout as sleep } from 'node:timers/promises';

/** Bytes. */
export interface LiveHeap {
  objects: number;
  /** Compiled code, bytecode and what belongs to it. */
  code: number;
  /** Their bytes are beside the heap. */
  buffers: number;
}

export interface Inspector extends Disposable {
  /** What lives, after everything else was collected. */
  liveHeap(): Promise<LiveHeap>;
}

interface Answer {
  backingStorageSize?: number;
  result?: { value: string };
}

const FINALIZERS_MS = 500;
const SPACES = `JSON.stringify(process.getBuiltinModule('node:v8').getHeapSpaceStatistics())`;

/** `url`: as the process prints it, "Debugger listening on ws://…". */
export async function openInspector(url: string): Promise<Inspector> {
  const socket = new WebSocket(url);
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = () => reject(new Error(`the debugger at ${url} does not answer`));
  });
  const waiting = new Map<number, PromiseWithResolvers<Answer>>();
  let last = 0;
  socket.onmessage = ({ data }) => {
    const { id, result, error } = JSON.parse(String(data));
    if (error) waiting.get(id)?.reject(new Error(error.message));
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
  return {
    async liveHeap() {
      // Twice: the finalizers of what the first one has collected let go of more, in a turn of the event loop of their own.
      await call('HeapProfiler.collectGarbage');
      await sleep(FINALIZERS_MS);
      await call('HeapProfiler.collectGarbage');
      const { backingStorageSize: buffers = Number.NaN } = await call('Runtime.getHeapUsage');
      const { result } = await call('Runtime.evaluate', { expression: SPACES });
      const spaces: { space_name: string; space_used_size: number }[] = JSON.parse(result?.value ?? '[]');
      const used = (isCode: boolean) =>
        spaces
          .filter(({ space_name: name }) => /^(code|trusted)/.test(name) === isCode)
          .reduce((sum, space) => sum + space.space_used_size, 0);
      return { objects: used(false), code: used(true), buffers };
    },
    [Symbol.dispose]: () => socket.close(),
  };
}
