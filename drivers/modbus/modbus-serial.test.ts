/**
 * What modbus-serial does wrong when it is used plainly, each beside what this driver's codec and bus make of the same
 * bytes on the same pseudo-terminal. Where its half of a test fails, a new version has mended something.
 */
import modbusSerial from 'modbus-serial';
import { expect, it, vi } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { optionsWith } from '../../test/drivers/bus/bus.ts';
import { framed } from '../../test/simulators/bus/modbus/frame.ts';
import { openPty } from '../../test/simulators/bus/pty.ts';
import { type Bus, openBus, openPort } from '../bus/bus.ts';
import type { Exchange } from '../bus/exchange.ts';
import { readIdentification, readRegisters, write } from './messages.ts';

const { default: Client } = modbusSerial;
type Client = InstanceType<typeof Client>;

const TIMEOUT_MS = 150;
const log = { debug() {}, info() {}, warn() {}, error() {} };
const never = new AbortController().signal;

type Peer = (request: Buffer, say: (bytes: Uint8Array) => void) => void;

/** The far end of a wire: gets each request, and is free in what it says and when. */
function openWire(stack: AsyncDisposableStack, peer: Peer) {
  const pty = stack.use(openPty());
  const { master } = pty;
  master.on('data', (bytes: Buffer) => peer(bytes, (reply) => void master.write(reply)));
  return pty;
}

async function plainly<Result>(
  peer: Peer,
  use: (client: Client, hangUp: () => Promise<void>) => Promise<Result>,
  connect: 'connectRTUBuffered' | 'connectRTU' = 'connectRTUBuffered',
) {
  await using stack = new AsyncDisposableStack();
  const pty = openWire(stack, peer);
  const client = new Client();
  await client[connect](pty.path, { baudRate: 19_200, parity: 'even' });
  client.on('error', () => undefined);
  stack.defer(() => new Promise<void>((resolve) => client.close(() => resolve())));
  client.setID(1);
  client.setTimeout(TIMEOUT_MS);
  return await use(client, () => pty.hangUp());
}

async function here<Result>(
  peer: Peer,
  use: (
    ask: <Reply>(exchange: Exchange<Reply>) => Promise<Reply>,
    hangUp: () => Promise<void>,
    bus: Bus,
  ) => Promise<Result>,
  options: Parameters<typeof optionsWith>[0] = {},
  heard: () => void = () => undefined,
) {
  await using stack = new AsyncDisposableStack();
  const pty = openWire(stack, peer);
  const bus = stack.use(
    await openBus(
      {
        options: optionsWith({ port: pty.path, ...options }),
        openPort: (line, { data, lost }, context, signal) => {
          const hears = (bytes: Uint8Array) => {
            data(bytes);
            heard();
          };
          return openPort(line, { data: hears, lost }, context, signal);
        },
        clock: systemClock,
        log,
      },
      never,
    ),
  );
  const ask = <Reply>(exchange: Exchange<Reply>) =>
    bus.exchange(
      exchange,
      { class: 'command', deadline: systemClock.monotonic() + 5_000, attempts: 1 },
      never,
    );
  return await use(ask, () => pty.hangUp(), bus);
}

/** A register holds its own address. */
const value = (request: Buffer) => framed(1, [3, 2, request[2] ?? 0, request[3] ?? 0]);
const register = (address: number) => readRegisters(1, { functionCode: 3, address, quantity: 1 });
const later = (milliseconds: number, act: () => void) => void setTimeout(act, milliseconds);
const ended = (promise: Promise<unknown>) =>
  promise.then(
    () => 'resolved',
    () => 'rejected',
  );
const within = (milliseconds: number, promise: Promise<unknown>) =>
  Promise.race([ended(promise), systemClock.sleep(milliseconds).then(() => 'pending')]);

it('two requests at once', async () => {
  const peer: Peer = (requests, say) => {
    for (let at = 0; at + 8 <= requests.length; at += 8) say(value(requests.subarray(at, at + 8)));
  };
  const plain = await plainly(peer, async (client) =>
    Promise.allSettled([client.readHoldingRegisters(100, 1), client.readHoldingRegisters(200, 1)]),
  );
  expect(plain).not.toMatchObject([{ value: { data: [100] } }, { value: { data: [200] } }]);
  const both = await here(peer, (ask) => Promise.all([ask(register(100)), ask(register(200))]));
  expect(both).toEqual([[100], [200]]);
});

it('a reply that comes after its time', async () => {
  /** The reply of register 100 comes when it was given up: `speak`, or the next request, has it sent. */
  function heldBack() {
    let held: (() => void) | undefined;
    const speak = () => {
      held?.();
      held = undefined;
    };
    const peer: Peer = (request, say) => {
      speak();
      if (request[3] === 100) held = () => say(value(request));
      else say(value(request));
    };
    return { peer, speak };
  }
  const plain = await plainly(heldBack().peer, async (client) => {
    await client.readHoldingRegisters(100, 1).catch(() => undefined);
    return (await client.readHoldingRegisters(200, 1)).data;
  });
  expect(plain).toEqual([100]);
  const forHere = heldBack();
  let heard = 0;
  const ours = await here(
    forHere.peer,
    async (ask) => {
      await expect(ask(register(100))).rejects.toMatchObject({ code: 'NO_REPLY' });
      forHere.speak();
      await vi.waitFor(() => expect(heard).toBe(1), { timeout: 20_000 });
      return await ask(register(200));
    },
    { turnaroundMaxMs: 250 },
    () => {
      heard += 1;
    },
  );
  expect(ours).toEqual([200]);
});

it('a truncated reply before the next one', async () => {
  const truncated = (): Peer => {
    let count = 0;
    return (request, say) => {
      count += 1;
      say(count === 1 ? value(request).subarray(0, 5) : value(request));
    };
  };
  const plain = await plainly(truncated(), async (client) => {
    await client.readHoldingRegisters(100, 1).catch(() => undefined);
    return await client.readHoldingRegisters(200, 1).catch((error: Error) => error.message);
  });
  expect(plain).toMatch(/CRC error/);
  const ours = await here(truncated(), async (ask) => {
    await expect(ask(register(100))).rejects.toMatchObject({ code: 'BAD_REPLY' });
    return await ask(register(200));
  });
  expect(ours).toEqual([200]);
});

it('an answer whose length its port cannot know: identification with an empty object, as functions 20, 22 and 23', async () => {
  const objects = [0, 2, 0x56, 0x31, 1, 0, 2, 1, 0x31];
  const peer: Peer = (request, say) =>
    say(framed(1, request[1] === 22 ? request.subarray(1, -2) : [43, 14, 1, 1, 0, 0, 3, ...objects]));
  const plain = await plainly(peer, (client) =>
    Promise.allSettled([client.readDeviceIdentification(1, 0)]).then(async ([first]) => [
      first.status,
      await ended(client.maskWriteRegister(1, 0, 0)),
    ]),
  );
  expect(plain).toEqual(['rejected', 'rejected']);
  const { objects: reported } = await here(peer, (ask) => ask(readIdentification(1, 0)));
  expect([...reported]).toEqual([
    [0, 'V1'],
    [1, ''],
    [2, '1'],
  ]);
});

it('a hang-up with a request on the wire', async () => {
  const silent: Peer = () => undefined;
  const plain = await plainly(silent, async (client, hangUp) => {
    client.setTimeout(null as unknown as number);
    const request = client.readHoldingRegisters(100, 1);
    request.catch(() => undefined);
    later(20, () => void hangUp());
    return await within(500, request);
  });
  expect(plain).toBe('pending');
  const ours = await here(
    silent,
    (ask, hangUp) => {
      const request = ask(register(100));
      later(20, () => void hangUp());
      return within(500, request);
    },
    { turnaroundMaxMs: 5_000 },
  );
  expect(ours).toBe('rejected');
});

it('a hang-up with requests in the queue', async () => {
  const silent: Peer = () => undefined;
  interface Worker {
    send(request: { unit: number; fc: number; address: number; quantity: number }): Promise<unknown>;
  }
  const request = { unit: 1, fc: 3, address: 100, quantity: 1 };
  const plain = await plainly(silent, async (client, hangUp) => {
    const worker = client as Client & Worker;
    const queued = [1, 2, 3].map(() => ended(worker.send(request)));
    later(20, () => void hangUp());
    return await Promise.all(
      queued.map((one) => Promise.race([one, systemClock.sleep(1_000).then(() => 'pending')])),
    );
  });
  expect(plain).toContain('pending');
  const ours = await here(
    silent,
    (ask, hangUp) => {
      const queued = [1, 2, 3].map((address) => within(1_000, ask(register(address))));
      later(20, () => void hangUp());
      return Promise.all(queued);
    },
    { turnaroundMaxMs: 5_000 },
  );
  expect(ours).toEqual(['rejected', 'rejected', 'rejected']);
});

it('an adapter with local echo, before a dead device', async () => {
  const echo: Peer = (request, say) => say(request);
  expect(await plainly(echo, (client) => ended(client.writeCoil(3, true)))).toBe('resolved');
  const off = write(1, { functionCode: 5, address: 3, value: true });
  await here(echo, (ask) => expect(ask(off)).rejects.toMatchObject({ code: 'NO_REPLY' }), {
    localEcho: true,
  });
});

it('an adapter with local echo, before a device that answers', async () => {
  const echo: Peer = (request, say) => {
    say(request);
    later(5, () => say(value(request)));
  };
  const plain = await plainly(echo, (client) => ended(client.readHoldingRegisters(100, 1)));
  expect(plain).toBe('rejected');
  expect(await here(echo, (ask) => ask(register(100)), { localEcho: true })).toEqual([100]);
});

it('a broadcast, which no one answers', async () => {
  const silent: Peer = () => undefined;
  const plain = await plainly(silent, (client) => {
    client.setID(0);
    return ended(client.writeCoil(3, false));
  });
  expect(plain).toBe('rejected');
  expect(await here(silent, (ask) => ask(write(0, { functionCode: 5, address: 3, value: false })))).toBe(
    null,
  );
});

/** The second piece is sent when the first one was read: two reads, however busy the machine is. */
function inPieces() {
  const { promise: firstIsRead, resolve: read } = Promise.withResolvers<void>();
  const peer: Peer = (request, say) => {
    say(value(request).subarray(0, 5));
    void firstIsRead.then(() => say(value(request).subarray(5)));
  };
  return { peer, read };
}

it('a reply in two pieces', async () => {
  const forPlain = inPieces();
  const plain = await plainly(
    forPlain.peer,
    (client) => {
      const { _port } = client as unknown as { _port: NodeJS.EventEmitter };
      _port.once('data', forPlain.read);
      return ended(client.readHoldingRegisters(100, 1));
    },
    'connectRTU',
  );
  expect(plain).toBe('rejected');
  const forHere = inPieces();
  const options = { turnaroundMaxMs: 5_000 };
  expect(await here(forHere.peer, (ask) => ask(register(100)), options, forHere.read)).toEqual([100]);
});

it('noise that looks like the head of a reply', async () => {
  const noisy: Peer = (request, say) => say(Buffer.concat([Buffer.of(1, 3), value(request)]));
  const plain = await plainly(noisy, (client) => ended(client.readHoldingRegisters(100, 1)));
  expect(plain).toBe('rejected');
  expect(await here(noisy, (ask) => ask(register(100)))).toEqual([100]);
});

it('errors that are none', async () => {
  const silent: Peer = () => undefined;
  const reported = (error: unknown) => error instanceof Error;
  expect(await plainly(silent, (client) => client.readHoldingRegisters(100, 1).catch(reported))).toBe(false);
  expect(await here(silent, (ask) => ask(register(100)).catch(reported))).toBe(true);
});
