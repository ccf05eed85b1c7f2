/** How busy the channels are, as the coordinator hears them: before a move, and once a network was formed. */
import { DriverError } from '../contract/driver.ts';
import type { Energies } from '../contract/zgate.ts';
import type { Radio } from './radio.ts';

/** IEEE 802.15.4, 2.4 GHz. */
const FIRST_CHANNEL = 11;
const CHANNELS = Array.from({ length: 16 }, (_, index) => FIRST_CHANNEL + index);

export async function scanEnergies(radio: Pick<Radio, 'hwId' | 'energies'>): Promise<Energies> {
  const channels = await radio.energies(radio.hwId, CHANNELS);
  if (channels.length > 0) return { channels };
  throw new DriverError('BAD_REPLY', 'the coordinator named no channel in its energy scan');
}
