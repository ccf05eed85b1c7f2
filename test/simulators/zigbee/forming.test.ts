/** A stick forms, resumes and is replaced: with zigbee-herdsman as the host, and byte by byte. */
import { expect, it, onTestFinished } from 'vitest';
import { temporaryFolder } from '../../temporary.ts';
import { openSimulatedGateway, type SimulatedGateway } from './gateway.ts';
import { EXTENDED_PAN_ID, HOST_TIMEOUT_MS, openHost, PAN_ID, within } from './herdsman.ts';
import type { GatewayPlan } from './plan.ts';
import { openRaw } from './raw-port.ts';

const LOCK = '00158d0001000001';

async function opened(plan: GatewayPlan = {}): Promise<SimulatedGateway> {
  const gateway = await openSimulatedGateway(plan);
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  return gateway;
}

it(
  'forms a network for a host, and resumes it',
  async () => {
    const gateway = await opened();
    const folder = temporaryFolder();
    const host = openHost({ port: gateway.port, folder });
    expect(await host.start()).toBe('reset');
    const extended = Buffer.from(EXTENDED_PAN_ID).reverse().toString('hex');
    expect((await gateway.stats()).stick).toMatchObject({
      isStarted: true,
      panId: PAN_ID,
      channel: 15,
      extendedPanId: extended,
      frames: { bad: 0, unknown: 0 },
    });
    await host.stop();
    const again = openHost({ port: gateway.port, folder });
    expect(await again.start()).toBe('resumed');
    expect(await again.getNetworkParameters()).toMatchObject({ panID: PAN_ID, channel: 15 });
    await again.stop();
    // A stick that has been without power starts the network that is in its memory.
    await gateway.selfReset();
    expect((await gateway.stats()).stick.isStarted).toBe(false);
    expect(await openHost({ port: gateway.port, folder }).start()).toBe('resumed');
    expect((await gateway.stats()).stick).toMatchObject({ isStarted: true, panId: PAN_ID });
  },
  HOST_TIMEOUT_MS,
);

it(
  'takes the backup of another stick, its locks too',
  async () => {
    const gateway = await opened({ transport: 'pty', locks: [{ ieee: LOCK }] });
    const folder = temporaryFolder();
    const host = openHost({ port: gateway.port, folder });
    await host.start();
    await host.permitJoin(60);
    expect(await gateway.join(LOCK)).toBe('joined');
    await within(() => host.getDeviceByIeeeAddr(`0x${LOCK}`)?.interviewState).toBe('SUCCESSFUL');
    await host.stop();
    await gateway.setGateway({ newStick: { ieee: '00124b0014d9ffff' } });
    expect((await gateway.state(LOCK)).isReachable).toBe(false);
    const again = openHost({ port: gateway.port, folder });
    expect(await again.start()).toBe('restored');
    expect((await gateway.stats()).stick).toMatchObject({ ieee: '00124b0014d9a001', panId: PAN_ID });
    expect((await gateway.state(LOCK)).isReachable).toBe(true);
    await again.getDeviceByIeeeAddr(`0x${LOCK}`)?.getEndpoint(1)?.read('genBasic', ['modelId']);
  },
  HOST_TIMEOUT_MS,
);

it(
  'is ignored by its network when its frame counter is behind, although every frame is acknowledged',
  async () => {
    const gateway = await opened({ transport: 'pty', locks: [{ ieee: LOCK }] });
    const folder = temporaryFolder();
    const host = openHost({ port: gateway.port, folder });
    await host.start();
    await host.permitJoin(60);
    expect(await gateway.join(LOCK)).toBe('joined');
    await within(() => host.getDeviceByIeeeAddr(`0x${LOCK}`)?.interviewState).toBe('SUCCESSFUL');
    await host.stop();
    // More than a host and a stick skip when they restore.
    await gateway.setGateway({ frames: 5_000 });
    await gateway.setGateway({ newStick: { ieee: '00124b0014d9ffff' } });
    const again = openHost({ port: gateway.port, folder });
    expect(await again.start()).toBe('restored');
    const read = (timeout: number) =>
      again
        .getDeviceByIeeeAddr(`0x${LOCK}`)
        ?.getEndpoint(1)
        ?.read('genBasic', ['modelId'], { disableRecovery: true, sendPolicy: 'immediate', timeout });
    await expect(read(300)).rejects.toThrow(/timed out|Timeout/i);
    expect((await gateway.state(LOCK)).isReachable).toBe(true);
    await gateway.setGateway({ frames: 5_000 });
    expect(await read(5_000)).toEqual({ modelId: 'GH-Lock' });
  },
  HOST_TIMEOUT_MS,
);

it(
  'answers what it does not know as the manual says',
  async () => {
    const raw = await openRaw(await opened());
    // MT_RPC_CMD_ERROR: code, and the command that was wrong. 1 subsystem, 2 command, 4 length.
    expect(await raw.ask(6, 0x04)).toBe('SRSP 0/0 012604');
    expect(await raw.ask(1, 0x7f)).toBe('SRSP 0/0 02217f');
    expect(await raw.ask(1, 0x13, '21')).toBe('SRSP 0/0 042113');
    // Not started: AF_DATA_REQUEST and ZDO_NODE_DESC_REQ are refused.
    expect(await raw.ask(4, 0x01, '3412010101010900' + '1e00')).toBe('SRSP 4/1 02');
    expect(await raw.ask(5, 0x02, '34123412')).toBe('SRSP 5/2 c2');
  },
  HOST_TIMEOUT_MS,
);

it(
  'has a memory that keeps what is written',
  async () => {
    const raw = await openRaw(await opened());
    expect(await raw.ask(1, 0x13, '6000')).toBe('SRSP 1/13 0000');
    // 0x09: it was not there, and is now.
    expect(await raw.ask(1, 0x07, '60000100' + '0155')).toBe('SRSP 1/7 09');
    expect(await raw.ask(1, 0x07, '60000100' + '0155')).toBe('SRSP 1/7 00');
    expect(await raw.ask(1, 0x08, '600000')).toBe('SRSP 1/8 000155');
    expect(await raw.ask(1, 0x12, '60000200')).toBe('SRSP 1/12 0c');
    expect(await raw.ask(1, 0x12, '60000100')).toBe('SRSP 1/12 00');
    expect(await raw.ask(1, 0x32, '010100' + '0000')).toBe('SRSP 1/32 0c000000');
  },
  HOST_TIMEOUT_MS,
);

it(
  'reports resets, recovers after noise, and knows the time',
  async () => {
    const gateway = await opened({ bootMs: 1_000 });
    const raw = await openRaw(gateway);
    await gateway.selfReset();
    raw.say('ef' + 'fe002101');
    raw.say('20');
    await within(async () => (await gateway.stats()).stick.frames.received).toBe(0);
    await gateway.selfReset();
    await within(() => raw.messages).toContain('AREQ 1/80 020201020701');
    raw.say('ef' + 'fe002101' + '20');
    await within(() => raw.messages).toContain('SRSP 1/1 5906');
    expect(await raw.ask(1, 0x10, '00e1f505' + '00000000000000')).toBe('SRSP 1/10 00');
    expect(await raw.ask(1, 0x11)).toMatch(/^SRSP 1\/11 0[01]e1f505/);
  },
  HOST_TIMEOUT_MS,
);

it(
  'starts timers, and gives messages of the device profile as they are',
  async () => {
    const gateway = await opened();
    const raw = await openRaw(gateway);
    await raw.ask(1, 0x0a, '01' + '0500');
    await within(() => raw.messages).toContain('AREQ 1/81 01');
    await raw.ask(15, 0x05, '04');
    await within(() => raw.messages).toContain('AREQ 5/c0 09');
    await within(() => raw.messages).toContain('AREQ 15/80 000200');
    await raw.ask(5, 0x3e, 'ffff');
    await raw.ask(4, 0x00, '010401' + '0500' + '00' + '00' + '00' + '00');
    await raw.ask(5, 0x05, '0000' + '0000');
    await within(() => raw.messages.at(-1)).toBe('AREQ 5/85 0000' + '00' + '0000' + '01' + '01');
    expect(raw.messages).toContainEqual(expect.stringMatching(/^AREQ 5\/ff 000000058000..0000000000/));
  },
  HOST_TIMEOUT_MS,
);
