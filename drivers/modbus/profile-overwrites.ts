/** Of a watchdog: one write of its profile undoes what another one set, so that it opens nothing, or another time later. */
import type { Profile, ProfileFault, Watchdog } from './profile-shape.ts';

export function overwriteFaults({ pulse }: Profile): ProfileFault[] {
  if (pulse?.way !== 'switched') return [];
  const { milliseconds, time, enable, inForce, fedBy, feed } = pulse.watchdog;
  const units = Math.ceil(milliseconds / time.unitMilliseconds);
  const faults: ProfileFault[] = [];
  const wrong = (path: PropertyKey[], message: string, see: PropertyKey[]) =>
    faults.push({
      path: ['pulse', 'watchdog', ...path],
      message,
      see: ['pulse', 'watchdog', ...see],
    });
  const theTime = `the register of the time, which is then not ${milliseconds} ms any more`;

  const enabling = enable.findLastIndex((step) => step.table === 'holding' && covers(step, time.address));
  const written = enable[enabling]?.value;
  if (written !== undefined && written !== units)
    wrong(['enable', enabling], `writes ${written} to ${theTime}`, ['time']);

  const fed = fedBy === 'writes' ? feed : undefined;
  const other = fed?.address === time.address ? fed.values.find((value) => value !== units) : undefined;
  if (other !== undefined) wrong(['feed'], `writes ${other} to ${theTime}`, ['time']);

  for (const [index, place] of inForce.entries()) {
    if (place.table !== 'holding' || place.shows) continue;
    const { address, value } = place;
    if (address === time.address && value !== units)
      wrong(['inForce', index], `expects ${value} in the register of the time, which is ${units}`, ['time']);
    const fedValue = fed?.address === address ? fed.values.find((one) => one !== value) : undefined;
    if (fedValue !== undefined)
      wrong(['feed'], `writes ${fedValue} where inForce expects ${value}`, ['inForce', index]);
  }
  return faults;
}

function covers({ address, count }: Watchdog['enable'][number], place: number): boolean {
  return address <= place && place < address + count;
}
