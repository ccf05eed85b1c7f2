/** A trace of secure channels that shows what is said in them, and never what opens a door. */
import { expect, it } from 'vitest';
import { tracePairing } from '../../test/drivers/osdp/pairing.ts';
import { KEY, openPanel, POLL } from '../../test/drivers/osdp/protocol/panel.ts';
import { openOsdpDevice } from '../../test/simulators/osdp/device.ts';
import { type Frame, parseFrame, SCS } from './protocol/frame.ts';
import { openDecrypt } from './trace.ts';

function frameOf(bytes: Uint8Array): Frame {
  const parsed = parseFrame(bytes, bytes.indexOf(0x53));
  if (parsed.kind !== 'frame' || parsed.end !== bytes.length) throw new Error('no sound frame');
  return parsed.frame;
}

/** What a trace would show of each exchange of a session. */
function tracedSession() {
  const device = openOsdpDevice({ address: 0, serial: 1, key: KEY, random: () => 0.5 });
  const packets: { sent: boolean; bytes: Uint8Array; shown: ReturnType<ReturnType<typeof openDecrypt>> }[] =
    [];
  const decrypt = openDecrypt(() => panel.session.outstanding);
  const record = (sent: boolean, bytes: Uint8Array) =>
    packets.push({ sent, bytes, shown: decrypt(bytes, sent) });
  const panel = openPanel({}, (request) => {
    record(true, request);
    const reply = device.answer(request, 0);
    if (reply) record(false, reply);
    return reply;
  });
  panel.establish();
  // What the session asks first.
  for (let polls = 0; polls < 6; polls += 1) panel.step(POLL);
  packets.length = 0;
  return { device, panel, packets };
}

it('shows commands and replies in clear, as frames that are sound', () => {
  const { panel, packets } = tracedSession();
  panel.command({ kind: 'OUT', outputs: [{ output: 2, code: 5, time: 30 }] });
  const [sent, heard] = packets;
  if (!sent?.shown || !heard?.shown) throw new Error('nothing was decrypted');
  expect(frameOf(sent.bytes).security).toEqual({ type: SCS.commandEncrypted });
  const command = frameOf(sent.shown.bytes);
  // osdp_OUT of output 2, code 5, 3.0 s (SIA OSDP 2.2, 6.10), under a MAC alone, that of the wire.
  expect([command.code, [...command.data]]).toEqual([0x68, [2, 5, 30, 0]]);
  expect(command.security).toEqual({ type: SCS.commandMac });
  expect(command.mac).toEqual(frameOf(sent.bytes).mac);
  const reply = frameOf(heard.shown.bytes);
  expect([reply.code, reply.data[2], reply.security]).toEqual([0x4a, 1, { type: SCS.replyMac }]);
  expect(sent.shown.masked || heard.shown.masked).toBe(false);
});

it('leaves what is in clear, what is damaged and what is of another session as it is', () => {
  const { panel, packets } = tracedSession();
  panel.step(POLL);
  expect(packets.map(({ shown }) => shown)).toEqual([undefined, undefined]);
  panel.command({ kind: 'ISTAT' });
  const bytes = Uint8Array.from(packets.at(-1)?.bytes ?? []);
  expect(packets.at(-1)?.shown).toBeDefined();
  // Its exchange is over, and its MAC belongs to no other.
  const late = openDecrypt(() => panel.session.outstanding);
  panel.wire = () => undefined;
  panel.step(POLL);
  expect(late(bytes, false)).toBeUndefined();
  for (let at = 0; at < bytes.length; at += 1) {
    const damaged = Uint8Array.from(bytes);
    damaged[at] = (damaged[at] ?? 0) ^ 0x40;
    expect(late(damaged, false)).toBeUndefined();
  }
});

it('shows of a card the number of bits, and of a keypad the number of keys', () => {
  const { device, panel, packets } = tracedSession();
  device.peripheral.presentCard({ bits: 26, data: Buffer.from('ffc12340', 'hex') });
  device.peripheral.pressKeys(0, '1234#');
  for (let polls = 0; polls < 4; polls += 1) panel.step(POLL);
  const shown = packets.filter((one) => one.shown);
  expect(shown.map((one) => one.shown?.masked)).toEqual([true, true]);
  const [card, keypad] = shown.map((one) => frameOf(one.shown?.bytes ?? new Uint8Array()));
  expect([card?.code, [...(card?.data ?? [])]]).toEqual([0x50, [0, 1, 26, 0, 0, 0, 0, 0]]);
  expect([keypad?.code, [...(keypad?.data ?? [])]]).toEqual([0x53, [0, 5, 0, 0, 0, 0, 0]]);
});

it('shows nothing of a key that a device is given, nor of the exchange in which it is', async () => {
  const { key, packets } = await tracePairing({ decrypt: true });
  const clear = packets.filter(({ decrypted }) => decrypted).map(({ bytes }) => frameOf(bytes).code);
  // PDID and ISTATR, said in the session.
  expect(clear).toEqual(expect.arrayContaining([0x45, 0x49]));
  expect(clear).not.toContain(0x75);
  const all = packets.map(({ bytes }) => Buffer.from(bytes).toString('hex')).join(' ');
  expect(all).not.toContain(Buffer.from(key).toString('hex'));
  const [keyset] = packets.filter(({ concealed }) => concealed);
  expect(keyset).toMatchObject({ sent: true, decrypted: false });
}, 60_000);
