/**
 * DER (X.690) and PEM (RFC 7468) as a stranger may send them: one level at a time, never recursive, nothing but the
 * canonical form. What cannot be read is a Malformed, whose message completes the sentence "it …".
 */

export class Malformed extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'Malformed';
  }
}

export const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  oid: 0x06,
  utf8String: 0x0c,
  printableString: 0x13,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const;

export interface Element {
  tag: number;
  content: Buffer;
  /** Tag, length and content. */
  encoded: Buffer;
}

/** Walks the elements of one constructed value in order. */
export interface Fields {
  /** The next element, which must carry this tag. */
  next(tag: number): Element;
  /** The next element if it carries this tag. */
  optional(tag: number): Element | undefined;
  /** What has not been taken. */
  rest(): Element[];
  /** Nothing may be left. */
  end(): void;
}

export function fieldsOf(content: Buffer): Fields {
  const elements = readElements(content);
  let at = 0;
  function optional(tag: number): Element | undefined {
    const element = elements[at];
    if (element?.tag !== tag) return undefined;
    at += 1;
    return element;
  }
  return {
    optional,
    next(tag) {
      const element = optional(tag);
      if (!element) throw new Malformed(`does not have the structure it should (no 0x${tag.toString(16)})`);
      return element;
    },
    rest: () => elements.slice(at),
    end() {
      if (at < elements.length) throw new Malformed('has more content than its structure allows');
    },
  };
}

/** All elements that lie side by side in `content`, which they must fill exactly. */
function readElements(content: Buffer): Element[] {
  const elements: Element[] = [];
  for (let offset = 0; offset < content.length; ) {
    const element = readElement(content.subarray(offset));
    elements.push(element);
    offset += element.encoded.length;
  }
  return elements;
}

function readElement(bytes: Buffer): Element {
  const [tag, first] = bytes;
  if (tag === undefined || first === undefined) throw new Malformed('ends too early');
  if ((tag & 0x1f) === 0x1f) throw new Malformed('uses a tag that no certificate has');
  // Three length bytes reach 16 MiB, beyond any limit of ours; 0x80 is the indefinite form, which DER forbids.
  const lengthBytes = first < 0x80 ? 0 : first - 0x80;
  if (first === 0x80 || lengthBytes > 3) throw new Malformed('has a length that DER does not allow');
  if (bytes.length < 2 + lengthBytes) throw new Malformed('ends too early');
  const length = lengthBytes === 0 ? first : bytes.readUIntBE(2, lengthBytes);
  const wasteful = lengthBytes > 0 && (bytes[2] === 0 || length < 0x80);
  if (wasteful) throw new Malformed('has a length that DER does not allow');
  const end = 2 + lengthBytes + length;
  if (bytes.length < end) throw new Malformed('ends too early');
  return { tag, content: bytes.subarray(2 + lengthBytes, end), encoded: bytes.subarray(0, end) };
}

/** Dotted decimal, such as 2.5.29.19. */
export function decodeOid(content: Buffer): string {
  const arcs: bigint[] = [];
  let arc = 0n;
  let started = false;
  for (const byte of content) {
    if (!started && byte === 0x80) throw new Malformed('has a malformed object identifier');
    arc = (arc << 7n) | BigInt(byte & 0x7f);
    started = byte >= 0x80;
    if (started) continue;
    arcs.push(arc);
    arc = 0n;
  }
  const [head, ...tail] = arcs;
  if (started || head === undefined) throw new Malformed('has a malformed object identifier');
  const root = head < 80n ? head / 40n : 2n;
  return [root, head - root * 40n, ...tail].join('.');
}

/** True or false; DER writes true as 0xff, and older encoders write an explicit false where DER leaves it out. */
export function decodeBoolean(content: Buffer): boolean {
  if (content.length !== 1 || (content[0] !== 0x00 && content[0] !== 0xff)) {
    throw new Malformed('has a malformed boolean');
  }
  return content[0] === 0xff;
}

export interface PemBlock {
  /** Such as CERTIFICATE. */
  label: string;
  der: Buffer;
}

/**
 * Every block of a PEM text, in order; half a block is refused. Around the blocks, `bare` allows white space alone, else
 * there may be explanations (RFC 7468 2), as files of authorities have them.
 */
export function readPem(text: string, { bare }: { bare: boolean }): PemBlock[] {
  // Outside, "BEGIN …", body, "END …", outside, … : linear however the text is made.
  const parts = text.split('-----');
  if (parts.length % 4 !== 1) throw new Malformed('has an incomplete PEM block');
  if (bare && parts.some((part, at) => at % 4 === 0 && part.trim() !== ''))
    throw new Malformed('has text beside its PEM blocks');
  const blocks: PemBlock[] = [];
  for (let at = 1; at < parts.length; at += 4) {
    const [begin = '', body = '', end = ''] = parts.slice(at, at + 3);
    const label = /^BEGIN ([A-Z0-9 ]{1,40})$/.exec(begin)?.[1];
    if (!label || end !== `END ${label}`) throw new Malformed('has PEM lines that do not match');
    blocks.push({ label, der: decodeBase64(body) });
  }
  return blocks;
}

/** Standard alphabet, padded; line breaks and blanks are skipped. */
export function decodeBase64(text: string): Buffer {
  const packed = text.replace(/\s+/g, '');
  if (packed === '' || packed.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(packed)) {
    throw new Malformed('is not valid base64');
  }
  return Buffer.from(packed, 'base64');
}
