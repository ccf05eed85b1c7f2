import { describe, expect, it } from 'vitest';
import { manualClock } from '../../test/manual-clock.ts';
import type { LockEvent } from '../contract/zgate.ts';
import { openBoltEvents } from './bolt-events.ts';

const LOCK = '00158d0001000001';
const [LOCKED, UNLOCKED] = [1, 2];

function opened() {
  const clock = manualClock();
  const events: string[] = [];
  const asked: string[] = [];
  const emit = ({ what }: LockEvent) => void events.push(what);
  const bolts = openBoltEvents(clock, emit, (ieee) => void asked.push(ieee));
  bolts.take(LOCK, { lockState: LOCKED });
  return { clock, events, asked, bolts };
}

describe('a lock whose event says that its bolt moved', () => {
  it('is asked for the bolt when no report follows, and its answer is no event of its own', async () => {
    const { clock, events, asked, bolts } = opened();
    bolts.take(LOCK, { movedTo: UNLOCKED });
    await clock.advance(2_000);
    expect(asked).toEqual([LOCK]);
    await clock.advance(3_000);
    bolts.take(LOCK, { lockState: UNLOCKED });
    await clock.advance(10_000);
    expect([events, asked]).toEqual([[], [LOCK]]);
  });

  it('is not asked when the report came, before the event or after it', async () => {
    const { clock, events, asked, bolts } = opened();
    bolts.take(LOCK, { movedTo: UNLOCKED });
    await clock.advance(1_500);
    bolts.take(LOCK, { lockState: UNLOCKED });
    await clock.advance(5_000);
    bolts.take(LOCK, { lockState: LOCKED });
    bolts.take(LOCK, { movedTo: LOCKED });
    await clock.advance(5_000);
    expect([events, asked]).toEqual([[], []]);
  });

  it('is not asked when the last of several movements led back to where it was', async () => {
    const { clock, asked, bolts } = opened();
    bolts.take(LOCK, { movedTo: UNLOCKED });
    await clock.advance(1_000);
    bolts.take(LOCK, { movedTo: LOCKED });
    await clock.advance(5_000);
    expect(asked).toEqual([]);
  });

  it('is asked once for the last of several movements', async () => {
    const { clock, asked, bolts } = opened();
    bolts.take(LOCK, { movedTo: UNLOCKED });
    await clock.advance(500);
    bolts.take(LOCK, { movedTo: LOCKED });
    await clock.advance(500);
    bolts.take(LOCK, { movedTo: UNLOCKED });
    await clock.advance(5_000);
    expect(asked).toEqual([LOCK]);
  });

  it('has an event for what moves it after its answer that the bolt did not move', async () => {
    const { clock, events, bolts } = opened();
    bolts.take(LOCK, { movedTo: UNLOCKED });
    await clock.advance(2_000);
    bolts.take(LOCK, { lockState: LOCKED });
    await clock.advance(1_000);
    // By a hand, which this lock has no event for.
    bolts.take(LOCK, { lockState: UNLOCKED });
    await clock.advance(2_000);
    expect(events).toEqual(['unlocked']);
  });

  it('has an event for each movement after the one that its event reported', async () => {
    const { clock, events, bolts } = opened();
    bolts.take(LOCK, { movedTo: UNLOCKED });
    await clock.advance(3_000);
    bolts.take(LOCK, { lockState: UNLOCKED });
    bolts.take(LOCK, { lockState: LOCKED });
    await clock.advance(2_000);
    bolts.take(LOCK, { lockState: UNLOCKED });
    await clock.advance(2_000);
    expect(events).toEqual(['locked', 'unlocked']);
  });
});
