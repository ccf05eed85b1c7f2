/** Whether a device is of the product of its profile, by the registers that name one. Pure. */
import type { Profile } from './profile-shape.ts';
import { type Image, numberAt, type Span } from './registers.ts';

/** Why it is another one; undefined: it is this one, or nothing of `span` says so. */
export function foreignProduct(
  unit: number,
  { identity, product, name }: Profile,
  image: Image,
  span?: Span,
): string | undefined {
  const within = ({ table, address }: { table: string; address: number }) =>
    span === undefined ||
    (table === span.table && address >= span.address && address < span.address + span.quantity);
  const other = identity.shown?.filter(within).find((place) => numberAt(image, place) !== place.value);
  if (!other) return undefined;
  const { table, address, value } = other;
  return `the device at address ${unit} is no ${product}: ${table} register ${address} shows ${numberAt(image, other)}, where profile ${name} has ${value}. Nothing was written to it`;
}
