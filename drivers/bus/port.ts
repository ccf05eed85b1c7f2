/**
 * The contract of a port: what carries bytes to a bus and back. There are serial-port.ts, tcp-port.ts, dial-in-port.ts, rfc2217-port.ts,
 * and that of Modbus TCP (drivers/modbus/tcp-port.ts).
 */
import type { BusWarning } from '../contract/bus-warnings.ts';
import type { Clock, DriverLog } from '../contract/driver.ts';
import type { BusOptions, LineSettings } from './options.ts';

export interface PortListener {
  /** Bytes came. The array is the listener's own. */
  data(bytes: Uint8Array): void;
  /** Of a port that numbers its requests: a whole reply, and not to the last one. */
  late?(reply: Uint8Array): void;
  /** The peer said something that is no reply: it is there. */
  spoke?(): void;
  /** The port is gone, once and for good: hang-up, error, or a peer that is silent for too long. */
  lost(error: Error): void;
}

/** An open port, exclusively ours. After any error it is lost and another one is opened. */
export interface Port extends AsyncDisposable {
  /** For people, such as /dev/ttyUSB0 or tcp://10.0.0.7:4001. */
  readonly name: string;
  /** What a technician should mend though it works, such as a latency timer of 16 ms. */
  readonly warnings: readonly BusWarning[];
  /** Bytes take as long as the baud rate says; what comes sooner is no reply. Not so on ptys and networks. */
  readonly paced: boolean;
  /** A peer that is gone may go unnoticed: a bus that hears nothing any more takes the port for lost. */
  readonly diesUnnoticed: boolean;
  /**
   * Each reply says by a number which request it answers, so that a late one is never taken for the next; there is no wire
   * here whose silences would be kept; and no request is sent while the one before may still be answered in its time.
   */
  readonly numbersRequests?: boolean;
  /** What the way itself adds to every reply, milliseconds: the round trip of a network, the latency timer of an adapter. */
  latencyMs(): number;
  /** Hands all bytes over at once, without waiting for the wire. Throws LINK_LOST. */
  write(bytes: Uint8Array): void;
  /** What was handed over and has not left yet is not to leave any more, as far as the system can take it back. Never rejects. */
  discard?(): Promise<void>;
  /**
   * Has other characters from now on; what is on its way meanwhile is lost. Absent where that is not in our hands, as behind
   * a serial device server. Throws LINK_LOST, and the port is lost then.
   */
  retune?(line: LineSettings): Promise<void>;
}

export type OpenPort = (
  options: BusOptions,
  listener: PortListener,
  context: { clock: Clock; log: DriverLog },
  signal: AbortSignal,
) => Promise<Port>;
