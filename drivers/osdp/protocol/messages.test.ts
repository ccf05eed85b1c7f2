import { describe, expect, it } from 'vitest';
import { openPanel } from '../../../test/drivers/osdp/protocol/panel.ts';
import { openOsdpDevice } from '../../../test/simulators/osdp/device.ts';
import type { Rs485Settings } from '../../contract/settings.ts';
import { type Command, decodeReply, encodeCommand, timerTenths } from './messages.ts';
import {
  decodeVendorReply,
  encodeVendorRequest,
  type VendorReply,
  type VendorRequest,
} from './vendor-messages.ts';

const hex = (text: string) => Uint8Array.from(Buffer.from(text.replaceAll(/[\s-]/g, ''), 'hex'));
const RED = { on: 1, off: 2, onColour: 1, offColour: 0 } as const;

describe('commands', () => {
  /** As OSDP.Net and libosdp build them; FILETRANSFER and COMSET also in CommandOutgoingMessageTest.cs. */
  const commands: [Command, number, string][] = [
    [{ kind: 'POLL' }, 0x60, ''],
    [{ kind: 'ID' }, 0x61, '00'],
    [{ kind: 'CAP' }, 0x62, '00'],
    [{ kind: 'LSTAT' }, 0x64, ''],
    [{ kind: 'ISTAT' }, 0x65, ''],
    [{ kind: 'OSTAT' }, 0x66, ''],
    [{ kind: 'RSTAT' }, 0x67, ''],
    [
      {
        kind: 'OUT',
        outputs: [
          { output: 0, code: 3, time: 100 },
          { output: 1, code: 6, time: 120 },
        ],
      },
      0x68,
      '00 03 64 00 01 06 78 00',
    ],
    [
      { kind: 'LED', reader: 0, led: 1, temporary: { ...RED, time: 300 }, permanent: null },
      0x69,
      '00 01 02 01 02 01 00 2C 01 00 00 00 00 00',
    ],
    [
      { kind: 'LED', reader: 2, led: 0, temporary: null, permanent: RED },
      0x69,
      '02 00 00 00 00 00 00 00 00 01 01 02 01 00',
    ],
    [{ kind: 'BUZ', reader: 0, tone: 2, on: 2, off: 2, count: 1 }, 0x6a, '00 02 02 02 01'],
    [
      { kind: 'TEXT', reader: 0, row: 1, column: 2, seconds: null, text: 'Tür' },
      0x6b,
      '00 01 00 01 02 03 54 3F 72',
    ],
    [{ kind: 'TEXT', reader: 0, row: 1, column: 1, seconds: 5, text: 'Hi' }, 0x6b, '00 03 05 01 01 02 48 69'],
    [{ kind: 'COMSET', address: 1, baudRate: 9_600 }, 0x6e, '01 80 25 00 00'],
    [{ kind: 'ACURXSIZE', bytes: 1_440 }, 0x7b, 'A0 05'],
    [{ kind: 'KEEPACTIVE', milliseconds: 7_000 }, 0xa7, '58 1B'],
    [{ kind: 'ABORT' }, 0xa2, ''],
    [
      { kind: 'FILETRANSFER', type: 3, total: 1_000, offset: 10, data: hex('01 02 03 04 05') },
      0x7c,
      '03 E8 03 00 00 0A 00 00 00 05 00 01 02 03 04 05',
    ],
    [{ kind: 'MFG', vendorCode: 0x01_02_03, data: hex('0A 0B 0C') }, 0x80, '01 02 03 0A 0B 0C'],
    [
      { kind: 'KEYSET', key: hex('00 01 02 03 04 05 06 07 00 01 02 03 04 05 06 07') },
      0x75,
      '01 10 00 01 02 03 04 05 06 07 00 01 02 03 04 05 06 07',
    ],
    [{ kind: 'CHLNG', nonce: hex('B0 B1 B2 B3 B4 B5 B6 B7') }, 0x76, 'B0 B1 B2 B3 B4 B5 B6 B7'],
  ];
  it.each(commands)('%o', (command, code, data) => {
    expect(encodeCommand(command)).toEqual({ code, data: hex(data) });
  });

  it('rounds times up, and never to none', () => {
    expect([0, 1, 100, 101, 1_250, 600_000, 9_999_999].map(timerTenths)).toEqual([
      ...[1, 1, 1, 2, 13, 6_000, 65_535],
    ]);
  });

  it('takes what is beyond 31 bits', () => {
    const command = { kind: 'FILETRANSFER', type: 1, total: 0xff_ff_ff_fe, offset: 0x80_00_00_00 } as const;
    expect(encodeCommand({ ...command, data: new Uint8Array() }).data).toEqual(
      hex('01 FE FF FF FF 00 00 00 80 00 00'),
    );
  });
});

describe('replies', () => {
  it.each([
    [0x40, '', { kind: 'ACK' }],
    [0x41, '09', { kind: 'NAK', code: 9 }],
    // A capture: OSDP.Net, MessageSpyParsingTest.cs.
    [
      0x45,
      '00 0E E3 10 10 00 00 74 97 23 06 06',
      {
        kind: 'PDID',
        identity: {
          vendorCode: 0x0e_e3,
          model: 16,
          version: 16,
          serial: 0x97_74_00_00,
          firmware: [35, 6, 6],
        },
      },
    ],
    [
      0x46,
      '01 02 04 09 01 01',
      {
        kind: 'PDCAP',
        capabilities: [
          { code: 1, compliance: 2, count: 4 },
          { code: 9, compliance: 1, count: 1 },
        ],
      },
    ],
    [0x48, '01 00', { kind: 'LSTATR', tamper: true, powerFault: false }],
    [0x49, '00 01 02 04', { kind: 'ISTATR', inputs: [0, 1, 2, 4] }],
    [0x4a, '01 00', { kind: 'OSTATR', outputs: [1, 0] }],
    [0x4b, '02', { kind: 'RSTATR', readers: [2] }],
    [0x50, '00 01 1A 00 00 11 22 80', { kind: 'RAW', reader: 0, format: 1, bitCount: 26 }],
    [0x53, '01 04 31 32 7F 0D', { kind: 'KEYPAD', reader: 1, digits: '12*#' }],
    [0x54, '05 00 C2 01 00', { kind: 'COM', address: 5, baudRate: 115_200 }],
    [0x79, '', { kind: 'BUSY' }],
    [
      0x7a,
      '05 E8 03 FD FF 00 02',
      {
        kind: 'FTSTAT',
        file: {
          interleave: true,
          leaveSecureChannel: false,
          pollResponse: true,
          delayMs: 1_000,
          status: -3,
          messageMax: 512,
        },
      },
    ],
    [0x84, '0A 47 48 03 01', { kind: 'MFGERRR', vendorCode: 0x0a_47_48 }],
    [0x90, '0A 47 48', { kind: 'MFGREP', vendorCode: 0x0a_47_48 }],
    [0x57, '00 01 02', { kind: 'OTHER', code: 0x57 }],
  ])('%i', (code, data, reply) => {
    expect(decodeReply(code, hex(data))).toMatchObject(reply);
  });

  it.each([
    [0x40, '00'],
    [0x41, ''],
    [0x45, '00 0E E3 10 10 00 00 74 97 23 06'],
    [0x45, '00 0E E3 10 10 00 00 74 97 23 06 06 00'],
    [0x48, '01'],
    [0x48, '02 00'],
    [0x48, '00 02'],
    [0x49, ''],
    [0x4a, ''],
    [0x4a, '02'],
    [0x4b, '03'],
    [0x50, '00 01 1A'],
    [0x50, '00 01 1A 00 00 11 22'],
    [0x50, '00 01 1A 00 00 11 22 80 00'],
    [0x50, '00 01 FF FF 00'],
    [0x53, '01'],
    [0x53, '01 02 31'],
    [0x53, '01 00 31'],
    [0x54, '05 00 C2 01'],
    [0x76, '00'],
    [0x78, '00'],
    [0x79, '00'],
    [0x7a, '05 E8 03 FD FF 00'],
    [0x84, '0A 47'],
    [0x90, '0A 47'],
  ])('refuses %i with %s', (code, data) => {
    expect(decodeReply(code, hex(data))).toBeNull();
  });
});

describe("the maker's own messages", () => {
  const settings: Rs485Settings = {
    ioPins: Object.fromEntries([
      ...[0, 1, 2, 3].map((pin) => [`input${pin}`, pin === 1]),
      ...[0, 1, 2, 3, 4, 5, 6, 7].map((pin) => [`output${pin}`, pin === 7]),
    ]) as Rs485Settings['ioPins'],
    relayIndex: 3,
    unlockDurationMilliseconds: 5_000,
    useInputPinMemory: true,
  };

  it('are laid out as README.md says', () => {
    const wire = encodeCommand(encodeVendorRequest({ kind: 'writeSettings', settings, settingsVersion: 7 }));
    expect(wire).toEqual({ code: 0x80, data: hex('0A4748 03 8002 0003 00001388 0001 00000007') });
    expect(encodeCommand(encodeVendorRequest({ kind: 'product' })).data).toEqual(hex('0A4748 04'));
  });

  function openPair() {
    const pd = openOsdpDevice({ address: 0, serial: 1, type: 'GIO-48-OSDP', firmware: [2, 1, 0] });
    const panel = openPanel({ security: { secure: 'off' } }, (request) => pd.answer(request, 0));
    const ask = (request: VendorRequest): VendorReply | null => {
      const outcome = panel.command(encodeVendorRequest(request));
      return outcome.kind === 'answered' ? decodeVendorReply(outcome.reply) : null;
    };
    return { pd, ask };
  }

  it('put settings in force and report them', () => {
    const { pd, ask } = openPair();
    const whole = { kind: 'settings', settings, settingsVersion: 7 };
    expect(ask({ kind: 'writeSettings', settings, settingsVersion: 7 })).toEqual(whole);
    pd.restart(0);
    expect(ask({ kind: 'readSettings' })).toEqual(whole);
    const none = { ...settings, relayIndex: null, unlockDurationMilliseconds: null };
    ask({ kind: 'writeSettings', settings: none, settingsVersion: 8 });
    expect(ask({ kind: 'readSettings' })).toEqual({ kind: 'settings', settings: none, settingsVersion: 8 });
  });

  it('report what a device is, what its inputs did, and how often it began', () => {
    const { pd, ask } = openPair();
    expect(ask({ kind: 'product' })).toEqual({
      kind: 'product',
      type: 'GIO-48-OSDP',
      platformVersion: '2.1.0',
      app: { name: 'io', version: '1.0.0' },
    });
    ask({ kind: 'writeSettings', settings, settingsVersion: 1 });
    for (const active of [true, false, true]) pd.pins.setInput(2, active, 0);
    expect(ask({ kind: 'status' })).toEqual({
      kind: 'status',
      status: { settingsVersion: 1, inputEdges: [0, 0, 2, 0], bootCount: 1 },
    });
  });

  it('are refused by the device, whole', () => {
    const { ask } = openPair();
    const wrong = { ...settings, unlockDurationMilliseconds: 1 };
    expect(ask({ kind: 'writeSettings', settings: wrong, settingsVersion: 9 })).toEqual({
      kind: 'refused',
      operation: 3,
      reason: 1,
    });
    expect(ask({ kind: 'readSettings' })).toMatchObject({ settingsVersion: 0 });
  });

  it('are not believed of another maker, or of another length', () => {
    const reply = (vendorCode: number, data: string) =>
      decodeVendorReply({ kind: 'MFGREP', vendorCode, data: hex(data) });
    expect(reply(0x0a_47_48, '01 00000001 0000 0001')).toMatchObject({ kind: 'status' });
    expect(reply(0x0a_47_49, '01 00000001 0000 0001')).toBeNull();
    expect(reply(0x0a_47_48, '01 00000001 0000 00')).toBeNull();
    expect(reply(0x0a_47_48, '02 0000 0008 00000000 0000 00000000')).toBeNull();
    expect(reply(0x0a_47_48, '02 0000 0000 00000001 0000 00000000')).toBeNull();
    expect(reply(0x0a_47_48, '09')).toBeNull();
    expect(decodeVendorReply({ kind: 'ACK' })).toBeNull();
  });
});
