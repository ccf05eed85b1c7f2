/** What hosts other than zigbee-herdsman expect of a CC2652 with Z-Stack 3.x.0, byte by byte. */
import { expect, it } from 'vitest';
import { HOST_TIMEOUT_MS, openStick } from '../herdsman.ts';
import type { GatewayPlan } from '../plan.ts';
import { openRaw } from '../raw-port.ts';

const LOCK = '00158d0001000001';
const ROUTER = '00158d00010000aa';
/** As it is sent. */
const LOCK_BYTES = '01000001008d1500';
const SUCCESS = '00';
const NWK = 0x1234;

/** With a network of its own, and endpoint 1. */
async function openFormed(plan: GatewayPlan = {}) {
  const gateway = await openStick(plan);
  const raw = await openRaw(gateway);
  await raw.ask(15, 0x05, '04');
  await expect.poll(() => raw.messages).toContain('AREQ 15/80 000200');
  await raw.ask(4, 0x00, `01${'0401'}${'0500'}00${'00'}${'00'}${'00'}`);
  return { gateway, raw };
}

it(
  'answers as the firmware that hosts know',
  async () => {
    const raw = await openRaw(await openStick());
    // MT_CAP_SYS, _AF, _ZDO, _UTIL, _GP, _APP_CNF.
    expect(await raw.ask(1, 0x01)).toBe('SRSP 1/1 5906');
    // No child: associated_devices_t with its padding, which shows hosts how structures are aligned.
    expect(await raw.ask(7, 0x49, '00')).toBe(`SRSP 7/49 feff${'ff'.repeat(34)}`);
    expect(await raw.ask(7, 0x4a, `${LOCK_BYTES}0000`)).toBe(`SRSP 7/4a feff${'ff'.repeat(34)}`);
    // On no network; concentrator on, each 120 s; no ageing of children; 3 s for a broadcast. A free row is 0xFF.
    for (const [item, value] of [
      ['5500', '00'],
      ['3200', '01'],
      ['3300', '78'],
      ['3e00', '00'],
      ['3000', '1e'],
    ])
      expect(await raw.ask(1, 0x08, `${item}00`), item).toBe(`SRSP 1/8 0001${value}`);
    expect(await raw.ask(1, 0x33, '010100' + '0000' + '0000' + '0c')).toBe(
      `SRSP 1/33 000c${'ff'.repeat(12)}`,
    );
  },
  HOST_TIMEOUT_MS,
);

it(
  'has the address of its chip again when the one in its memory was deleted',
  async () => {
    const gateway = await openStick({ ieee: '00124b0014d9a001' });
    const raw = await openRaw(gateway);
    await raw.ask(1, 0x03, '0807060504030201');
    await gateway.selfReset();
    await expect.poll(() => raw.messages.some((one) => one.startsWith('AREQ 1/80'))).toBe(true);
    expect(await raw.ask(1, 0x04)).toBe('SRSP 1/4 0807060504030201');
    await raw.ask(1, 0x12, '01000800');
    await gateway.selfReset();
    await expect.poll(() => raw.messages.some((one) => one.startsWith('AREQ 1/80'))).toBe(true);
    expect(await raw.ask(1, 0x08, '010000')).toBe('SRSP 1/8 0008' + '01a0d914004b1200');
    expect(await raw.ask(1, 0x04)).toBe('SRSP 1/4 01a0d914004b1200');
  },
  HOST_TIMEOUT_MS,
);

it(
  'restores the network that it has, whatever it is asked to commission',
  async () => {
    const { gateway, raw } = await openFormed();
    const before = (await gateway.stats()).stick.extendedPanId;
    await gateway.selfReset();
    await raw.ask(15, 0x05, '04');
    // NETWORK_RESTORED, with formation left; then formation fails.
    await expect.poll(() => raw.messages).toContain('AREQ 15/80 0d0004');
    expect(raw.messages).toContain('AREQ 5/c0 09');
    expect(raw.messages).toContain('AREQ 15/80 080200');
    expect((await gateway.stats()).stick).toMatchObject({ isStarted: true, extendedPanId: before });
    expect(await raw.ask(1, 0x08, '550000')).toBe('SRSP 1/8 000101');
  },
  HOST_TIMEOUT_MS,
);

it(
  'answers its own broadcasts and what it sends to itself',
  async () => {
    const { raw } = await openFormed();
    // MGMT_PERMIT_JOIN to all routers.
    expect(await raw.ask(5, 0x36, '0f' + 'fcff' + '3c' + '01')).toBe('SRSP 5/36 00');
    await expect.poll(() => raw.messages).toContain(`AREQ 5/b6 0000${SUCCESS}`);
    await raw.ask(5, 0x3e, '0580');
    // AF_DATA_REQUEST_EXT of Active_EP_req to endpoint 0 of 0x0000: no confirm, and the answer twice.
    const address = '02' + '0000000000000000' + '00' + '0000';
    const request = `${address}00050007001e0300070000`;
    expect(await raw.ask(4, 0x02, request)).toBe('SRSP 4/2 00');
    await expect.poll(() => raw.messages).toContain(`AREQ 5/85 0000${SUCCESS}00000101`);
    expect(raw.messages).toContain(`AREQ 5/ff 000000058000070000${SUCCESS}00000101`);
    expect(raw.messages.filter((one) => one.startsWith('AREQ 4/80'))).toEqual([]);
  },
  HOST_TIMEOUT_MS,
);

it(
  'reports messages with the last hop and what is left of the radius, and of children with all that it keeps of them',
  async () => {
    const { gateway, raw } = await openFormed({
      locks: [{ ieee: LOCK, nwk: NWK, lqi: 200, checkInSeconds: 3_600 }],
    });
    await raw.ask(5, 0x36, '02' + '0000' + 'fe' + '01');
    expect(await gateway.join(LOCK)).toBe('joined');
    // BIND_REQ of poll control to endpoint 1 of the coordinator.
    const target = '03' + '01a0d914004b1200' + '01';
    await raw.ask(5, 0x21, `3412${LOCK_BYTES}012000${target}`);
    await expect.poll(() => raw.messages).toContain(`AREQ 5/a1 3412${SUCCESS}`);
    await gateway.set(LOCK, { checkIn: true });
    const message = () => raw.messages.find((one) => one.startsWith('AREQ 4/81'));
    await expect.poll(message).toMatch(/^AREQ 4\/81 0000200034120101[0-9a-f]*0309[0-9a-f]{4}34121d$/);
    const child = await raw.ask(7, 0x4a, `${LOCK_BYTES}0000`);
    expect(child).toHaveLength('SRSP 7/4a '.length + 2 * 36);
    // Address, row of the address manager, CHILD_RFD_RX_IDLE.
    expect(child).toMatch(/^SRSP 7\/4a 3412000002/);
    expect(await raw.ask(7, 0x49, '00')).toBe(child.replace('7/4a', '7/49'));
  },
  HOST_TIMEOUT_MS,
);

it(
  'takes a lock for its child that has moved to a router, until it hears of it',
  async () => {
    const { gateway, raw } = await openFormed({
      locks: [{ ieee: LOCK, nwk: NWK }],
      routers: [{ ieee: ROUTER, nwk: 0x2222 }],
    });
    await raw.ask(5, 0x36, '02' + '0000' + 'fe' + '01');
    expect(await gateway.join(ROUTER)).toBe('joined');
    expect(await gateway.join(LOCK)).toBe('joined');
    // AF_DATA_REQUEST of Read Attributes to endpoint 1, and its confirm.
    const confirmed = async (): Promise<string> => {
      await raw.ask(4, 0x01, `341201010000${'07'}00${'1e'}05${'1007000500'}`);
      const confirm = () => raw.messages.find((one) => one.startsWith('AREQ 4/80'));
      await expect.poll(confirm).toBeTruthy();
      return confirm() ?? '';
    };
    expect(await confirmed()).toBe('AREQ 4/80 000107');
    await gateway.set(LOCK, { missedParent: ROUTER });
    // MAC_NO_ACK.
    expect(await confirmed()).toBe('AREQ 4/80 e90107');
    // UTIL_ASSOC_REMOVE.
    expect(await raw.ask(7, 0x63, LOCK_BYTES)).toBe('SRSP 7/63 00');
    expect(await confirmed()).toBe('AREQ 4/80 000107');
    await gateway.set(LOCK, { parent: null });
    await gateway.set(LOCK, { parent: ROUTER });
    await expect.poll(async () => (await gateway.stats()).stick.children).toEqual([]);
    expect(await confirmed()).toBe('AREQ 4/80 000107');
    // A child that the coordinator has forgotten cannot be found by a route: NWK_NO_ROUTE.
    await gateway.set(LOCK, { parent: null });
    await raw.ask(7, 0x63, LOCK_BYTES);
    expect(await confirmed()).toBe('AREQ 4/80 cd0107');
    // UTIL_ASSOC_ADD.
    await raw.ask(7, 0x64, `${LOCK_BYTES}341201`);
    expect(await confirmed()).toBe('AREQ 4/80 000107');
  },
  HOST_TIMEOUT_MS,
);

it(
  'sends no more than fits into a frame, and takes the time of its hardware',
  async () => {
    const { raw } = await openFormed({ pace: 1, bootMs: 0 });
    const dataRequest = (length: number) => `34120101010107001e${length.toString(16)}${'00'.repeat(length)}`;
    expect(await raw.ask(4, 0x01, dataRequest(83))).toBe('SRSP 4/1 02');
    expect(await raw.ask(4, 0x01, dataRequest(82))).toBe('SRSP 4/1 00');
    // Of 8 bytes there and 123 back, 87 µs each; a timer may fire a millisecond early.
    const began = performance.now();
    await raw.ask(1, 0x08, '210000');
    expect(performance.now() - began).toBeGreaterThanOrEqual((8 + 123) * 0.087 - 1);
    const booting = await openStick({ pace: 1 });
    const { messages } = await openRaw(booting);
    const reset = performance.now();
    await booting.selfReset();
    await expect.poll(() => messages.some((one) => one.startsWith('AREQ 1/80'))).toBe(true);
    expect(performance.now() - reset).toBeGreaterThanOrEqual(998);
  },
  HOST_TIMEOUT_MS,
);
