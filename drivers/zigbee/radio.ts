/** The coordinator and its network, as this driver sees them: what the room herdsman makes of its library. */
import type { OtaImage } from '../contract/ota-image.ts';

/** Name of the locks' own cluster (lock-cluster.ts) in the library. */
export const LOCK_CLUSTER = 'gatehouseLock';
/** Name of the Door Lock cluster in the library. */
export const DOOR_LOCK = 'closuresDoorLock';

export interface RadioDevice {
  /** 16 lower-case hex digits. */
  ieee: string;
  kind: 'coordinator' | 'router' | 'endDevice' | 'unknown';
  networkAddress: number;
  interviewed: boolean;
  manufacturer: string | undefined;
  model: string | undefined;
  softwareBuild: string | undefined;
  /** Epoch milliseconds. */
  lastSeen: number | undefined;
  endpoints: { id: number; inputs: readonly number[]; outputs: readonly number[] }[];
}

/** What happens on the network. `lqi` is of the last hop. */
export type RadioEvent =
  | {
      kind: 'heard';
      ieee: string;
      endpoint: number;
      cluster: string | number;
      type: string;
      /** The transaction sequence number: of a report or an event that of the device. */
      tsn: number | undefined;
      data: unknown;
    }
  /** `spoke`: a frame of it; else the coordinator alone says that it asked to join. */
  | { kind: 'seen'; ieee: string; lqi: number | undefined; spoke: boolean }
  /** It has another network address, or says so. */
  | { kind: 'readdressed'; ieee: string }
  | { kind: 'interviewed'; ieee: string; successful: boolean }
  /** It asked to join, is known, and is not interviewed again. */
  | { kind: 'joinedAgain'; ieee: string }
  | { kind: 'left'; ieee: string }
  /** A frame to it was not answered. */
  | { kind: 'silent'; ieee: string }
  /** The connection to the coordinator is gone. */
  | { kind: 'disconnected' };

/**
 * One ZCL command and its reply. It is sent at once or not at all, at most once, and never after `notAfter`: not kept
 * for a sleeping device, and not repeated.
 */
export interface ZclRequest {
  ieee: string;
  endpoint: number;
  cluster: string;
  command: string;
  /** For every profile (read, write, …), or of the cluster. */
  scope: 'foundation' | 'cluster';
  /** Fields of the command, or the records of a foundation command, `attrId` first (herdsman/gate.ts); never empty. */
  payload: Record<string, unknown> | readonly Record<string, unknown>[];
  /** Monotonic milliseconds. */
  notAfter: number;
  timeoutMs: number;
  /** It moves something at a door: nothing of it may be left anywhere when its time is over (herdsman/port.ts). */
  actuates?: true;
  /** It opens a door: it is not sent to where a parent may hold it too long, unless the configuration allows it. */
  opens?: true;
  /** Its bytes are not written before this resolves, and never when it rejects. */
  released?: Promise<void>;
  /** Asked when its bytes are about to be written: they are not to be, since its address may be that of another device. */
  isBarred?(): boolean;
  /** Its bytes are written now. */
  left?(): void;
  /** The coordinator did not see it delivered. The lock may have it all the same: its answer is still waited for. */
  unconfirmed?(reason: string): void;
  /** Fires: its answer is waited for no longer, and the device is free for the next. With KNOWN: the device spoke. */
  known?: AbortSignal;
  /** Fires: what has not left is not to leave. What has left is waited for all the same. */
  withdrawn?: AbortSignal;
  /** The transaction sequence number, where the caller must know it. */
  tsn?: number;
}

/** The reason of ZclRequest.known where the device said by itself what it did. */
export const KNOWN = 'known';

export type ZclReply =
  | { kind: 'answered'; payload: unknown }
  /** Its time was over before it could be sent; it was not. */
  | { kind: 'late' }
  /** Not sent, for another reason: it never reached the radio. */
  | { kind: 'unsent'; reason: string }
  /** Sent, and no one knows more. That the coordinator saw no acknowledgement proves nothing: it may be what was lost. */
  | { kind: 'unanswered'; reason: string };

export interface Neighbour {
  ieee: string;
  networkAddress: number;
  lqi: number;
}

export interface Page {
  /** Entries of the whole table, by the device. */
  total: number;
  count: number;
}

export interface Disowning {
  /** It is a child again, unless it has joined again since. */
  restore(): Promise<void>;
  /** It has another parent. */
  confirm(): void;
}

export interface Radio {
  /** Of the coordinator. */
  readonly hwId: string;
  /** Of its firmware. */
  readonly version: string;
  /** The Zigbee stack in that firmware; undefined: the coordinator does not report its version. */
  readonly stack: { name: string; version: string } | undefined;
  readonly channel: number;
  /** True when this start made a new network. */
  readonly formed: boolean;
  /** True when LQI is a value in dBm (values.ts). */
  readonly lqiIsLinear: boolean;
  devices(): RadioDevice[];
  device(ieee: string): RadioDevice | undefined;
  /** Its network address is what somebody said who asked to join in its name, also before this start, and nothing has named it since. */
  isDoubted(ieee: string): boolean;
  /** Rejects when the coordinator does not answer, or has forgotten its network. */
  probe(): Promise<void>;
  send(request: ZclRequest): Promise<ZclReply>;
  /** The device sends its events of this cluster to the coordinator. Rejects with REFUSED, or when it does not answer. */
  bind(ieee: string, endpoint: number, cluster: string): Promise<void>;
  /** The device has a cluster of the maker's; to be said again after each start and interview. */
  addCluster(ieee: string): void;
  /** The last known value of an attribute, or undefined. */
  attribute(ieee: string, endpoint: number, cluster: string, name: string): unknown;
  /** Of the door lock cluster: their last known values are so no more, and undefined until they are reported or read. */
  doubt(ieee: string, endpoint: number, names: readonly string[]): void;
  /** What is kept with the device, plain data, and forgotten when it leaves, but for what is to be given back to it. */
  meta(ieee: string): Readonly<Record<string, unknown>>;
  /** On the disk now, or when it takes it. Never throws because of it. */
  remember(ieee: string, values: Record<string, unknown>): void;
  /** Before something that only these values can undo. Throws REFUSED, with nothing remembered, when it cannot be stored. */
  rememberFirst(ieee: string, values: Record<string, unknown>): void;
  /** Asks the network for the address of a device, and takes it over. Rejects when no one answers. */
  locate(ieee: string): Promise<void>;
  /** Other devices of the network that are taken to have its network address. */
  sharing(ieee: string): string[];
  /** What comes from its network address is of this device again, after another was taken to have that address. */
  hearAsItself(ieee: string): void;
  /** Has routers look for a route to it. */
  reroute(ieee: string): Promise<void>;
  /** The coordinator takes it for its child, which it may not be any more. */
  isChild(ieee: string): Promise<boolean>;
  /** Has the coordinator forget that it is its child; undefined: it is none. Stored until it is restored or confirmed. */
  disown(ieee: string): Promise<Disowning | undefined>;
  /** Restores the children that a former run of the gateway left disowned. */
  restoreChildren(): Promise<void>;
  /** How busy each channel is, as this device hears it: 0 to 255. It is deaf for a second meanwhile. */
  energies(ieee: string, channels: readonly number[]): Promise<{ channel: number; energy: number }[]>;
  /** Asks the device to leave the network for good. Rejects when it does not confirm that. */
  leave(ieee: string): Promise<void>;
  /** The device is not of this network any more: it may not come back without a join window. */
  forget(ieee: string): void;
  /** Opens the join window for up to 254 s, or closes it with 0. */
  permitJoin(seconds: number): Promise<void>;
  addInstallCode(ieee: string, code: string): Promise<void>;
  /** Forgets whatever key the coordinator has for a device. Rejects when it does not say that it did. */
  removeInstallCode(ieee: string): Promise<void>;
  /** Writes the database and the backup of the coordinator to their files. */
  save(): Promise<void>;
  /** A page of the neighbour table of a device, from an index; `count` entries were in it. */
  neighbours(ieee: string, from: number): Promise<Page & { neighbours: Neighbour[] }>;
  /** The same of its routing table: network addresses of the next hops of routes in use. */
  routes(ieee: string, from: number): Promise<Page & { nextHops: number[] }>;
  /**
   * Offers the firmware of a file, if the device says that it is of that manufacturer and type, and older; resolves when
   * the device has it or has refused it, which takes up to hours. `present`: what the device said it has.
   */
  update(
    ieee: string,
    image: OtaImage & { file: string },
    progress: (percent: number, remainingSeconds: number) => void,
  ): Promise<{ updated: boolean; present: OtaImage }>;
  abortUpdate(ieee: string): void;
  /** May hang with its coordinator; the process is then to be replaced. */
  close(): Promise<void>;
}

/** What commands to a lock use of it. */
export type LockRadio = Pick<Radio, 'send' | 'attribute' | 'meta' | 'remember' | 'rememberFirst'>;
