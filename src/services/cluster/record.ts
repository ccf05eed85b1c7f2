/** What the gateways of a cluster keep in the key-value bucket, one value a key. */
import { z } from 'zod';

const name = z.string().min(1).max(32);

/** Of the key `lease`: who is the active gateway. Written by that one alone, and by the one that takes over. */
export const leaseRecord = z.object({
  /** Of the vault key, which both have: those of another site keep away. */
  site: z.string(),
  /** Grows with each gateway that becomes the active one. */
  epoch: z.int().min(1),
  holder: name,
  /** Of the data directory: a copy of the configuration is another gateway. */
  instance: z.guid(),
  version: z.string(),
  /** The only gateway that may take over, null: none may. */
  standby: name.nullable(),
  /** The holder has let go of everything. */
  released: z.boolean(),
  /** Changes with each renewal. */
  beat: z.int(),
});
export type LeaseRecord = z.output<typeof leaseRecord>;

/** Of the key `standby`: who is ready to take over. */
export const standbyRecord = z.object({
  site: z.string(),
  name,
  instance: z.guid(),
  version: z.string(),
  /** It could take over now. */
  ready: z.boolean(),
  /** What keeps it from that, for the operator. */
  reason: z.string().nullable(),
  /** Commits of the active gateway that it has; null before its first snapshot. */
  position: z.int().nullable(),
  /** It has none that it could go on with. */
  lacksSnapshot: z.boolean(),
  beat: z.int(),
});
export type StandbyRecord = z.output<typeof standbyRecord>;

/** Of the key `wanted`: which one an operator wants to be the active one (gatehouse cluster promote and demote). */
export const wantedRecord = z.object({
  active: name,
  /** The other one is switched off, says the operator: it is not waited for. */
  force: z.boolean(),
  /** Of the lease that the operator saw, or of what the gateway knew where there was none: the word counts for that alone. */
  after: z.int().min(0),
});
export type WantedRecord = z.output<typeof wantedRecord>;

export interface Stored<T> {
  value: T;
  /** Of the bucket: grows with each write of any key. */
  revision: number;
}

export interface Records {
  lease: Stored<LeaseRecord> | undefined;
  standby: Stored<StandbyRecord> | undefined;
  wanted: Stored<WantedRecord> | undefined;
}
