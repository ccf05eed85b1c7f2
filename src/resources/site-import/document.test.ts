import { expect, it } from 'vitest';
import { systemClock } from '../../platform/clock.ts';
import { readDocument } from './document.ts';

/** Doors without their fields, and which of them were looked at. */
function faultyDoors(length: number) {
  const looked = new Set<number>();
  const door = (index: number) =>
    new Proxy(
      { x: 1 },
      {
        get(fields, name) {
          looked.add(index);
          return Reflect.get(fields, name);
        },
      },
    );
  const doors = Array.from({ length }, (_, index) => door(index));
  return { doors, looked };
}

it('a section with too many entries has one fault, and none of its entries is looked at', async () => {
  const { doors, looked } = faultyDoors(5_001);
  await expect(readDocument({ doors }, systemClock)).rejects.toMatchObject({
    code: 'VALIDATION_FAILED',
    details: [{ path: '/document/doors', code: 'TOO_BIG' }],
  });
  expect(looked.size).toBe(0);
});

it('after as many faults as an answer could list no further entry is looked at', async () => {
  const { doors, looked } = faultyDoors(5_000);
  await expect(readDocument({ doors }, systemClock)).rejects.toMatchObject({ code: expect.any(String) });
  expect(looked.size).toBeLessThan(200);
});
