/**
 * Products that are read, and whose relays are never fired, by their manuals: Moxa ioLogik E1214 (E1200 Series User's Manual,
 * "Modbus/TCP Default Address Mappings"), Advantech ADAM-4150 (ADAM-4100 Series User's Manual, appendix B.3), Seneca Z-D-IN (user
 * manual, 5.2) and Novus DigiRail-2R (communication manual, pages 3 and 4). Outputs can be written by somebody else.
 */
import { openPins, type Pins } from '../pins.ts';
import type { DevicePlan } from '../plan.ts';
import type { Device } from '../protocol.ts';
import { epochMs } from '../time.ts';
import { framed, pduOf } from './frame.ts';
import { answerFrom, type Field, type Maps, outputFields } from './map-server.ts';

type Kind = 'moxa-iologik-e1214' | 'advantech-adam-4150' | 'seneca-z-d-in' | 'novus-digirail-2r';
const CHANNELS: Record<Kind, { inputs: number; outputs: number }> = {
  'moxa-iologik-e1214': { inputs: 6, outputs: 6 },
  'advantech-adam-4150': { inputs: 7, outputs: 8 },
  'seneca-z-d-in': { inputs: 5, outputs: 0 },
  'novus-digirail-2r': { inputs: 0, outputs: 2 },
};

export function openShown({ address }: DevicePlan, kind: Kind): Device {
  const channels = CHANNELS[kind];
  const pins = openPins({ ...channels, epoch: epochMs });
  const maps = mapsOf(kind, pins, channels);
  return {
    pins,
    answer(request, now) {
      pins.advance(now);
      return framed(address, answerFrom(pduOf(request), maps, now));
    },
    advance: (now) => pins.advance(now),
    restart(now) {
      for (let output = 0; output < channels.outputs; output += 1) pins.setOutput(output, false, now);
    },
    alarm: () => undefined,
    describe: () => ({}),
  };
}

function mapsOf(kind: Kind, pins: Pins, channels: { inputs: number; outputs: number }): Maps {
  const outputs = outputFields(pins, channels.outputs);
  const inputs = Array.from(
    { length: channels.inputs },
    (_, input): Field => ({ read: () => (pins.inputs() >> input) & 1 }),
  );
  const word = (value: () => number): Field => ({ read: value });
  switch (kind) {
    case 'moxa-iologik-e1214':
      return {
        coil: (at) => outputs[at],
        discrete: (at) => inputs[at],
        register: (at) => (at === 0x20 ? word(pins.outputs) : undefined),
        input: (at) => (at === 0x30 ? word(pins.inputs) : undefined),
      };
    case 'advantech-adam-4150': {
      const registers = new Map([
        [210, word(() => 0x4150)],
        [211, word(() => 0)],
        [300, word(pins.inputs)],
        [302, word(pins.outputs)],
      ]);
      return { coil: (at) => inputs[at] ?? outputs[at - 16], register: (at) => registers.get(at) };
    }
    case 'novus-digirail-2r': {
      const registers = new Map([
        [5, word(() => 204)],
        [7, word(pins.outputs)],
        [62, word(() => 3)],
      ]);
      return { coil: () => undefined, register: (at) => registers.get(at) };
    }
    case 'seneca-z-d-in': {
      const OVERFLOW_1 = 1 << 8;
      return {
        coil: () => undefined,
        register: (at) => (at === 1 ? word(() => OVERFLOW_1 | pins.inputs()) : undefined),
      };
    }
  }
}
