/** Jobs that wait for their turn: one of a queue runs at a time, in the order in which they were accepted. */
import { GatehouseError } from '../../platform/errors.ts';
import type { JobOrder, JobWork } from './job-order.ts';

/** Jobs that wait in one queue: as many as there are locks in the largest network of a common coordinator (CC2652). */
export const QUEUED_MAX = 200;

/** What of an order is needed once it is stored. */
export interface Task extends Pick<JobOrder, 'kind' | 'object'> {
  /** null: it waits for no other. */
  queue: string | null;
  run: JobWork;
}

export interface Queues {
  /** Throws QUEUE_FULL. It has no turn before `stored`. */
  add(id: string, task: Task): void;
  stored(id: string): void;
  delete(id: string): void;
  /** 1 is next; null: it does not wait. */
  positionOf(id: string): number | null;
  tasks(): IterableIterator<[string, Task]>;
  /** Takes those out that are stored and are of this kind on this object; their ids. */
  remove(kind: string, object: string): string[];
  /** Takes the first out whose queue is not in `busy`; undefined: none has its turn. */
  take(busy: ReadonlySet<string | null>): [string, Task] | undefined;
}

export function openQueues(): Queues {
  const waiting = new Map<string, Task>();
  const unstored = new Set<string>();
  const inQueue = (name: string | null) => [...waiting].filter(([, { queue }]) => queue === name);
  return {
    add(id, task) {
      if (inQueue(task.queue).length >= QUEUED_MAX)
        throw new GatehouseError(
          'QUEUE_FULL',
          `${QUEUED_MAX} jobs wait in this queue already: wait until some are done, or cancel them.`,
        );
      waiting.set(id, task);
      unstored.add(id);
    },
    stored: (id) => void unstored.delete(id),
    delete(id) {
      waiting.delete(id);
      unstored.delete(id);
    },
    positionOf(id) {
      const task = waiting.get(id);
      return task ? inQueue(task.queue).findIndex(([other]) => other === id) + 1 : null;
    },
    tasks: () => waiting.entries(),
    remove(kind, object) {
      const found = [...waiting].filter(([id, task]) => {
        return task.kind === kind && task.object === object && !unstored.has(id);
      });
      for (const [id] of found) waiting.delete(id);
      return found.map(([id]) => id);
    },
    take(busy) {
      const passed = new Set(busy);
      for (const [id, task] of waiting) {
        if (!passed.has(task.queue) && !unstored.has(id)) {
          waiting.delete(id);
          return [id, task];
        }
        passed.add(task.queue);
      }
      return undefined;
    },
  };
}
