/** The families of standard locks, in the order in which they are tried. Pure. */
import { AQARA } from './aqara.ts';
import { DANALOCK } from './danalock.ts';
import type { Claim, LockFamily } from './family.ts';
import { ID_LOCK } from './id-lock.ts';
import { KWIKSET } from './kwikset.ts';
import { EASY_CODE, NIMLY } from './onesti.ts';
import { SCHLAGE } from './schlage.ts';
import { YALE_ASSURE } from './yale-assure.ts';
import { YALE_CONTROL4 } from './yale-control4.ts';
import { YALE_DIGITAL, YALE_SOLIS } from './yale-digital.ts';
import { YALE_REAL_LIVING } from './yale-real-living.ts';

export const FAMILIES: readonly LockFamily[] = [
  YALE_ASSURE,
  YALE_REAL_LIVING,
  YALE_DIGITAL,
  YALE_SOLIS,
  YALE_CONTROL4,
  DANALOCK,
  SCHLAGE,
  KWIKSET,
  NIMLY,
  EASY_CODE,
  ID_LOCK,
  AQARA,
];

/** Undefined: it is taken for what the standard says. */
export function familyOf(claim: Claim): LockFamily | undefined {
  return FAMILIES.find((family) => family.matches(claim));
}
