/**
 * A product: which of its registers and coils carry which field, and what cannot be true of one, though each of its fields is well
 * formed. Those that come with Gatehouse are in config/profiles/, one YAML file each.
 */
import { z } from 'zod';
import { areasOf } from './profile-areas.ts';
import {
  type Profile,
  type ProfileFault,
  profileShape,
  REGISTER_MAX,
  WATCHDOG_MIN_MS,
  type Watchdog,
} from './profile-shape.ts';
import { isBitTable, settingsBlock } from './registers.ts';

export const profileSchema = profileShape.superRefine((profile, context) => {
  for (const { path, message } of faultsOf(profile))
    context.addIssue({ code: 'custom', path, message, input: profile });
});

/** What editors check a profile against; config/profiles/profile.schema.json is this. */
export function profileJsonSchema(): z.core.JSONSchema.BaseSchema {
  return { title: 'Modbus profile', ...z.toJSONSchema(profileSchema, { io: 'input' }) };
}

/** Registers one write can carry, application protocol 1.1b3, 6.12. */
const REGISTERS_WRITTEN_MAX = 123;
/** Two characters in each. */
const HW_ID_REGISTERS_MAX = 32;
const ADDRESSES = 0x1_0000;
const REGISTER_BITS = 16;

/**
 * `sound`: what is wrong otherwise was left out of the profile, so that nothing is said to be missing. What follows from
 * a mistake is not reported beside it: a field that cannot be where it is overlaps no other, and tears no block.
 */
export function faultsOf(profile: Profile, part: 'whole' | 'sound' = 'whole'): ProfileFault[] {
  const faults = [
    ...impossibleAreas(profile),
    ...overlaps(profile),
    ...impossibleFields(profile),
    ...watchdogFaults(profile),
    ...overwriteFaults(profile),
  ];
  if (part === 'sound') return faults;
  const isSound = (field: 'settings' | 'pulse') => !faults.some(({ path }) => path[0] === field);
  return [...faults, ...blockFaults(profile, isSound), ...missing(profile)];
}

function impossibleAreas(profile: Profile): ProfileFault[] {
  return areasOf(profile).flatMap((area) => impossible(area) ?? []);
}

type Area = ReturnType<typeof areasOf>[number];

function impossible({ path, table, address, quantity, bits }: Area): ProfileFault | undefined {
  if (address + quantity > ADDRESSES) {
    const last = `${address + quantity - 1} (${hex(address + quantity - 1)})`;
    return { path, message: `reaches to ${last}; the last address is 65535 (0xFFFF)` };
  }
  if (!bits) return undefined;
  if (isBitTable(table))
    return bits.from === 0
      ? undefined
      : { path: [...path, 'bit'], message: 'is for registers: a coil is one bit' };
  if (bits.to <= REGISTER_BITS) return undefined;
  return { path, message: `reaches to bit ${bits.to - 1}; the last one of a register is 15` };
}

/** The same bit cannot mean two things. */
function overlaps(profile: Profile): ProfileFault[] {
  const areas = areasOf(profile).filter((area) => !impossible(area));
  return areas.flatMap((area, index) => {
    const other = areas.slice(0, index).find((earlier) => {
      if (earlier.table !== area.table) return false;
      const [a, b] = [extent(earlier), extent(area)];
      return a.from < b.to && b.from < a.to;
    });
    if (!other) return [];
    const at = `${area.table} ${hex(area.address)}`;
    return [{ path: area.path, see: other.path, message: `has a part of another field in it, at ${at}` }];
  });
}

/** In bits of the table, so that two fields may share a register. */
function extent({ table, address, quantity, bits }: Area) {
  if (isBitTable(table)) return { from: address, to: address + quantity };
  const start = address * REGISTER_BITS;
  return bits
    ? { from: start + bits.from, to: start + bits.to }
    : { from: start, to: start + quantity * REGISTER_BITS };
}

/** A block that is written whole carries each of its registers, or it would put zeros where no one knows what they do. */
function blockFaults(profile: Profile, isSound: (field: 'settings' | 'pulse') => boolean): ProfileFault[] {
  const faults: ProfileFault[] = [];
  for (const [field, spans] of [
    ['settings', settingsBlock(profile.settings)],
    ['pulse', profile.pulse?.way === 'block' ? pulseSpans(profile.pulse) : []],
  ] as const) {
    const first = Math.min(...spans.map(({ address }) => address));
    const end = Math.max(...spans.map(({ address, quantity }) => address + quantity));
    const covered = new Set(
      spans.flatMap(({ address, quantity }) =>
        Array.from({ length: quantity }, (_, index) => address + index),
      ),
    );
    if (spans.length === 0 || !isSound(field)) continue;
    if (end - first > REGISTERS_WRITTEN_MAX)
      faults.push({
        path: [field],
        message: `its block has ${end - first} registers; one write carries ${REGISTERS_WRITTEN_MAX}`,
      });
    else
      for (let address = first; address < end; address += 1)
        if (!covered.has(address))
          faults.push({
            path: [field],
            message: `no field has register ${hex(address)}, and the block from ${hex(first)} to ${hex(end - 1)} is written whole`,
          });
  }
  return faults;
}

function pulseSpans({ id, relay, milliseconds }: Extract<Profile['pulse'], { way: 'block' }>) {
  return [
    { address: id.address, quantity: 1 },
    { address: relay.address, quantity: 1 },
    { address: milliseconds.address, quantity: milliseconds.registers },
  ];
}

/** Of fields that are there. */
function impossibleFields({
  identity,
  inputs,
  outputs,
  inputEdges,
  inputCounters,
  settings,
  pulse,
}: Profile): ProfileFault[] {
  const faults: ProfileFault[] = [];
  const wrong = (path: PropertyKey[], message: string) => faults.push({ path, message });
  if ((identity.hwId?.registers ?? 0) > HW_ID_REGISTERS_MAX)
    wrong(
      ['identity', 'hwId', 'registers'],
      `must be up to ${HW_ID_REGISTERS_MAX}: a name has up to 64 characters`,
    );
  for (const field of ['inForce', 'version'] as const)
    if (settings && settings[field].registers !== 2)
      wrong(['settings', field, 'registers'], 'must be 2: a version has 32 bits');
  if (outputs?.each && isBitTable(outputs.table))
    wrong(['outputs', 'each'], 'is for registers: each coil is one anyhow');
  if (inputs?.each && isBitTable(inputs.table))
    wrong(['inputs', 'each'], 'is for registers: each coil is one anyhow');
  if (pulse?.way === 'command') faults.push(...commandFaults(pulse, outputs?.count ?? 1));
  if (pulse && (pulse.way === 'flash' || pulse.way === 'switched') && outputs && outputs.table !== 'coil')
    wrong(
      ['outputs', 'table'],
      pulse.way === 'switched'
        ? 'must be coil, for the pulse switches them'
        : 'must be coil: a relay that the device does not open after its time is switched off',
    );
  if (inputEdges && inputs && inputEdges.count !== inputs.count)
    wrong(['inputEdges', 'count'], `must be that of inputs, ${inputs.count}`);
  if (inputCounters && inputs && inputCounters.count !== inputs.count)
    wrong(['inputCounters', 'count'], `must be that of inputs, ${inputs.count}`);
  if (inputCounters && inputEdges)
    wrong(['inputCounters'], 'is for a product without inputEdges: one of them says what was counted');
  return faults;
}

function commandFaults(
  { address, on, off, unitsMax }: Extract<Profile['pulse'], { way: 'command' }>,
  relays: number,
): ProfileFault[] {
  const faults: ProfileFault[] = [];
  const wrong = (field: string, message: string) => faults.push({ path: ['pulse', field], message });
  if (address + relays > ADDRESSES)
    wrong('address', `reaches to ${address + relays - 1}; the last address is 65535 (0xFFFF)`);
  if (on + unitsMax > REGISTER_MAX)
    wrong(
      'unitsMax',
      `is too much: the command with its time would be ${on + unitsMax}, and a register takes 65535`,
    );
  if (off >= on && off <= on + unitsMax)
    wrong('off', `closes the relay: the commands ${hex(on)} to ${hex(on + unitsMax)} do`);
  return faults;
}

/** A watchdog that is not enabled opens no relay, one that is not fed opens it without reason, one that cannot be read is none. */
function watchdogFaults({ pulse }: Profile): ProfileFault[] {
  if (pulse?.way !== 'switched') return [];
  const { milliseconds, time, release, enabledBy, enable, inForce, fedBy, feed } = pulse.watchdog;
  const faults: ProfileFault[] = [];
  const wrong = (path: PropertyKey[], message: string) =>
    faults.push({ path: ['pulse', 'watchdog', ...path], message });
  const timeFault = impossibleTime(milliseconds, time);
  if (timeFault) wrong(['milliseconds'], timeFault);
  if (enabledBy === 'writes' && enable.length === 0) wrong(['enable'], 'is needed where enabledBy is writes');
  if (enabledBy === 'time' && enable.length > 0) wrong(['enable'], 'is for enabledBy: writes');
  if (enabledBy === 'writes' && inForce.length === 0)
    wrong(
      ['inForce'],
      'is needed: what cannot be read back is no watchdog. Name what shows that it is enabled',
    );
  else if (enabledBy === 'writes' && !inForce.some(({ shows }) => shows === 'enabled'))
    for (const [index, unread] of unreadSteps(enable, inForce))
      wrong(
        ['enable', index],
        `writes ${unread}, which inForce does not read back. Add that there, or mark the status of the watchdog there with shows: enabled`,
      );
  if (fedBy === 'writes' && !feed) wrong(['feed'], 'is needed where fedBy is writes');
  if (fedBy === 'requests' && feed) wrong(['feed'], 'is for fedBy: writes');
  for (const [field, steps] of [
    ['release', release],
    ['enable', enable],
    ['inForce', inForce],
  ] as const)
    for (const [index, { table, value }] of steps.entries())
      if (isBitTable(table) && value > 1) wrong([field, index, 'value'], 'must be 0 or 1: a coil is one bit');
  return faults;
}

/** What its register cannot say. */
function impossibleTime(
  milliseconds: number,
  { unitMilliseconds: unit, unitsMax = REGISTER_MAX }: Watchdog['time'],
): string | undefined {
  const most = unit * unitsMax;
  if (milliseconds > most) return `is more than its register takes: ${unitsMax} units are ${most} ms`;
  if (milliseconds % unit === 0) return undefined;
  const lower = Math.floor(milliseconds / unit) * unit;
  const fit = [lower, lower + unit].filter((one) => one >= WATCHDOG_MIN_MS && one <= most);
  return `must be a multiple of unitMilliseconds, ${unit}: for example ${fit.join(' or ')}`;
}

/** What enable leaves at places that `inForce` does not have: the first of each step. */
function unreadSteps(enable: Watchdog['enable'], inForce: Watchdog['inForce']): [number, string][] {
  return enable.flatMap((step, index): [number, string][] => {
    const written = Array.from({ length: step.count }, (_, offset) => step.address + offset);
    const isOverwritten = (address: number) =>
      enable
        .slice(index + 1)
        .some(
          (later) =>
            later.table === step.table && later.address <= address && address < later.address + later.count,
        );
    const isRead = (address: number) =>
      inForce.some(
        (place) => place.table === step.table && place.address === address && place.value === step.value,
      );
    const unread = written.find((address) => !isOverwritten(address) && !isRead(address));
    return unread === undefined ? [] : [[index, `${step.value} to ${step.table} ${hex(unread)}`]];
  });
}

function missing({ inputs, outputs, inputEdges, inputCounters, settings, pulse }: Profile): ProfileFault[] {
  const faults: ProfileFault[] = [];
  const wrong = (path: PropertyKey[], message: string) => faults.push({ path, message });
  if (!inputs && !outputs) wrong([], 'has neither inputs nor outputs');
  if (outputs && !pulse && !outputs.readOnly)
    wrong(['outputs'], 'needs pulse: how a relay is closed for a time; or readOnly, where none may be fired');
  if (outputs?.readOnly && pulse) wrong(['pulse'], 'is for outputs that are not readOnly');
  if (pulse && !outputs) wrong(['pulse'], 'needs outputs: the relays, to see that one has closed');
  if (inputEdges && !inputs) wrong(['inputEdges'], 'needs inputs');
  if (inputCounters && !inputs) wrong(['inputCounters'], 'needs inputs');
  if (inputEdges && !settings?.useInputPinMemory)
    wrong(['inputEdges'], 'needs settings.useInputPinMemory, which turns them on');
  if (settings?.useInputPinMemory && !inputEdges && !inputCounters)
    wrong(['settings', 'useInputPinMemory'], 'needs inputEdges, which show what was remembered');
  if (settings?.inputsInUse && !inputs) wrong(['settings', 'inputsInUse'], 'needs inputs');
  if (settings?.outputsInUse && !outputs) wrong(['settings', 'outputsInUse'], 'needs outputs');
  return faults;
}

function hex(address: number): string {
  return `0x${address.toString(16).toUpperCase().padStart(4, '0')}`;
}

/** Of a watchdog: what its profile says in one place undoes or contradicts another, so that it opens nothing, or another time later. */
function overwriteFaults({ pulse }: Profile): ProfileFault[] {
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
    const { table, address, value } = place;
    const other = inForce.findIndex((one) => one.table === table && one.address === address);
    const otherValue = inForce[other]?.value;
    if (otherValue !== value)
      wrong(
        ['inForce', index],
        `expects ${value} in ${table} ${hex(address)}, of which another place of inForce expects ${otherValue}`,
        ['inForce', other],
      );
    if (table !== 'holding' || place.shows) continue;
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
