/** Modbus TCP on a manual clock: devices behind a gateway, and what gateways do to replies. */

import { describe, expect, it } from 'vitest';
import { messagesOf } from '../../test/drivers/bus/warnings.ts';
import {
  io,
  openTestLink,
  profileNamed,
  station,
  type TestDevice,
  type TestLink,
} from '../../test/drivers/modbus/link.ts';
import { framed } from '../../test/simulators/bus/modbus/frame.ts';
import { type Adu, adu, aduReader, throughGateway } from '../../test/simulators/bus/modbus/tcp-gateway.ts';

const PORT = 'modbus-tcp://10.0.0.7:502';
const WRITE = 16;

/** What the gateway sends back; absent: what a sound one does. */
type Behave = (request: Adu, answer: () => Uint8Array) => Uint8Array | null;

async function openGateway(stations: Map<number, TestDevice>, options = {}) {
  const gateway: { behave: Behave | undefined } = { behave: undefined };
  const read = aduReader();
  const link = await openTestLink({
    stations,
    profiles: {
      'gatehouse-io': profileNamed('gatehouse-io'),
      'waveshare-relay-8': profileNamed('waveshare-relay-8'),
    },
    options: { port: PORT, devices: [...stations.keys()].map((unitId) => ({ unitId })), ...options },
    onWire(bytes, devices) {
      const [request] = read(bytes);
      if (!request) return null;
      const answer = () => throughGateway(request, devices);
      return gateway.behave ? gateway.behave(request, answer) : answer();
    },
  });
  await link.clock.advance(2_000);
  return { link, gateway };
}

/** Application protocol 1.1b3, 7: GATEWAY TARGET DEVICE FAILED TO RESPOND. */
const gatewayException = ({ pdu, ...rest }: Adu): Adu => ({
  ...rest,
  pdu: Buffer.from([(pdu[0] ?? 0) | 0x80, 0x0b]),
});

const pulse = (more: object = {}) => ({ hwId: 'GIO-0001', relay: 2, milliseconds: 3_000, ...more });
const writes = (link: TestLink) => link.wire.sent.filter(({ bytes }) => bytes[7] === WRITE).length;

describe('devices behind a Modbus TCP gateway', () => {
  it('are read and fired, several behind one connection, each request with a number of its own', async () => {
    const [one, other] = [io(), io('GIO-0002')];
    const { link } = await openGateway(
      new Map([
        [17, one],
        [255, other],
      ]),
    );
    await using _ = link;
    expect(link.report('GIO-0001')).toMatchObject({ connected: true, address: 17 });
    expect(link.report('GIO-0002')).toMatchObject({ connected: true, address: 255 });
    expect(await link.execute('pulse', pulse())).toMatchObject({ relay: 2, timedBy: 'device' });
    expect([one, other].map(({ device }) => device.pins.history.length)).toEqual([1, 0]);
    const numbers = link.wire.sent.map(({ bytes }) => Buffer.from(bytes).readUInt16BE(0));
    expect(new Set(numbers).size).toBe(numbers.length);
    expect(link.bus()).toMatchObject({ warnings: [], strayBytes: 0 });
  });

  it('have one request in flight, also while the gateway waits for a device that is absent', async () => {
    const { link, gateway } = await openGateway(new Map([[17, io()]]), {
      devices: [{ unitId: 17 }, { unitId: 18 }],
      pollEveryMs: 0,
      turnaroundMaxMs: 1_000,
    });
    await using _ = link;
    let open = 0;
    let most = 0;
    gateway.behave = (request, answer) => {
      open += 1;
      most = Math.max(most, open);
      void link.clock.sleep(request.unit === 18 ? 800 : 5).then(() => {
        open -= 1;
        link.wire.deliver(answer());
      });
      return null;
    };
    await link.clock.advance(10_000);
    for (let time = 0; time < 5; time += 1)
      expect(await link.execute('pulse', pulse({ milliseconds: 200 }), 5_000)).toMatchObject({ relay: 2 });
    expect(most).toBe(1);
    expect(link.history('GIO-0001').every(({ connected }) => connected)).toBe(true);
  });

  it('that do not answer are named by the exception of the gateway', async () => {
    const { link } = await openGateway(new Map([[17, io()]]), { devices: [{ unitId: 17 }, { unitId: 18 }] });
    await using _ = link;
    expect(messagesOf(link.bus())).toEqual([
      expect.stringMatching(/address 18 .*exception 0B .*heard nothing/),
    ]);
    expect(link.report('GIO-0001')).toMatchObject({ connected: true });
  });
});

describe('a reply', () => {
  it('that is late answers no later request, and counts as late', async () => {
    const { link, gateway } = await openGateway(new Map([[17, io()]]), { turnaroundMaxMs: 100 });
    await using _ = link;
    // Each reply comes with the next request: on a serial line each would be taken for its answer.
    let held: Uint8Array | undefined;
    let taken = 0;
    gateway.behave = (_request, answer) => {
      const late = held;
      held = answer();
      if (late) taken += 1;
      return late ?? null;
    };
    await link.clock.advance(3_000);
    expect(taken).toBeGreaterThan(3);
    expect(link.report('GIO-0001')).toMatchObject({ connected: false });
    const [device] = link.bus()?.devices ?? [];
    expect(device?.counters.late).toBeGreaterThan(3);
    expect(device?.counters.collisions).toBe(0);
    expect(messagesOf(link.bus())).toEqual([expect.stringMatching(/came too late.*raise it/)]);
  });

  it('to a pulse that is late confirms no later one', async () => {
    const board = station({ kind: 'waveshare-relay-8' });
    const { link, gateway } = await openGateway(new Map([[1, board]]), {
      devices: [{ unitId: 1, profile: 'waveshare-relay-8' }],
      turnaroundMaxMs: 100,
    });
    await using _ = link;
    const flash = { hwId: 'bus-1-1', relay: 5, milliseconds: 1_000 };
    let held: Uint8Array | undefined;
    gateway.behave = (request, answer) => {
      if (request.pdu[0] !== 5) return answer();
      held ??= answer();
      return null;
    };
    // The relay shows it.
    expect(await link.execute('pulse', flash)).toMatchObject({ relay: 5 });
    await link.clock.advance(5_000);
    gateway.behave = (request, answer) => (request.pdu[0] === 5 ? (held ?? null) : answer());
    await expect(link.execute('pulse', flash)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    expect(board.device.pins.history.map(({ on }) => on)).toEqual([true, false]);
  });

  it.each([
    [
      'of another transaction',
      ({ transaction, ...rest }: Adu) => adu({ transaction: transaction + 7, ...rest }),
    ],
    ['of another unit', ({ unit, ...rest }: Adu) => adu({ unit: unit + 1, ...rest })],
    ['of unit 0', (reply: Adu) => adu({ ...reply, unit: 0 })],
    ['of unit 255', (reply: Adu) => adu({ ...reply, unit: 255 })],
    [
      'to another question',
      ({ pdu, ...rest }: Adu) => adu({ pdu: Buffer.from([pdu[0] === 3 ? 4 : 3, 2, 0, 0]), ...rest }),
    ],
  ])('%s is none, and the order is not sent again by itself', async (_, changed) => {
    const { link, gateway } = await openGateway(new Map([[17, io()]]), {});
    await using _link = link;
    const read = aduReader();
    gateway.behave = (request, answer) => {
      const [reply] = read(answer());
      return request.pdu[0] === WRITE && reply ? changed(reply) : answer();
    };
    // Its id shows that the device has taken it.
    expect(await link.execute('pulse', pulse())).toMatchObject({ relay: 2 });
    expect(writes(link)).toBe(1);
  });

  it('that comes twice is a warning', async () => {
    const { link, gateway } = await openGateway(new Map([[17, io()]]));
    await using _ = link;
    gateway.behave = (_request, answer) => {
      const reply = answer();
      return Buffer.concat([reply, reply]);
    };
    await link.clock.advance(3_000);
    expect(link.report('GIO-0001')).toMatchObject({ connected: true });
    expect(messagesOf(link.bus())).toEqual([expect.stringMatching(/answer no request.*repeats replies/)]);
  });

  it('in pieces, and two in one, are read', async () => {
    const { link, gateway } = await openGateway(
      new Map([
        [17, io()],
        [18, io('GIO-0002')],
      ]),
    );
    await using _ = link;
    gateway.behave = (_request, answer) => {
      const reply = answer();
      void link.clock.sleep(20).then(() => link.wire.deliver(reply.subarray(5)));
      return reply.subarray(0, 5);
    };
    await link.clock.advance(3_000);
    for (const hwId of ['GIO-0001', 'GIO-0002']) {
      expect(link.report(hwId)).toMatchObject({ connected: true });
      expect(link.history(hwId).every(({ connected }) => connected)).toBe(true);
    }
  });

  it.each([
    ['to no request of ours', (request: Adu) => ({ ...request, transaction: request.transaction + 7 })],
    ['an exception of the gateway that is late', gatewayException],
  ])('%s shows that the gateway is there: the connection is kept', async (_, changed) => {
    const devices = new Map([
      [17, io()],
      [18, io('GIO-0002')],
    ]);
    const { link, gateway } = await openGateway(devices, { turnaroundMaxMs: 100, pollEveryMs: 0 });
    await using _link = link;
    gateway.behave = (request) => {
      // Others were asked since.
      void link.clock.sleep(300).then(() => link.wire.deliver(adu(changed(request))));
      return null;
    };
    await link.clock.advance(30_000);
    expect(link.report('GIO-0001')).toMatchObject({ connected: false });
    gateway.behave = undefined;
    await link.clock.advance(40_000);
    expect(link.report('GIO-0001')).toMatchObject({ connected: true });
  });

  it('of a device for which the gateway waits a second is awaited', async () => {
    const { link, gateway } = await openGateway(new Map([[17, io()]]));
    await using _ = link;
    gateway.behave = (_request, answer) => {
      void link.clock.sleep(1_000).then(() => link.wire.deliver(answer()));
      return null;
    };
    await link.clock.advance(10_000);
    expect(link.report('GIO-0001')).toMatchObject({ connected: true });
    expect(link.bus()?.devices[0]?.counters).toMatchObject({ timeouts: 0, late: 0 });
  });

  it('that is none of Modbus TCP ends the connection with words', async () => {
    const { link, gateway } = await openGateway(new Map([[17, io()]]));
    await using _ = link;
    gateway.behave = ({ unit }) => framed(unit, [3, 2, 0, 7]);
    await link.clock.advance(1_000);
    expect(await link.ended).toMatchObject({
      code: 'LINK_LOST',
      message: expect.stringMatching(/no Modbus TCP .* named tcp:\/\/ and not modbus-tcp:\/\//),
    });
  });
});

it('an order after which nothing is heard ends the connection, so that it is not delivered later', async () => {
  const { link, gateway } = await openGateway(new Map([[17, io()]]));
  await using _ = link;
  let isCut = false;
  gateway.behave = (request, answer) => {
    isCut ||= request.pdu[0] === WRITE;
    return isCut ? null : answer();
  };
  await expect(link.execute('pulse', pulse(), 5_000)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
  await link.clock.advance(5_000);
  expect(await link.ended).toMatchObject({
    message: expect.stringMatching(/so that the order is not delivered later/),
  });
  expect(writes(link)).toBeLessThanOrEqual(2);
});
