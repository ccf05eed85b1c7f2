import { expect, it } from 'vitest';
import {
  acceptCommand,
  decryptCommand,
  encryptReply,
  type Sealing,
  signReply,
} from '../../../test/simulators/osdp/sealing.ts';
import { readCommand, writeReply } from '../../../test/simulators/osdp/wire.ts';
import { type Frame, parseFrame } from './frame.ts';
import {
  clientCryptogram,
  DEFAULT_KEY,
  decrypt,
  encrypt,
  initialReplyMac,
  openReply,
  same,
  sealCommand,
  serverCryptogram,
  sessionKeys,
} from './secure-channel.ts';

const hex = (text: string) => Uint8Array.from(Buffer.from(text.replaceAll(/[\s-]/g, ''), 'hex'));
const shown = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex').toUpperCase();

/** SIA OSDP 2.2, annex E, as libosdp quotes it (test-sc-sia-vectors.c). */
const PANEL = hex('B0B1B2B3B4B5B6B7');
const DEVICE = hex('A0A1A2A3A4A5A6A7');

it('derives keys, cryptograms and R-MAC-I as annex E does', () => {
  const keys = sessionKeys(DEFAULT_KEY, PANEL);
  expect(shown(DEFAULT_KEY)).toBe('303132333435363738393A3B3C3D3E3F');
  expect(shown(keys.mac1)).toBe('5E86C676603BDEE2D8BEAFE178637332');
  expect(shown(keys.mac2)).toBe('6FDA86E857777E81132035758239172E');
  expect(shown(keys.encryption)).toBe('BF8DC2A8329ACB8C67C6D0CD9A451682');
  const cryptogram = serverCryptogram(keys, PANEL, DEVICE);
  expect(shown(cryptogram)).toBe('26D3356E07762D262801FC8E6665A891');
  expect(shown(clientCryptogram(keys, PANEL, DEVICE))).toBe('FDE5D2F428EC16312471EA3C02BD7796');
  expect(shown(initialReplyMac(keys, cryptogram))).toBe('B2A30057EB98BA2229EC1F875662B524');
});

const NOTHING = new Uint8Array(16);
const ZERO_KEYS = { encryption: NOTHING, mac1: NOTHING, mac2: NOTHING };

/** As OSDP.Net seals them, with session keys and R-MAC of zeros (CommandOutgoingMessageTest.cs). */
it.each([
  [0x60, '', 'FF-53-00-0E-00-0E-02-15-60-4B-32-76-77-73-B6'],
  [0x66, '', 'FF-53-00-0E-00-0E-02-15-66-62-DE-05-16-12-4B'],
  [
    0x61,
    '00',
    'FF-53-00-1E-00-0E-02-17-61-D1-4E-B7-AD-98-2C-C5-F9-AA-25-31-8A-7E-AE-D6-26-9A-E9-95-73-19-83',
  ],
  [
    0x68,
    '00 03 64 00 01 06 78 00',
    'FF-53-00-1E-00-0E-02-17-68-F7-EF-A0-D4-76-4A-4E-29-26-75-96-F2-16-D8-A9-E8-C5-88-76-08-B9-08',
  ],
  [
    0x75,
    '01 10 00 01 02 03 04 05 06 07 00 01 02 03 04 05 06 07',
    'FF-53-00-2E-00-0E-02-17-75-F0-DD-EC-9A-0E-D8-CE-4C-80-BA-F5-D5-5C-18-43-6F-91-89-FD-66-C9-F2-23-DC-04-14-86-D8-33-57-DF-98-6C-1D-4B-C2-B2-F2',
  ],
])('seals command %i', (code, data, wire) => {
  const command = { address: 0, sequence: 2, check: 'crc', code, data: hex(data) } as const;
  const { bytes } = sealCommand({ keys: ZERO_KEYS, replyMac: NOTHING }, command);
  expect(shown(bytes)).toBe(shown(hex(wire)));
});

/** Both ends after the handshake of annex E, each with its own code. */
function established() {
  const keys = sessionKeys(DEFAULT_KEY, PANEL);
  const replyMac = initialReplyMac(keys, serverCryptogram(keys, PANEL, DEVICE));
  const sealing: Sealing = {
    encryptionKey: Buffer.from(keys.encryption),
    firstKey: Buffer.from(keys.mac1),
    lastKey: Buffer.from(keys.mac2),
    commandMac: Buffer.from(replyMac),
    replyMac: Buffer.from(replyMac),
  };
  return { channel: { keys, replyMac }, sealing };
}

function parsed(bytes: Uint8Array): Frame {
  const result = parseFrame(bytes, 1);
  if (result.kind !== 'frame') throw new Error('not a frame');
  return result.frame;
}

it('understands another implementation for a hundred messages of every length', () => {
  const { channel, sealing } = established();
  let { replyMac } = channel;
  for (let length = 0; length < 100; length += 1) {
    const data = Uint8Array.from({ length }, (_, index) => index * length);
    const command = { address: 5, sequence: 1, check: 'crc', code: 0x80, data } as const;
    const { bytes, commandMac } = sealCommand({ keys: channel.keys, replyMac }, command);
    const heard = readCommand(bytes);
    if (!heard || heard === 'damaged') throw new Error('the device cannot read it');
    const clear = length === 0 ? heard.data : decryptCommand(sealing, heard.data);
    expect(clear && shown(clear)).toBe(shown(data));
    expect(acceptCommand(sealing, heard.signed, heard.mac)).toBe(true);

    const body = length === 0 ? Buffer.alloc(0) : encryptReply(sealing, Buffer.from(data));
    const block = { type: length === 0 ? 0x16 : 0x18, data: [] };
    const reply = writeReply(
      { address: 5, sequence: 1, usesCrc: true, block, code: 0x90, data: body },
      (signed) => signReply(sealing, signed),
    );
    const opened = openReply(channel.keys, commandMac, parsed(reply));
    if (opened.kind !== 'open') throw new Error(opened.kind);
    expect(shown(opened.data)).toBe(shown(data));
    expect(opened.isOdd).toBe(false);
    ({ replyMac } = opened);
  }
});

it('counts types of security blocks that are not for it, and believes what the MAC proves', () => {
  const { channel, sealing } = established();
  const command = { address: 0, sequence: 1, check: 'crc', code: 0x60, data: new Uint8Array() } as const;
  const { bytes, commandMac } = sealCommand(channel, command);
  const heard = readCommand(bytes);
  if (!heard || heard === 'damaged') throw new Error('the device cannot read it');
  acceptCommand(sealing, heard.signed, heard.mac);
  const reply = (type: number, data: Buffer) =>
    openReply(
      channel.keys,
      commandMac,
      parsed(
        writeReply(
          { address: 0, sequence: 1, usesCrc: true, block: { type, data: [] }, code: 0x48, data },
          (signed) => signReply({ ...sealing }, signed),
        ),
      ),
    );
  const states = Buffer.from([1, 0]);
  const sealed = encryptReply(sealing, states);
  const open = (data: Buffer, isOdd: boolean) => ({ kind: 'open', data: Uint8Array.from(data), isOdd });
  const plain = (opened: ReturnType<typeof reply>) =>
    opened.kind === 'open'
      ? { kind: 'open', data: Uint8Array.from(opened.data), isOdd: opened.isOdd }
      : opened;
  expect(plain(reply(0x18, sealed))).toEqual(open(states, false));
  expect(plain(reply(0x17, sealed))).toEqual(open(states, true));
  expect(plain(reply(0x16, states))).toEqual(open(states, true));
  expect(plain(reply(0x15, states))).toEqual(open(states, true));
  expect(plain(reply(0x18, Buffer.alloc(0)))).toEqual(open(Buffer.alloc(0), true));
  expect(reply(0x18, states).kind).toBe('garbled');
  expect(reply(0x18, Buffer.alloc(16)).kind).toBe('garbled');
});

it('believes nothing of which a bit is wrong, and no command for a reply', () => {
  const { channel, sealing } = established();
  const command = { address: 0, sequence: 1, check: 'crc', code: 0x60, data: new Uint8Array() } as const;
  const { bytes, commandMac } = sealCommand(channel, command);
  const block = { type: 0x16, data: [] };
  const reply = parsed(
    writeReply(
      { address: 0, sequence: 1, usesCrc: true, block, code: 0x40, data: Buffer.alloc(0) },
      (signed) => signReply({ ...sealing, commandMac: Buffer.from(commandMac) }, signed),
    ),
  );
  expect(openReply(channel.keys, commandMac, reply).kind).toBe('open');
  for (let bit = 0; bit < 8 * reply.authenticated.length; bit += 1) {
    const authenticated = Uint8Array.from(reply.authenticated);
    authenticated[bit >> 3] = (authenticated[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    expect(openReply(channel.keys, commandMac, { ...reply, authenticated }).kind).toBe('false');
  }
  expect(openReply(channel.keys, channel.replyMac, reply).kind).toBe('false');
  expect(openReply(channel.keys, commandMac, { ...reply, mac: reply.mac.subarray(0, 3) }).kind).toBe('false');
  expect(openReply(channel.keys, channel.replyMac, parsed(bytes)).kind).toBe('false');
});

it('takes off the padding that was put on, and nothing else', () => {
  const keys = sessionKeys(DEFAULT_KEY, PANEL);
  for (const data of [
    '',
    '80',
    '8000',
    '00',
    '000000000000000000000000000000',
    '00112233445566778899aabbccddee80',
  ])
    expect(shown(decrypt(keys, NOTHING, encrypt(keys, NOTHING, hex(data))) ?? hex('FF'))).toBe(
      data.toUpperCase(),
    );
  expect(decrypt(keys, NOTHING, hex('00'.repeat(15)))).toBeUndefined();
  expect(decrypt(keys, NOTHING, new Uint8Array())).toBeUndefined();
  expect(same(hex('00'), hex('0000'))).toBe(false);
});
