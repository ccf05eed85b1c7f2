/** A stick with Z-Stack 3.x.0, byte by byte: what it answers, keeps and reports. */
import { expect, it } from 'vitest';
import { HOST_TIMEOUT_MS, openStick } from '../herdsman.ts';
import { openRaw } from '../raw-port.ts';

it(
  'answers what it does not know as the manual says',
  async () => {
    const raw = await openRaw(await openStick());
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
    const raw = await openRaw(await openStick());
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
    const gateway = await openStick({ bootMs: 1_000 });
    const raw = await openRaw(gateway);
    await gateway.selfReset();
    raw.say('ef' + 'fe002101');
    raw.say('20');
    await expect.poll(async () => (await gateway.stats()).stick.frames.received).toBe(0);
    await gateway.selfReset();
    await expect.poll(() => raw.messages).toContain('AREQ 1/80 020201020701');
    raw.say('ef' + 'fe002101' + '20');
    await expect.poll(() => raw.messages).toContain('SRSP 1/1 5906');
    expect(await raw.ask(1, 0x10, '00e1f505' + '00000000000000')).toBe('SRSP 1/10 00');
    expect(await raw.ask(1, 0x11)).toMatch(/^SRSP 1\/11 0[01]e1f505/);
  },
  HOST_TIMEOUT_MS,
);

it(
  'starts timers, and gives messages of the device profile as they are',
  async () => {
    const gateway = await openStick();
    const raw = await openRaw(gateway);
    await raw.ask(1, 0x0a, '01' + '0500');
    await expect.poll(() => raw.messages).toContain('AREQ 1/81 01');
    await raw.ask(15, 0x05, '04');
    await expect.poll(() => raw.messages).toContain('AREQ 5/c0 09');
    await expect.poll(() => raw.messages).toContain('AREQ 15/80 000200');
    await raw.ask(5, 0x3e, 'ffff');
    await raw.ask(4, 0x00, '010401' + '0500' + '00' + '00' + '00' + '00');
    await raw.ask(5, 0x05, '0000' + '0000');
    await expect.poll(() => raw.messages.at(-1)).toBe('AREQ 5/85 0000' + '00' + '0000' + '01' + '01');
    expect(raw.messages).toContainEqual(expect.stringMatching(/^AREQ 5\/ff 000000058000..0000000000/));
  },
  HOST_TIMEOUT_MS,
);
