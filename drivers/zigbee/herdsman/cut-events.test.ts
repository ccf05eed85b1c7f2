import { describe, expect, it } from 'vitest';
import { completeEvent } from './cut-events.ts';

const completed = (hex: string) => completeEvent(Buffer.from(hex, 'hex')).toString('hex');

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
    ];
    expect(frames.map(completed)).toEqual(frames);
  });
});
