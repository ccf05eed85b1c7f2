/** One command that opens a door at a time: the outcome of the first may be out of date by the time a second caller gets it. */
import { GatehouseError } from '../../platform/errors.ts';

export interface Busy {
  /** Throws IN_PROGRESS. */
  during<T>(doorId: string, work: () => Promise<T>): Promise<T>;
  has(doorId: string): boolean;
}

export function openBusy(): Busy {
  const doors = new Set<string>();
  return {
    has: (doorId) => doors.has(doorId),
    async during(doorId, work) {
      if (doors.has(doorId)) {
        const message = 'A command to this door is under way: wait for its outcome. Nothing more was sent.';
        throw new GatehouseError('IN_PROGRESS', message);
      }
      doors.add(doorId);
      try {
        return await work();
      } finally {
        doors.delete(doorId);
      }
    },
  };
}
