/** The vocabulary of DCON modules: of those that come with Gatehouse (module-types.ts), and of a site's own, a YAML file each. */
import { z } from 'zod';

const CHANNELS_MAX = 8;
const channels = z.strictObject({
  byte: z.literal([0, 1]).describe('Of the reply to $AA6, which is ! and three bytes'),
  count: z.int().min(1).max(CHANNELS_MAX).describe('How many of its lowest bits are wired'),
});

export const moduleTypeShape = z.strictObject({
  protocol: z.literal('dcon').describe('Tells this file from a profile of Modbus'),
  product: z.string().min(1).max(64).describe('What it is called'),
  names: z
    .array(z.string().regex(/^[!-~]{1,16}$/, 'expected 1 to 16 printable characters'))
    .min(1)
    .max(16)
    .describe('What it says to $AAM, without its address'),
  source: z.string().min(1).max(1_024).describe('Its manual, with edition and sections'),
  outputs: channels.nullable().default(null).describe('1 is ON. Single ones by #AA1cdd, all by #AA00dd'),
  inputs: channels.nullable().default(null).describe('1 is what the manual calls HIGH; channels 0 and up'),
  watchdog: z
    .enum(['host', 'safety'])
    .nullable()
    .default(null)
    .describe(
      'What switches the outputs off when the gateway is silent. host: that of ICP DAS (~AA3EVV), fed by the broadcast ~**. safety: that of Advantech ($AAX0, $AAX1), fed by any command. Without one no relay is fired',
    ),
  resetStatus: z.boolean().default(true).describe('Answers $AA5: was it reset since it was last asked?'),
  latch: z
    .boolean()
    .default(false)
    .describe('Remembers inputs that were HIGH for a moment: $AAL1, cleared by $AAC'),
});

export type ModuleType = Omit<z.output<typeof moduleTypeShape>, 'protocol'>;
