/** Firmware of a lock: a Zigbee OTA upgrade file (ZCL rev. 8, 11.4.2 to 11.4.4). Looked at when it is asked for, and again before it is sent. */
import { readFile, stat } from 'node:fs/promises';

const IDENTIFIER = Buffer.of(0x1e, 0xf1, 0xee, 0x0b);
const HEADER_BYTES = 56;
/** Tag and length of a sub-element. */
const ELEMENT_HEADER_BYTES = 6;
/** In the SDK of Telink two bytes of flags stand behind the length and are not counted in it. */
const TELINK_AES = 0xf000;
/** Ten times what the memory of a lock holds. */
const FILE_MAX_BYTES = 16_000_000;

/** What a file says it is made for. */
export interface OtaImage {
  manufacturerCode: number;
  imageType: number;
  fileVersion: number;
}

/** undefined: there is no such file, it cannot be read, is no such image, or is damaged. */
export async function readOtaImage(path: string): Promise<OtaImage | undefined> {
  try {
    const { size } = await stat(path);
    return size > FILE_MAX_BYTES ? undefined : otaImage(await readFile(path));
  } catch {
    return undefined;
  }
}

/** undefined: it is not such a file, is cut short, or its elements do not fill it. Some makers put a wrapper of their own before the header. */
export function otaImage(file: Buffer): OtaImage | undefined {
  const start = file.indexOf(IDENTIFIER);
  if (start < 0 || file.length - start < HEADER_BYTES) return undefined;
  const size = file.readUInt32LE(start + 52);
  if (size > file.length - start) return undefined;
  const image = file.subarray(start, start + size);
  const headerBytes = image.length < HEADER_BYTES ? 0 : image.readUInt16LE(6);
  if (headerBytes < HEADER_BYTES || !isFilled(image.subarray(headerBytes))) return undefined;
  return {
    manufacturerCode: image.readUInt16LE(10),
    imageType: image.readUInt16LE(12),
    fileVersion: image.readUInt32LE(14),
  };
}

/** One element at least, each as long as it says, and nothing behind the last. */
function isFilled(elements: Buffer): boolean {
  let at = 0;
  while (at + ELEMENT_HEADER_BYTES <= elements.length) {
    const flagBytes = elements.readUInt16LE(at) === TELINK_AES ? 2 : 0;
    at += ELEMENT_HEADER_BYTES + flagBytes + elements.readUInt32LE(at + 2);
  }
  return at > 0 && at === elements.length;
}
