/** EmberApsFrame. */
import { bytes, type Reader, u16 } from '../bytes.ts';

export interface ApsHead {
  profile: number;
  cluster: number;
  sourceEndpoint: number;
  endpoint: number;
  options: number;
  group: number;
}

/** Addresses from here on are those of broadcasts (Zigbee specification, 3.6.5). */
export const BROADCASTS_FROM = 0xfff8;

export function readApsFrame(input: Reader): ApsHead {
  const [profile, cluster] = [input.u16(), input.u16()];
  const [sourceEndpoint, endpoint] = [input.u8(), input.u8()];
  const [options, group] = [input.u16(), input.u16()];
  input.u8();
  return { profile, cluster, sourceEndpoint, endpoint, options, group };
}

export function apsFrame(
  { profile, cluster, sourceEndpoint, endpoint, options, group }: ApsHead,
  sequence: number,
): Buffer {
  return bytes(u16(profile), u16(cluster), sourceEndpoint, endpoint, u16(options), u16(group), sequence);
}
