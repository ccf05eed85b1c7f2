/** What a cluster of a simulated device is. */
import type { Reader } from '../bytes.ts';
import type { Value } from './types.ts';

/** The frame that has a device do something. Its number alone is not enough: a host that starts again begins with the same ones. */
export interface Cause {
  tsn: number;
  /** Milliseconds of CLOCK_MONOTONIC, when it came: a slow device acts on it later. */
  heardMs: number;
}

export interface Attribute {
  type: number;
  get(): Value;
  /** Absent: read only. Answers a status of ZCL_STATUS. `cause`: the write. */
  set?(value: Value, cause: Cause): number;
  isReportable?: boolean;
}

export type Answer =
  | { kind: 'response'; command: number; payload: Buffer }
  /** A default response, unless it is a success that no one wants to hear of. */
  | { kind: 'status'; status: number };

/** Where a command came from. */
export interface Context extends Cause {
  source: number;
  sourceEndpoint: number;
}

export interface Cluster {
  id: number;
  /** In the list of output clusters: commands of servers come to it. */
  isClient?: boolean;
  /** Everything in it is the manufacturer's. */
  manufacturer?: number;
  attributes: Record<number, Attribute>;
  /** By command id. Throws RangeError for a payload that is too short. */
  commands: Record<number, (input: Reader, context: Context) => Answer>;
}

export const succeeded: Answer = { kind: 'status', status: 0 };
export const failed = (status: number): Answer => ({ kind: 'status', status });
export const responded = (command: number, payload: Uint8Array): Answer => ({
  kind: 'response',
  command,
  payload: Buffer.from(payload),
});

/** An attribute that is a field of `object`. */
export function fieldOf<Key extends string>(
  object: Record<Key, Value>,
  key: Key,
  type: number,
  options: { isWritable?: boolean; isReportable?: boolean; changed?(): void } = {},
): Attribute {
  return {
    type,
    get: () => object[key],
    ...(options.isReportable && { isReportable: true }),
    ...(options.isWritable && {
      set(value: Value) {
        object[key] = value;
        options.changed?.();
        return 0;
      },
    }),
  };
}

export const constant = (type: number, value: Value, isReportable = false): Attribute => ({
  type,
  get: () => value,
  isReportable,
});
