import type { LockConfiguration } from '../../../drivers/contract/settings.ts';

/** Of a door that no one wanted anything of. */
export const PLAIN: LockConfiguration = {
  name: null,
  number: null,
  type: null,
  relaySetup: null,
  standOpenEnabled: false,
  onlineEnabled: false,
  accessInternal: null,
  outputs: [],
  schedule: [],
};
