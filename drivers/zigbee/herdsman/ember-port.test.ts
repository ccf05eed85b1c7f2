/** What of an EmberZNet coordinator's port holds without one: what leaves, what is read, and what no frame can do. */
import { describe, expect, it, vi } from 'vitest';
import { manualClock } from '../../../test/manual-clock.ts';
import { type CallbackReader, type EmberListeners, guardEmberListeners } from './ember-listeners.ts';
import { type AshStream, calmAshParser } from './ember-parser.ts';
import { type Ash, guardAsh } from './ember-port.ts';
import { refusedByEmber, unconfirmedByEmber } from './frame-status.ts';
import { openGate } from './gate.ts';

/** UG101 (Silicon Labs, rev. 3.1), clause 2: ACK(1)+ and RST(). */
const [ACK, RST] = ['8160597e', 'c038bc7e'];

function openAsh(state: Partial<Pick<Ash, 'txQueue' | 'ackRx' | 'frmTx'>> = {}) {
  const written: string[] = [];
  const ash = {
    txQueue: { empty: true },
    ackRx: 3,
    frmTx: 3,
    initPort: async () => undefined,
    send: (_: number, bytes: Buffer) => written.push(bytes.toString()),
    ...state,
  } as unknown as Ash;
  return { written, ash, ...guardAsh(ash) };
}

function madeGate(notAfter = 10) {
  const clock = manualClock();
  const gate = openGate({ timeout: 5 }, notAfter, clock);
  Object.values(gate.payload);
  return { gate, clock };
}

describe('a frame that opens a door', () => {
  it('leaves when the coordinator has acknowledged all before it', async () => {
    const { ash, leave, written } = openAsh();
    const { gate } = madeGate();
    await leave(gate, async () => void ash.send(4, Buffer.from('open')));
    expect(written).toEqual(['open']);
    expect(gate.state()).toBe('sent');
  });

  it.each([{ frmTx: 4 }, { txQueue: { empty: false } }])(
    'does not wait in the queue of the library: %j',
    async (state) => {
      const { ash, leave, written } = openAsh(state);
      const { gate } = madeGate();
      const sent = leave(gate, async () => void ash.send(4, Buffer.from('open')));
      await expect(sent).rejects.toThrow('not acknowledged');
      expect(written).toEqual([]);
      expect(gate.state()).toBe('made');
      // Others may.
      ash.send(4, Buffer.from('read'));
      expect(written).toEqual(['read']);
    },
  );

  it('is not written when its time is over', async () => {
    const { ash, leave, written } = openAsh();
    const { gate, clock } = madeGate();
    await clock.advance(11);
    await expect(leave(gate, async () => void ash.send(4, Buffer.from('open')))).rejects.toThrow('over');
    expect(written).toEqual([]);
  });
});

describe('the reader of frames', () => {
  function openReader() {
    const frames: string[] = [];
    const stream = {
      push: (frame: Buffer) => frames.push(frame.toString('hex')),
      _transform() {},
      _flush() {},
    } as unknown as AshStream;
    calmAshParser(stream);
    return { frames, read: (hex: string) => stream._transform(Buffer.from(hex, 'hex'), '', () => undefined) };
  }

  it('cuts what comes in pieces', () => {
    const { frames, read } = openReader();
    for (const byte of `${ACK}${RST}`.match(/../g) ?? []) read(byte);
    expect(frames).toEqual([ACK, RST]);
  });

  it('keeps no noise, and no frame that is longer than any', () => {
    const { frames, read } = openReader();
    for (let count = 0; count < 200; count += 1) read('00'.repeat(4_096));
    read(`7e${ACK}`);
    read(`${'01'.repeat(500)}7e${RST}`);
    expect(frames).toEqual(['7e', ACK, RST]);
  });
});

it('goes on after a callback that cannot be read, and when its coordinator is gone while it reacts', async () => {
  const gone = async () => {
    throw new Error('gone');
  };
  const rejected: string[] = [];
  const waiter = {
    timer: setTimeout(() => undefined, 0),
    timedout: false,
    reject: () => rejected.push('one'),
  };
  const adapter = {
    onStackStatus: gone,
    onMessageSent: gone,
    onTrustCenterJoin: gone,
    watchdogCounters: gone,
    onNcpNeedsResetAndInit: () => rejected.push('all'),
    oneWaitress: { waiters: new Map([[1, waiter]]) },
    ezsp: { responseWaiter: { resolve: (status: number) => rejected.push(`command: ${status}`) } },
  } as unknown as EmberListeners;
  const reader = {
    callbackDispatch() {
      throw new RangeError('out of bounds');
    },
    stop: async () => undefined,
  };
  guardEmberListeners(adapter, reader);
  expect(() => reader.callbackDispatch()).not.toThrow();
  await expect(adapter.onTrustCenterJoin()).resolves.toBeUndefined();
  await expect(adapter.watchdogCounters()).resolves.toBeUndefined();
  adapter.onNcpNeedsResetAndInit(0);
  // EzspStatus of Silicon Labs: NOT_CONNECTED.
  expect(rejected).toEqual(['command: 40', 'one', 'all']);
});

it('waits for no answer of a coordinator whose port is closed', async () => {
  const { promise, resolve } = Promise.withResolvers<number>();
  const stopped = vi.fn(async () => undefined);
  const reader: CallbackReader = { callbackDispatch: () => undefined, stop: stopped };
  guardEmberListeners({} as EmberListeners, reader);
  reader.responseWaiter = { resolve };
  await reader.stop();
  // EzspStatus of Silicon Labs: NOT_CONNECTED.
  expect(await promise).toBe(0x28);
  expect(stopped).toHaveBeenCalledOnce();
});

it('has a reason for each status, and says of none that it is a proof', () => {
  // sl_status_t of the Gecko SDK: ZIGBEE_MAX_MESSAGE_LIMIT_REACHED, ZIGBEE_DELIVERY_FAILED.
  expect(refusedByEmber(0x0c03)).toEqual({
    kind: 'unsent',
    reason: 'the coordinator has no room for the frame',
  });
  expect(refusedByEmber(0x0bad)).toMatchObject({ reason: expect.stringContaining('0x0bad') });
  expect(unconfirmedByEmber(0x0c02)).toBe('the lock did not acknowledge the frame');
  expect(unconfirmedByEmber(0x0bad)).toContain('0x0bad');
});
