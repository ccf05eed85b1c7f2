import { describe, expect, it } from 'vitest';
import { completeFrame } from './credible.ts';

const completed = (hex: string) => completeFrame(Buffer.from(hex, 'hex')).toString('hex');

describe('an event that ends early', () => {
  it('is completed with zeros', () => {
    // A Yale YMC420, by a finger (zigbee2mqtt, issue 8946): without the text at its end.
    expect(completed('09e1200402010000e40b4129')).toBe('09e1200402010000e40b412900');
    // An EasyCodeTouch, by a card (deconz-rest-plugin, issue 4253): the payload, within the local time.
    expect(completed('0901200302000000000000')).toBe('09012003020000000000000000');
    // Nothing after the user.
    expect(completed('09012000020500')).toBe('09012000020500000000000000');
    expect(completed('09012101020500')).toBe('090121010205000000000000000000');
  });

  it('is an answer that there is no such schedule, as the standard has it without the rest', () => {
    // Get Week Day, Year Day and Holiday Schedule Response with NOT_FOUND (ZCL rev. 8, 7.3.2.18.14, 17 and 20).
    expect(completed('09010c0005008b')).toBe('09010c0005008b0000000000');
    expect(completed('09010f0005008b')).toBe('09010f0005008b0000000000000000');
    expect(completed('090112008b')).toBe('090112008b000000000000000000');
  });

  it('is as it was where it is whole, or no event of a lock', () => {
    const frames = [
      // With a PIN and a text.
      '0901200005030004343731310000000001ff',
      // It ends within the PIN, or within the user.
      '09012000050300043437',
      '090120000503',
      // Of the other side, of a maker, for every cluster.
      '0101200402010000',
      '0d371301200402010000',
      '0801200402010000',
      // Another command: the answer to Unlock Door.
      '09010100',
      '',
      // A week-day schedule that is there, and one that ends within what it says.
      '09010c000500003e0800111e',
      '09010c0005000000',
    ];
    expect(frames.map(completed)).toEqual(frames);
  });
});
