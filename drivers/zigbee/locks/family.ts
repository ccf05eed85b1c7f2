/** A family of standard locks that deviate from the standard in the same way. Pure. */
import type { Facts, Heard } from '../messages.ts';
import { field, integer } from '../values.ts';

/** What a lock says of itself (genBasic). Anybody can say it. */
export interface Claim {
  manufacturer: string | undefined;
  model: string | undefined;
}

/**
 * Since a lock can claim a maker that it is not, a family makes this driver only more careful, or has it read more: it never
 * takes for proof what the standard does not, and never takes a lock for one that locks again by itself.
 */
export interface LockFamily {
  /** As …/state and docs/locks.md name it. */
  name: string;
  matches(claim: Claim): boolean;
  /** What a frame says, where it does not say it as the standard does; `facts` is what it says by the standard. */
  factsOf?(heard: Heard, facts: Facts): Facts;
  /** Clusters that it has, though they are not in its simple descriptor. */
  unlisted?: readonly number[];
  /** Why nothing is sent to its bolt. */
  takesNoCommands?: string;
}

/** By its name for the maker, and the whole of its name for the model. */
export function named(manufacturers: readonly string[], models: readonly string[]): LockFamily['matches'] {
  return ({ manufacturer = '', model = '' }) =>
    manufacturers.includes(manufacturer) && models.includes(model);
}

const PERCENT_MAX = 100;

/** BatteryPercentageRemaining (ZCL rev. 8, 3.3.2.2.3.2) of a lock that reports percent, not half percent. */
export function inPercent({ cluster, data }: Heard, { battery, ...facts }: Facts): Facts {
  if (battery === undefined || cluster !== 'genPowerCfg')
    return battery === undefined ? facts : { ...facts, battery };
  const percent = integer(field(data, 'batteryPercentageRemaining'), 0, PERCENT_MAX);
  return { ...facts, ...(percent !== undefined && { battery: percent }) };
}

/**
 * An event that names the radio proves nothing: it is reported as a movement of the bolt, so that the door is locked again if
 * no command was under way. That somebody else unlocked it is believed.
 */
export function withoutProof({ unlockedByRadio, lockedByRadio: _, ...facts }: Facts): Facts {
  if (unlockedByRadio === false) return { ...facts, unlockedByRadio };
  if (unlockedByRadio === undefined || !facts.event) return facts;
  return { ...facts, event: { ...facts.event, kind: 'bolt' } };
}
