import { describe, expect, it } from 'vitest';
import { manualClock } from '../../../test/manual-clock.ts';
import { openGate } from './gate.ts';

const read = (payload: object) => Object.entries(payload).map(([, value]) => value);

describe('a payload', () => {
  it('can be read in time', () => {
    const gate = openGate({ timeout: 5, pincodevalue: '' }, 10, manualClock());
    expect(gate.state()).toBe('waiting');
    expect(read(gate.payload)).toEqual([5, '']);
    expect(gate.state()).toBe('made');
    gate.leave();
    expect(gate.state()).toBe('sent');
  });

  it('cannot be read twice', () => {
    const gate = openGate({ timeout: 5 }, 10, manualClock());
    read(gate.payload);
    expect(() => read(gate.payload)).toThrow('made already');
    expect(gate.state()).toBe('made');
  });

  it('leaves once, and not when its time was over while it waited for the port', async () => {
    const [once, late] = [openGate({ timeout: 5 }, 10, manualClock()), manualClock()];
    const waiting = openGate({ timeout: 5 }, 10, late);
    read(once.payload);
    once.leave();
    expect(() => once.leave()).toThrow('sent already');
    read(waiting.payload);
    await late.advance(11);
    expect(() => waiting.leave()).toThrow('over');
    expect(waiting.state()).toBe('late');
  });

  it('does not leave for an address that another device has asked for since it was released', () => {
    let isShared = false;
    const gate = openGate({ timeout: 5 }, 10, manualClock(), { isBarred: () => isShared });
    read(gate.payload);
    isShared = true;
    expect(() => gate.leave()).toThrow('may not go to its address');
    expect(gate.state()).toBe('closed');
    isShared = false;
    expect(() => gate.leave()).toThrow('closed already');
  });

  it('does not leave once it is closed, and knows whether it had', () => {
    const [one, other] = [openGate({ timeout: 5 }, 10, manualClock()), openGate({ a: 1 }, 10, manualClock())];
    for (const { payload } of [one, other]) read(payload);
    expect(one.close()).toBe('closed');
    expect(() => one.leave()).toThrow('closed already');
    other.leave();
    expect(other.close()).toBe('sent');
  });

  it('cannot be read late, nor ever after', async () => {
    const clock = manualClock();
    const gate = openGate([{ attrId: 37, attrData: 4 }], 10, clock);
    await clock.advance(11);
    const [record] = gate.payload as object[];
    expect(() => read(record ?? {})).toThrow('over');
    expect(gate.state()).toBe('late');
  });

  it('is not read by being written down, and is not shown', () => {
    const gate = openGate({ pincodevalue: '4711' }, 10, manualClock());
    expect(JSON.stringify(gate.payload)).toBe('"[hidden]"');
    expect(gate.state()).toBe('waiting');
  });

  it.each([{}, []])('must have a field: %j', (payload) => {
    expect(() => openGate(payload, 10, manualClock())).toThrow(RangeError);
  });
});
