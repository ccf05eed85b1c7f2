/** Frames of the manuals named in module-types.ts and messages.ts. */
import { describe, expect, it } from 'vitest';
import * as ask from './messages.ts';
import { MODULE_TYPES, moduleTypeOf } from './module-types.ts';
import { exchangeOf, hostOkExchange, readAnswer } from './wire.ts';

const plain = { checksum: false };
const checked = { checksum: true };

function typeOf(name: string) {
  const type = moduleTypeOf(name);
  if (!type) throw new Error(`${name} is not in the table`);
  return type;
}

function heard<Reply>(question: ask.Question<Reply>, line: string) {
  return readAnswer(question, Buffer.from(`${line}\r`, 'latin1'), plain);
}

describe('what is asked', () => {
  it.each<[ask.Question<unknown>, string]>([
    [ask.moduleName(0x01), '$01M'],
    [ask.firmwareVersion(0x0a), '$0AF'],
    [ask.resetStatus(0x39), '$395'],
    // ADAM 4000 Series User's Manual, $AA6 and #AABB.
    [ask.readPins(0x33, typeOf('4050')), '$336'],
    [ask.switchOne(0x15, 2, true), '#151201'],
    [ask.switchOne(0x15, 2, false), '#151200'],
    [ask.switchAllOff(0x14), '#140000'],
    // 7.1.10: 10 s, all off.
    [ask.writeSafety(0x02, { tenths: 100, outputs: 0, digits: 2 }), '$02X0006400'],
    // ADAM 4000 Series User's Manual, 7-20, $AAX0TTTTDDDD, and its example 017A.
    [ask.writeSafety(0x02, { tenths: 100, outputs: 0x17a, digits: 4 }), '$02X00064017A'],
    [ask.readSafety(0x02), '$02X1'],
    // I-7000 DIO Manual 2.11, 2.13, 2.18 to 2.23.
    [ask.readLatched(0x01, typeOf('7060')), '$01L1'],
    [ask.clearLatched(0x01), '$01C'],
    [ask.hostWatchdogFlag(0x01), '~010'],
    [ask.clearHostWatchdogFlag(0x01), '~011'],
    [ask.armHostWatchdog(0x01, 100), '~013164'],
    [ask.readHostWatchdog(0x01), '~012'],
    [ask.readPreset(0x01, 'P'), '~014P'],
    [ask.storePreset(0x01, 'S'), '~015S'],
  ])('%# is %s', (question, text) => {
    expect(question.text).toBe(text);
    expect(Buffer.from(exchangeOf(question, plain).request()).toString()).toBe(`${text}\r`);
  });

  it('of all at once is ~**, which no one answers', () => {
    const exchange = hostOkExchange(plain);
    expect(Buffer.from(exchange.request()).toString()).toBe('~**\r');
    expect(exchange.replyLength).toBe(0);
    expect(exchange.read(new Uint8Array())).toEqual({ kind: 'reply', reply: null });
  });

  it('says how long the answer can be, and whether it says whose it is', () => {
    expect(exchangeOf(ask.readPins(0x33, typeOf('4050')), checked)).toMatchObject({
      replyLength: '!11220000\r'.length,
      anonymous: true,
      address: 0x33,
    });
    expect(exchangeOf(ask.resetStatus(0x33), plain)).toMatchObject({
      replyLength: '!331\r'.length,
      anonymous: false,
    });
  });
});

describe('what is answered', () => {
  it.each<[ask.Question<unknown>, string, unknown]>([
    [ask.moduleName(0x01), '!014050', '4050'],
    [ask.moduleName(0x01), '!017065BD', '7065BD'],
    [ask.firmwareVersion(0x01), '!01A2.0', 'A2.0'],
    [ask.resetStatus(0x39), '!391', true],
    [ask.resetStatus(0x39), '!390', false],
    // ADAM 4000 Series User's Manual, $AA6: outputs 0 and 4, inputs 1 and 5.
    [ask.readPins(0x33, typeOf('4050')), '!112200', { outputs: 0x11, inputs: 0x22 }],
    // The same, 7-21, $AAX1 of both editions.
    [ask.readSafety(0x02), '!0064017A', { tenths: 100, outputs: 0x17a, digits: 4 }],
    [ask.readSafety(0x02), '!00647A', { tenths: 100, outputs: 0x7a, digits: 2 }],
    // I-7000 DIO Manual 2.20.
    [ask.readHostWatchdog(0x01), '!01164', { enabled: true, tenths: 100 }],
    // ADAM 4100 Series User's Manual, 4.6.3.
    [ask.readPins(0x33, typeOf('4150')), '!112200', { outputs: 0x11, inputs: 0x22 }],
    // !(dataOutput)0000 and !(dataInput)00.
    [ask.readPins(0x01, typeOf('4068')), '!810000', { outputs: 0x81, inputs: 0 }],
    [ask.readPins(0x01, typeOf('4051')), '!BEDE00', { outputs: 0, inputs: 0xde }],
    // EX-9060D manual 2.14, with the outputs first.
    [ask.readPins(0x01, typeOf('7060')), '!0F0000', { outputs: 0x0f, inputs: 0 }],
    [ask.switchOne(0x15, 2, true), '>', 'done'],
    // I-7000 DIO Manual 2.3: ignored, for the host watchdog has run out.
    [ask.switchOne(0x15, 2, true), '!', 'ignored'],
    [ask.hostWatchdogFlag(0x01), '!0104', true],
    [ask.hostWatchdogFlag(0x01), '!0100', false],
    // Later modules show in bit 7 whether it is armed.
    [ask.hostWatchdogFlag(0x01), '!0180', false],
    [ask.clearHostWatchdogFlag(0x01), '!01', null],
    [ask.armHostWatchdog(0x01, 100), '!01', null],
    [ask.readPreset(0x01, 'P'), '!01AA00', 0xaa],
    [ask.writeSafety(0x02, { tenths: 100, outputs: 0, digits: 2 }), '>', 'done'],
    [ask.readSafety(0x02), '!006400', { tenths: 100, outputs: 0, digits: 2 }],
    [ask.readLatched(0x01, typeOf('7060')), '!000300', { outputs: 0, inputs: 3 }],
  ])('%#: %s %s', (question, line, reply) => {
    expect(heard(question, line)).toEqual({ kind: 'reply', reply });
  });

  it.each<[ask.Question<unknown>, string]>([
    [ask.moduleName(0x01), '!024050'],
    [ask.moduleName(0x01), '!01'],
    [ask.moduleName(0x01), '>'],
    [ask.resetStatus(0x39), '!392'],
    [ask.resetStatus(0x39), '!3900'],
    [ask.readPins(0x33, typeOf('4050')), '!33'],
    [ask.readPins(0x33, typeOf('4050')), '!1122'],
    [ask.readPins(0x33, typeOf('4050')), '!112201'],
    [ask.readPins(0x33, typeOf('4050')), '!11220a'],
    // It has four outputs.
    [ask.readPins(0x33, typeOf('4060')), '!110000'],
    [ask.switchOne(0x15, 2, true), '!15'],
    [ask.switchOne(0x15, 2, true), '>15'],
    [ask.clearHostWatchdogFlag(0x01), '!0100'],
    [ask.clearHostWatchdogFlag(0x01), '!'],
    [ask.switchOne(0x15, 2, true), '?16'],
  ])('%# is not %s %s', (question, line) => {
    expect(heard(question, line)).toEqual({ kind: 'more', fault: 'foreign' });
  });

  it('is a refusal with the address that was asked, or without any where outputs are switched', () => {
    expect(heard(ask.moduleName(0x1f), '?1F')).toMatchObject({
      kind: 'refused',
      reason: 'module 1F refused $1FM',
    });
    expect(heard(ask.switchOne(0x1f, 1, true), '?1F')).toMatchObject({ kind: 'refused' });
    expect(heard(ask.switchOne(0x1f, 1, true), '?')).toMatchObject({ kind: 'refused' });
    expect(heard(ask.moduleName(0x1f), '?')).toEqual({ kind: 'more', fault: 'foreign' });
  });

  it('is found behind what is none', () => {
    const read = (text: string) => readAnswer(ask.moduleName(1), Buffer.from(text, 'latin1'), checked);
    expect(read('')).toEqual({ kind: 'more' });
    expect(read('!01405')).toEqual({ kind: 'more' });
    expect(read('\x00!0140504C\r')).toEqual({ kind: 'more', fault: 'crc' });
    expect(read('!0140504C\r>3E\r!0240604D\r')).toEqual({ kind: 'more', fault: 'foreign' });
    expect(read('\xffgarbage\r>3E\r!0140504B\r')).toEqual({ kind: 'reply', reply: '4050' });
    expect(read('x'.repeat(1_000))).toEqual({ kind: 'more', fault: 'framing' });
  });
});

describe('the table of modules', () => {
  it('names each module once, with at most eight outputs', () => {
    const names = MODULE_TYPES.flatMap((type) => type.names);
    expect(new Set(names).size).toBe(names.length);
    for (const { outputs, source, product } of MODULE_TYPES) {
      expect(outputs?.count ?? 0, product).toBeLessThanOrEqual(8);
      expect(source).not.toBe('');
    }
  });
});
