/** Modbus ASCII as a port of a bus: what leaves and comes back on it has the form of RTU above, and its characters below. */
import { bitsPerCharacter } from '../bus/options.ts';
import type { OpenPort } from '../bus/port.ts';
import { encodeAscii, openAsciiFrames } from './ascii-frame.ts';
import { CRC_LENGTH, wireFrame } from './frame.ts';

/** The shortest answer, of five bytes, has eleven characters: no frame has more of them for each byte. */
const CHARACTERS_PER_BYTE = 2.2;

/** `openPort`: of the serial line. */
export function modbusAsciiOver(openPort: OpenPort): OpenPort {
  return async (options, listener, context, signal) => {
    const take = openAsciiFrames();
    const { dataBits = 8 } = options;
    const bits = bitsPerCharacter(options);
    const port = await openPort(
      options,
      {
        data(bytes) {
          for (const { body, isSound } of take(bytes)) {
            const frame = wireFrame(body);
            const last = frame.length - 1;
            if (!isSound) frame[last] = ~(frame[last] ?? 0);
            listener.data(frame);
          }
        },
        lost: listener.lost,
      },
      context,
      signal,
    );
    const { retune } = port;
    return {
      name: port.name,
      warnings: port.warnings,
      paced: port.paced,
      diesUnnoticed: port.diesUnnoticed,
      charactersPerByte: (CHARACTERS_PER_BYTE * (bits - 8 + dataBits)) / bits,
      latencyMs: port.latencyMs,
      write: (bytes) => port.write(encodeAscii(bytes.subarray(0, -CRC_LENGTH))),
      ...(retune && { retune: (line) => retune.call(port, line) }),
      [Symbol.asyncDispose]: () => port[Symbol.asyncDispose](),
    };
  };
}
