/**
 * The serial port to an EmberZNet coordinator, as the library writes to it: frames of ASH (UG101, Silicon Labs), a few
 * of which may wait for their acknowledgement, and the rest for their turn.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Connection } from './connection.ts';
import type { Gate } from './gate.ts';
import type { Make } from './make.ts';

/** Of the library's UartAsh. */
export interface Ash {
  /** All that is asked of it. */
  socketPort: { closed: boolean; destroy(): void; removeAllListeners(): void } | undefined;
  writer: { on(event: 'data', write: (bytes: Buffer) => void): unknown };
  parser: { write(bytes: Buffer): unknown; on(event: 'data', take: (frame: Buffer) => void): unknown };
  onFrame(frame: Buffer): void;
  onPortClose(error: boolean): void;
  initPort(): Promise<void>;
  /** Drops what is not sent, and the connection. */
  closePort(): Promise<void>;
  /** Queues a DATA frame, or writes it. Gives a status. */
  send(length: number, bytes: Buffer): number;
  txQueue: { empty: boolean };
  /** Numbers of DATA frames: the first that is not acknowledged, and the next. */
  ackRx: number;
  frmTx: number;
}

export interface GuardedAsh extends Pick<Make, 'carry' | 'abandon'> {
  /** The DATA frame that `send` sends leaves by the gate. */
  leave<T>(gate: Gate, send: () => Promise<T>): Promise<T>;
}

export function guardAsh(ash: Ash): GuardedAsh {
  const leaving = new AsyncLocalStorage<Gate>();
  let carrier: Connection | undefined;
  let opened: Ash | undefined;
  const { initPort, send } = ash;

  // The library's own has neither TLS nor a deadline.
  ash.initPort = async function (this: Ash) {
    opened = this;
    const connection = carrier;
    if (!connection) return initPort.call(this);
    const port = {
      closed: false,
      destroy() {
        port.closed = true;
        connection[Symbol.dispose]();
      },
      removeAllListeners: () => undefined,
    };
    this.writer.on('data', (bytes) => connection.write(bytes));
    this.parser.on('data', (frame) => this.onFrame(frame));
    connection.read(
      (bytes) => this.parser.write(bytes),
      () => {
        port.closed = true;
        this.onPortClose(false);
      },
    );
    this.socketPort = port;
  };

  ash.send = function (this: Ash, length, bytes) {
    const gate = leaving.getStore();
    if (gate) {
      // Behind another frame it would be written whenever that is acknowledged.
      if (!this.txQueue.empty || this.ackRx !== this.frmTx)
        throw new Error('the coordinator has not acknowledged what was sent before');
      gate.leave();
    }
    return send.call(this, length, bytes);
  };

  return {
    leave: (gate, work) => leaving.run(gate, work),
    carry(connection) {
      carrier = connection;
    },
    async abandon() {
      await opened?.closePort().catch(() => undefined);
    },
  };
}
