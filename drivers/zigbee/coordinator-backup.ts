/**
 * The backup of a coordinator: open-coordinator-backup v1 as zigbee-herdsman writes it. For EmberZNet it has the IEEE address
 * and the extended PAN id with the lowest byte first, for Z-Stack with the highest: the same text is another network on the
 * air. The link keys of locks are made of a seed by Z-Stack, and of a root key by EmberZNet. On the disk it is sealed.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { z } from 'zod';
import { channel } from '../contract/settings.ts';

export type CoordinatorMake = 'zstack' | 'ember';

export interface NetworkIds {
  panId: number;
  /** As the library was given it when the network was formed. */
  extPanId: string;
  networkKey: string;
}

const KEY_BYTES = 16;
const ieeeHex = z.string().regex(/^[0-9a-f]{16}$/i);
const keyHex = z.string().regex(/^[0-9a-f]{32}$/i);
const counter = z.int().min(0).max(0xff_ff_ff_ff);

/** The parts that identify the network, and those without which the library does not start. */
const backupSchema = z.looseObject({
  metadata: z.looseObject({
    format: z.literal('zigpy/open-coordinator-backup'),
    version: z.literal(1),
    internal: z.looseObject({ date: z.string().optional() }).optional(),
  }),
  stack_specific: z
    .looseObject({
      zstack: z.looseObject({ tclk_seed: keyHex.optional() }).optional(),
      ezsp: z.looseObject({ hashed_tclk: keyHex.optional() }).optional(),
    })
    .optional(),
  coordinator_ieee: ieeeHex,
  pan_id: z.string(),
  extended_pan_id: z.string(),
  channel,
  network_key: z.looseObject({ key: keyHex, sequence_number: counter, frame_counter: counter }),
  devices: z.array(
    z.looseObject({
      nwk_address: z.string().nullish(),
      ieee_address: ieeeHex,
      link_key: z.looseObject({ key: keyHex, rx_counter: counter, tx_counter: counter }).nullish(),
    }),
  ),
});
export type CoordinatorBackup = z.infer<typeof backupSchema>;

/** Undefined: it is none. */
export function backupOf(text: string | null | undefined): CoordinatorBackup | undefined {
  try {
    return backupSchema.safeParse(JSON.parse(text ?? '')).data;
  } catch {
    return undefined;
  }
}

/** Of the coordinator that it was made of. Undefined: it has nothing that keys are made of. */
function makeOf({ stack_specific: stack }: CoordinatorBackup): CoordinatorMake | undefined {
  if (stack?.ezsp?.hashed_tclk !== undefined) return 'ember';
  return stack?.zstack?.tclk_seed === undefined ? undefined : 'zstack';
}

export function belongs(text: string, { panId, extPanId, networkKey }: NetworkIds): boolean {
  const backup = backupOf(text);
  return (
    backup !== undefined &&
    Number.parseInt(backup.pan_id, 16) === panId &&
    [extPanId, reversed(extPanId)].includes(backup.extended_pan_id.toLowerCase()) &&
    backup.network_key.key.toLowerCase() === networkKey
  );
}

/** As the library is to be given it for a coordinator of this make, so that the network is the same on the air. */
export function extPanIdFor(
  make: CoordinatorMake,
  text: string | undefined,
  { extPanId }: NetworkIds,
): string {
  const backup = backupOf(text);
  if (!backup) return extPanId;
  const { extended_pan_id } = isOfOther(make, backup) ? turned(backup) : backup;
  return extended_pan_id.toLowerCase();
}

/**
 * As the library takes it for a coordinator of this make. `withoutKeys`: of one that is of the other make, the link keys of
 * locks are left out. A root key is drawn for EmberZNet: that of locks which join from now on.
 */
export function backupFor(make: CoordinatorMake, text: string, withoutKeys: boolean): unknown {
  const backup = backupOf(text);
  if (!backup || !isOfOther(make, backup)) return JSON.parse(text);
  const devices = withoutKeys ? [] : backup.devices;
  const root = { hashed_tclk: randomBytes(KEY_BYTES).toString('hex') };
  const stack_specific = make === 'ember' ? { ...backup.stack_specific, ezsp: root } : backup.stack_specific;
  return { ...turned(backup), devices, stack_specific };
}

function isOfOther(make: CoordinatorMake, backup: CoordinatorBackup): boolean {
  const from = makeOf(backup);
  return from !== undefined && from !== make;
}

function turned(backup: CoordinatorBackup): CoordinatorBackup {
  return {
    ...backup,
    coordinator_ieee: reversed(backup.coordinator_ieee),
    extended_pan_id: reversed(backup.extended_pan_id),
  };
}

const reversed = (hex: string) => Buffer.from(hex, 'hex').reverse().toString('hex');

const ALGORITHM = 'aes-256-gcm';
const PURPOSE = 'gatehouse coordinator backup';
const SEALING_KEY_BYTES = 32;
/** Random: 2^32 files under one key before it matters (SP 800-38D, 8.3). */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * A text that is sealed at rest: AES-256-GCM (NIST SP 800-38D) under a key derived (RFC 5869) from the network key, which the
 * daemon hands over at each start and keeps sealed itself. Anyone who has the file alone has no key of the network.
 */
export function seal(text: string, networkKey: string): Uint8Array {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, keyFrom(networkKey), nonce);
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]);
}

/** Undefined when it is damaged, or of another network. */
export function unseal(bytes: Uint8Array, networkKey: string): string | undefined {
  if (bytes.length < NONCE_BYTES + TAG_BYTES) return undefined;
  const nonce = bytes.subarray(0, NONCE_BYTES);
  const options = { authTagLength: TAG_BYTES };
  const decipher = createDecipheriv(ALGORITHM, keyFrom(networkKey), nonce, options);
  decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
  try {
    const text = decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES));
    return Buffer.concat([text, decipher.final()]).toString('utf8');
  } catch {
    return undefined;
  }
}

const keyFrom = (networkKey: string) =>
  Buffer.from(hkdfSync('sha256', Buffer.from(networkKey, 'hex'), '', PURPOSE, SEALING_KEY_BYTES));
