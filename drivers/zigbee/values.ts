/** Values as locks report them, cleaned: what is missing, out of range or of another type is undefined. */

/** Characters of a text that is passed on. */
const TEXT_MAX = 128;

/**
 * An integer from `least` to `most`. The library makes NaN of ZCL's "invalid value" (ZCL rev. 8, 2.6.2: 0xff of an
 * enumeration, 0xffff of a uint16), which is a missing value.
 */
export function integer(value: unknown, least: number, most: number): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most
    ? value
    : undefined;
}

/** Of a uint32; 0xffffffff is the invalid value. */
export const UINT32_LAST = 0xff_ff_ff_fe;

/** With 0x, and zeros in front as far as `digits`. */
export function hex(value: number, digits: number): string {
  return `0x${value.toString(16).padStart(digits, '0')}`;
}

/** Whether it is an IEEE address as this driver has them: 16 lower-case hex digits, highest byte first. */
export function isIeee(value: string): boolean {
  return /^[0-9a-f]{16}$/.test(value);
}

/** Without control characters, which locks pad with, and cut to what a report may hold; undefined when nothing is left. */
export function text(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined;
  const clean = value
    .slice(0, TEXT_MAX * 2)
    .replace(/[\p{Cc}\p{Cs}\uFFFD]/gu, '')
    .trim()
    .slice(0, TEXT_MAX);
  return clean === '' ? undefined : clean;
}

/** The field of an object, if it is one and has it itself. */
export function field(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as Record<string, unknown>)[name];
}

const LQI_MAX = 255;
/**
 * dBm of a frame, by the LQI of a CC26x2 or CC13x2: LQI = 255 × (RSSI + 90) / 85 (TI SIMPLELINK-CC13X2-26X2 SDK 4.40,
 * macRadio). 0 and 255 are where it clips.
 */
export function rssiOfLqi(lqi: number): number | undefined {
  return lqi <= 0 || lqi >= LQI_MAX ? undefined : Math.round(lqi / 3 - 90);
}
