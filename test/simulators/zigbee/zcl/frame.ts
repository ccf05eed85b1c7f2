/** Frames of ZCL (07-5123-08, 2.4). */
import { bytes, openReader, u16 } from '../bytes.ts';

export interface ZclFrame {
  /** Foundation commands are for every cluster. */
  isFoundation: boolean;
  fromServer: boolean;
  disableDefaultResponse: boolean;
  manufacturer?: number;
  tsn: number;
  command: number;
  payload: Buffer;
}

/** Undefined: it is no such frame. */
export function decodeZcl(data: Buffer): ZclFrame | undefined {
  try {
    const input = openReader(data);
    const control = input.u8();
    if ((control & 0x03) > 1) return undefined;
    const manufacturer = control & 0x04 ? input.u16() : undefined;
    return {
      isFoundation: (control & 0x03) === 0,
      fromServer: (control & 0x08) !== 0,
      disableDefaultResponse: (control & 0x10) !== 0,
      ...(manufacturer !== undefined && { manufacturer }),
      tsn: input.u8(),
      command: input.u8(),
      payload: input.rest(),
    };
  } catch {
    return undefined;
  }
}

export function encodeZcl(frame: ZclFrame): Buffer {
  const { manufacturer } = frame;
  const control =
    (frame.isFoundation ? 0 : 1) |
    (manufacturer === undefined ? 0 : 0x04) |
    (frame.fromServer ? 0x08 : 0) |
    (frame.disableDefaultResponse ? 0x10 : 0);
  const code = manufacturer === undefined ? [] : [u16(manufacturer)];
  return bytes(control, ...code, frame.tsn, frame.command, frame.payload);
}

export const ZCL_STATUS = {
  success: 0x00,
  failure: 0x01,
  malformed: 0x80,
  unsupportedCommand: 0x81,
  unsupportedManufacturerCommand: 0x83,
  invalidField: 0x85,
  unsupportedAttribute: 0x86,
  invalidValue: 0x87,
  readOnly: 0x88,
  insufficientSpace: 0x89,
  notFound: 0x8b,
  unreportable: 0x8c,
  invalidType: 0x8d,
  unsupportedCluster: 0xc3,
  abort: 0x95,
  invalidImage: 0x96,
  waitForData: 0x97,
  noImage: 0x98,
} as const;
