/**
 * Yale's digital locks YMC 420 and YDM 60, and Solis. Their events end early (drivers/zigbee/herdsman/credible.ts) and come also when the
 * bolt did not move, such as after a restart: only a report of the bolt shows where it is. Their simple descriptor does
 * not have the power configuration, which they report all the same.
 *
 * Source: device list of zigbee-herdsman-converters (yale, 2026-08-22), with the notes on phantom unlocks in it; frames and
 * descriptors in the issues 8946, 15721 and 31652 of zigbee2mqtt. Pure.
 */
import type { Heard } from '../messages.ts';
import { field } from '../values.ts';
import { inPercent, type LockFamily, named, withoutProof } from './family.ts';

const POWER = 0x00_01;
/** OperationEventSource of the YMC 420: a finger. */
const SOURCE_FINGERPRINT = 4;

export const YALE_DIGITAL: LockFamily = {
  name: 'yale-digital',
  matches: named(['Yale'], ['YMC420', 'YMC 420', 'YMC420 W', 'YMC 420 W', 'YMC420D', 'YMC 420 D', 'YDM60']),
  unlisted: [POWER],
  factsOf(heard, facts) {
    const { event, ...others } = withoutProof(facts);
    return { ...others, ...(event && { event: { ...event, source: sourceOf(heard) ?? event.source } }) };
  },
};

export const YALE_SOLIS: LockFamily = {
  name: 'yale-solis',
  matches: named(['Yale'], ['SOLIS01']),
  unlisted: [POWER],
  factsOf: (heard, facts) => withoutProof(inPercent(heard, facts)),
};

function sourceOf({ data }: Heard): string | undefined {
  return field(data, 'opereventsrc') === SOURCE_FINGERPRINT ? 'fingerprint' : undefined;
}
