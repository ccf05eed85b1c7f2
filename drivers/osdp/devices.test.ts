/** A reservation lapses, but not the one that was begun again meanwhile. */
import { expect, it } from 'vitest';
import { manualClock } from '../../test/manual-clock.ts';
import { openReservation } from './devices.ts';

const LAPSES_MS = 70_000;

function openHeld() {
  const clock = manualClock();
  const held = { isPolled: false, isReserved: false };
  /** What happens in the same turn of the event loop as the end of a sleep, before anybody has seen that. */
  let meanwhile = () => {};
  const slow: typeof clock = {
    ...clock,
    async sleep(milliseconds, signal) {
      await clock.sleep(milliseconds, signal);
      meanwhile();
    },
  };
  const reserve = (isReserved: boolean) => {
    held.isReserved = isReserved;
  };
  const reservation = openReservation(slow, { reserve }, () => {
    held.isPolled = true;
    return {
      [Symbol.dispose]() {
        held.isPolled = false;
      },
    };
  });
  return {
    clock,
    held,
    reservation,
    atTheEndOfASleep(call: () => void) {
      meanwhile = call;
    },
  };
}

it('is given back by its holder, or after some time', async () => {
  const { clock, held, reservation } = openHeld();
  expect(held).toEqual({ isPolled: true, isReserved: false });
  reservation.begin();
  expect(held).toEqual({ isPolled: false, isReserved: true });
  reservation.end();
  expect(held).toEqual({ isPolled: true, isReserved: false });
  reservation.begin();
  await clock.advance(LAPSES_MS - 1);
  expect(held).toEqual({ isPolled: false, isReserved: true });
  await clock.advance(1);
  expect(held).toEqual({ isPolled: true, isReserved: false });
  reservation.begin();
  reservation[Symbol.dispose]();
  await clock.advance(LAPSES_MS);
  expect(held.isPolled).toBe(false);
});

it('is held on to by one that is begun as another one lapses', async () => {
  const { clock, held, reservation, atTheEndOfASleep } = openHeld();
  reservation.begin();
  atTheEndOfASleep(() => {
    atTheEndOfASleep(() => {});
    reservation.begin();
  });
  await clock.advance(LAPSES_MS);
  expect(held).toEqual({ isPolled: false, isReserved: true });
  await clock.advance(LAPSES_MS);
  expect(held).toEqual({ isPolled: true, isReserved: false });
});
