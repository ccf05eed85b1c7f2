/** Which product a device is: by the registers that name one, and by what the standard has for that. */

import { type BusWarning, busWarning } from '../contract/bus-warnings.ts';
import type { Step } from './contact-steps.ts';
import { type Identification, readIdentification } from './messages.ts';
import type { Profile } from './profile-shape.ts';
import { type Image, numberAt, type Span } from './registers.ts';

/** Why it is another one; undefined: it is this one, or nothing of `span` says so. */
export function foreignProduct(
  unit: number,
  { identity, product, name }: Profile,
  image: Image,
  span?: Span,
): BusWarning | undefined {
  const within = ({ table, address }: { table: string; address: number }) =>
    span === undefined ||
    (table === span.table && address >= span.address && address < span.address + span.quantity);
  const other = identity.shown?.filter(within).find((place) => numberAt(image, place) !== place.value);
  if (!other) return undefined;
  const { table, address, value } = other;
  return busWarning('OTHER_PRODUCT', {
    address: unit,
    product,
    register: `${table} register ${address}`,
    value: numberAt(image, other) ?? '?',
    profile: name,
    wanted: value,
  });
}

/** Objects of the basic identification: vendor, product code, revision (application protocol 1.1b3, 6.21). */
export const PRODUCT_CODE = 1;
export const REVISION = 2;
const OBJECT_MAX = 2;
const TEXT_MAX = 128;

/** Reads the basic identification, in as many exchanges as the device wants; one that refuses it has none. */
export function identificationStep(
  unit: number,
  identified: (objects: ReadonlyMap<number, string>) => void,
  object = 0,
): Step {
  let next: number | undefined;
  return {
    exchange: () => readIdentification(unit, object),
    take(reply) {
      const { objects, next: more } = reply as Identification;
      identified(new Map([...objects].map(([id, text]) => [id, text.slice(0, TEXT_MAX)])));
      // Each one later than the one before, so that a device that goes round in a ring ends.
      next = more !== undefined && more > object && more <= OBJECT_MAX ? more : undefined;
    },
    bears: ({ code }) => code === 'REFUSED',
    more: () => (next === undefined ? [] : [identificationStep(unit, identified, next)]),
  };
}
