/**
 * Schlage Connect. It does what the standard says; the lock is endpoint 1 of some, and endpoint 2 of others.
 *
 * Source: device lists of zigbee-herdsman-converters (schlage, 2026-08-22) and of SmartThingsEdgeDrivers (zigbee-lock);
 * pull request 1686 of the former. Pure.
 */
import { type LockFamily, named } from './family.ts';

export const SCHLAGE: LockFamily = { name: 'schlage', matches: named(['Schlage'], ['BE468']) };
