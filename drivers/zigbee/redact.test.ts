import { describe, expect, it } from 'vitest';
import { redact } from './redact.ts';

const key = Buffer.from('00112233445566778899aabbccddeeff', 'hex');

describe('what the library says', () => {
  // The forms zigbee-herdsman 10.9.5 writes: manager.js (mismatch), controller.js (options), endpoint.js (failed command).
  it.each([
    `- Network Key: configured=${key.toString('hex')}, adapter:active=${key.toString('hex')}`,
    `(preconfigured=${key.toString('hex').toUpperCase()})`,
    `options '{"network":{"networkKey":${JSON.stringify([...key])}}}'`,
    `Network key must be a 16 digits long array, got ${[...key]}.`,
    `--> 'SREQ: SYS - osalNvWrite - ${JSON.stringify({ id: 130, value: key })}' failed`,
    `Install code ${key.toString('hex')}abcd failed CRC validation`,
  ])('shows no key: %s', (line) => {
    const clean = redact(line);
    expect(clean).toContain('[hidden]');
    expect(clean.toLowerCase()).not.toContain('ddeeff');
    expect(clean).not.toContain('221,238,255');
    expect(clean).not.toContain('17,34,51');
  });

  it.each([
    'closuresDoorLock.setPinCode({"userid":1,"pincodevalue":{"type":"Buffer","data":[52,55,49,49]}}, {"timeout":1})',
    'unlockDoor({"pincodevalue":"4711"}, {}) failed (Timeout)',
    'event {"userid":1,"pin":"4711"}',
  ])('shows no PIN: %s', (line) => {
    expect(redact(line)).not.toMatch(/4711|52,55,49,49/);
  });

  it('shows no secret that it was given', () => {
    expect(redact('code 83FED3407A939723A5C6', ['83FED3407A939723A5C6'])).toBe('code [hidden]');
    expect(redact('code 83fed3407a939723a5c6', ['83FED3407A939723A5C6'])).toBe('code [hidden]');
  });

  it('keeps what an operator needs', () => {
    const line =
      "ZCL command 0x00124b0001020304/1 failed (Data request failed with error: 'MAC_NO_ACK' (0xe9))";
    expect(redact(line)).toBe(line);
    expect(redact('channels 11,12,13,14,15')).toBe('channels 11,12,13,14,15');
  });

  it('is bounded', () => {
    expect(redact('1,'.repeat(1_000_000)).length).toBeLessThanOrEqual(500);
  });
});
