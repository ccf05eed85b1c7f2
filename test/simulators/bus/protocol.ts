/**
 * What a protocol brings to a simulated bus: when a request is complete, and what each device answers. A new one
 * implements Protocol and is named in simulation.ts and plan.ts; the wire, its faults and the control know no protocol.
 */
import type { Pins } from './pins.ts';
import type { DeviceChange, DevicePlan } from './plan.ts';

export type Reading =
  | { kind: 'more' }
  /** The first `length` bytes are a request to one device, or to all of them. */
  | { kind: 'request'; length: number; address: number | 'all' }
  /** All of it is noise to every device. */
  | { kind: 'bad' };

export interface Device {
  readonly pins: Pins;
  /** Where it is now, if that can change; null: not on this bus. */
  place?(): number | null;
  /** The whole frame of the reply; undefined when a device has nothing to say to that. */
  answer(request: Uint8Array, now: number): Uint8Array | undefined;
  /** Does what is due by itself until now, such as opening a relay. */
  advance(now: number): void;
  restart(now: number): void;
  /** Bits of the device beside its pins. */
  alarm(change: { tamper?: boolean; supplyFault?: boolean }): void;
  /** What can be set on an osdp-io only. */
  act?(change: NonNullable<DeviceChange['osdp']>): void;
  /** What only this kind has, for people and tests. */
  describe(now: number): Record<string, unknown>;
}

export interface Protocol {
  /** Silence that ends a frame, on a wire with characters of this length. */
  silenceMs(characterMs: number): number;
  read(received: Uint8Array): Reading;
  openDevice(plan: DevicePlan, now: number): Device;
  /** The request is one to change something; absent: the protocol does not separate them. */
  isWrite?(request: Uint8Array): boolean;
  /** How a device refuses this request. `code`: as far as the protocol has codes. */
  refusal(request: Uint8Array, code: number): Uint8Array;
  /** The reply with one bit wrong, still as long, still with its end. */
  corrupted(reply: Uint8Array): Uint8Array;
  /** The reply as if another device had sent it, where a reply names its sender. */
  readdressed(reply: Uint8Array, address: number): Uint8Array;
}
