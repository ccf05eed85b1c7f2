/** Asks addresses who is there, and how well it can be heard. */
import { DriverError } from '../contract/driver.ts';
import type { Probed } from '../contract/rs485.ts';
import type { ProbeAsking } from '../rs485/link.ts';
import { openProber, type Prober, SILENT_ATTEMPTS } from '../rs485/prober.ts';
import { foreignProduct, PRODUCT_CODE, REVISION } from './contact-steps.ts';
import { exchangeOf } from './device.ts';
import { readIdentification } from './messages.ts';
import { identitySpans, pollSpans, productSpans } from './profile-areas.ts';
import type { Profile } from './profile-shape.ts';
import { EMPTY_IMAGE, type Image, readsOf, textAt, withRead } from './registers.ts';

type Result = Probed['results'][number];
type Identity = NonNullable<Result['identity']>;

const TEXT_MAX = 128;
/** A wire that damages every third reply spoils two readings of six. */
const IDENTITY_ATTEMPTS = 6;

/** `profile`: that of the address. */
export async function probeAddress(
  address: number,
  repeats: number,
  asking: ProbeAsking,
  profile: Profile,
  linkId: string,
): Promise<Result> {
  const prober = openProber(asking, true);
  const [span] = readsOf(profile.identity.hwId ? identitySpans(profile) : pollSpans(profile));
  if (!span) throw new DriverError('INVALID_OPTIONS', `profile ${profile.name} has nothing to read`);
  for (let asked = 0; asked < repeats; asked += 1) {
    if (!prober.hasHeard() && asked >= SILENT_ATTEMPTS) break;
    await prober.ask(exchangeOf(address, span));
  }
  const identity = prober.hasAnswered()
    ? await identify(profile, address, prober, `${linkId}-${address}`)
    : null;
  return { address, counters: prober.counters, turnaroundMs: prober.turnaround(), identity };
}

/**
 * By the profile; else by what the standard has; a product that says nothing of itself is known by its place. One whose
 * profile has a name in it is known by that alone, read twice: on a bad wire it stays unnamed rather than misnamed.
 */
async function identify(
  profile: Profile,
  address: number,
  prober: Prober,
  byPlace: string,
): Promise<Identity | null> {
  const { hwId, type, platformVersion } = profile.identity;
  let image = EMPTY_IMAGE;
  let claimed: string | undefined;
  for (let attempt = 0; attempt < IDENTITY_ATTEMPTS; attempt += 1) {
    const refusals = prober.counters.refusals;
    const read = await readAll(profile, address, prober);
    // It is another product.
    if (!read && prober.counters.refusals > refusals) return standard(address, byPlace, prober);
    if (!read) continue;
    image = read;
    if (foreignProduct(address, profile, image) !== undefined) return standard(address, byPlace, prober);
    const name = hwId ? textAt(image, hwId) : byPlace;
    if (hwId && (!name || name !== claimed)) {
      claimed = name;
      continue;
    }
    const text = (label: typeof hwId) => (label && textAt(image, label)) || null;
    return {
      hwId: name ?? byPlace,
      type: text(type) ?? profile.product,
      version: text(platformVersion),
      profile: profile.name,
    };
  }
  return null;
}

/** undefined: a part of it could not be read. */
async function readAll(profile: Profile, address: number, prober: Prober): Promise<Image | undefined> {
  let image = EMPTY_IMAGE;
  const spans = [
    ...productSpans(profile),
    ...identitySpans(profile),
    ...(profile.identity.hwId ? [] : pollSpans(profile)),
  ];
  for (const span of readsOf(spans)) {
    const values = await prober.ask(exchangeOf(address, span));
    if (!values) return undefined;
    image = withRead(image, span, values);
  }
  return image;
}

async function standard(address: number, hwId: string, prober: Prober): Promise<Identity | null> {
  const reported = await prober.ask(readIdentification(address, 0));
  if (!reported) return null;
  const text = (object: number) => reported.objects.get(object)?.slice(0, TEXT_MAX) ?? null;
  return { hwId, type: text(PRODUCT_CODE), version: text(REVISION), profile: null };
}
