/** What of the library differs by the make of the coordinator: Z-Stack (z-stack.ts) or EmberZNet (ember.ts). */
import type { Clock } from '../../contract/driver.ts';
import type { Radio } from '../radio.ts';
import type { BackupStore } from '../state-files.ts';
import type { WaitAs } from './answers.ts';
import type { Connection } from './connection.ts';
import type { Passage } from './gate.ts';
import type { Permitted } from './strategy.ts';

/** Of the library: its methods are changed. */
export interface Class {
  prototype: object;
}
/** Of the library, for every make. */
export interface Utilities {
  Queue: new (concurrent: number) => Queue;
  BackupUtils: object;
  /** AES-MMO (Zigbee specification R22, B.6). */
  hash(bytes: Buffer): Buffer;
}
/** One job at a time for each key. */
export interface Queue {
  execute<T>(job: () => Promise<T>, key: number): Promise<T>;
  count(): number;
}

/** Where a device is, as the library knows it. */
export interface Addressed {
  ieeeAddr: string;
  networkAddress: number;
}
/** By its IEEE address. Throws when there is none. */
export type Find = (ieee: string) => Addressed;

export type Addressing = Pick<
  Radio,
  'locate' | 'sharing' | 'hearAsItself' | 'reroute' | 'isChild' | 'disown' | 'restoreChildren'
>;

export interface Make {
  /** What the next start may do to the coordinator, and the time from then on. */
  permit(permitted: Permitted & { clock: Clock }): void;
  /** What the next port on the network goes through. */
  carry(connection: Connection | undefined): void;
  /** The library has begun: a coordinator that restarts from now on is none of this network any more. */
  begun(): void;
  /** Closes the port that was opened last, whatever the library does with it. Never rejects. */
  abandon(): Promise<void>;
  /** Before the controller is started: backups go to this store. */
  storeBackup(controller: object, store: BackupStore, withoutKeys: boolean): void;
  /** Whatever `send` sends passes by `passage`. */
  passBy<T>(passage: Passage, send: () => Promise<T>): Promise<T>;
  waitAs: WaitAs;
  /** Of the version that the coordinator reports: names of its parts in order. */
  readonly versionParts: readonly string[];
  addInstallCode(controller: object, ieee: string, code: string): Promise<void>;
  removeInstallCode(controller: object, ieee: string): Promise<void>;
  addressing(controller: object, find: Find, stateDirectory: string): Addressing;
}
