/**
 * The vocabulary of DCON modules, and those that come with Gatehouse, by the name they give to $AAM. A site adds others by files
 * (`moduleTypes` of the link), in the same words.
 *
 * **Relays need a watchdog.** DCON modules do not time a pulse: the gateway switches on and off. So that a dead gateway
 * leaves no door open, an output is only ever switched on where the module itself switches it off when it hears nothing
 * any more. A module without such a watchdog is read, its outputs are kept off, and a pulse is REFUSED.
 */
import { z } from 'zod';

const channels = z.strictObject({
  byte: z.literal([0, 1]).describe('Of the reply to $AA6, which is ! and three bytes'),
  count: z.int().min(1).max(8).describe('How many of its lowest bits are wired'),
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

const ADAM_4000 =
  "Advantech, ADAM 4000 Series User's Manual, 4 (command tables), 7 ($AA6, #AABB, $AA5, $AAX0)";
const ADAM_4100 = "Advantech, ADAM 4100 Series User's Manual, 4.6.3 to 4.6.7";
/**
 * The outputs come first, as in the example of the EX-9060D manual, a copy of the I-7060; the example in 2.8 of the DIO
 * manual can be read the other way round. The tables of its section 1.9 would settle it; they were not to be had. So
 * compare the levels in `…/state` with a module of a kind that is new to a site before a door hangs on it.
 */
const ICP_DAS = 'ICP DAS, I-7000 DIO Manual, 2.3, 2.8, 2.13; expertDAQ, EX-9060D manual, 2.14';

const adam = { watchdog: 'safety', resetStatus: true, latch: false, source: ADAM_4000 } as const;
const adam4100 = { ...adam, resetStatus: false, source: ADAM_4100 } as const;
const icpDas = { watchdog: 'host', resetStatus: true, latch: true, source: ICP_DAS } as const;
const noInputs = { ...icpDas, inputs: null, latch: false } as const;
/** With a display (D), and with other relays (A, B). */
const VARIANTS = ['', 'D', 'A', 'AD', 'B', 'BD'];
const named = (number: string, variants: readonly string[]) => variants.map((variant) => number + variant);
const outputs = (count: number) => ({ byte: 0, count }) as const;
const inputs = (count: number) => ({ byte: 1, count }) as const;

export const MODULE_TYPES: readonly ModuleType[] = [
  // Its command table has no $AAX0.
  { ...adam, product: 'ADAM-4050', names: ['4050'], watchdog: null, outputs: outputs(8), inputs: inputs(7) },
  // 16 inputs; the lower eight are the second byte.
  { ...adam, product: 'ADAM-4051', names: ['4051'], watchdog: null, outputs: null, inputs: inputs(8) },
  { ...adam, product: 'ADAM-4055', names: ['4055'], outputs: outputs(8), inputs: inputs(8) },
  { ...adam, product: 'ADAM-4060', names: ['4060'], outputs: outputs(4), inputs: null },
  { ...adam, product: 'ADAM-4068', names: ['4068'], outputs: outputs(8), inputs: null },
  { ...adam4100, product: 'ADAM-4150', names: ['4150'], outputs: outputs(8), inputs: inputs(7) },
  { ...adam4100, product: 'ADAM-4168', names: ['4168'], outputs: outputs(8), inputs: null },
  { ...icpDas, product: 'I-7050', names: named('7050', ['', 'D']), outputs: outputs(8), inputs: inputs(7) },
  { ...icpDas, product: 'I-7060', names: named('7060', ['', 'D']), outputs: outputs(4), inputs: inputs(4) },
  { ...icpDas, product: 'I-7063', names: named('7063', VARIANTS), outputs: outputs(3), inputs: inputs(8) },
  { ...icpDas, product: 'I-7065', names: named('7065', VARIANTS), outputs: outputs(5), inputs: inputs(4) },
  { ...noInputs, product: 'I-7066', names: named('7066', ['', 'D']), outputs: outputs(7) },
  { ...noInputs, product: 'I-7067', names: named('7067', ['', 'D']), outputs: outputs(7) },
];

const byName = new Map(MODULE_TYPES.flatMap((type) => type.names.map((name) => [name, type] as const)));

export function moduleTypeOf(name: string): ModuleType | null {
  return byName.get(name) ?? null;
}

/** `own`: of the site. */
export function moduleTypesWith(own: readonly ModuleType[]): (name: string) => ModuleType | null {
  return (name) => own.find(({ names }) => names.includes(name)) ?? moduleTypeOf(name);
}

/** The wired bits of all outputs. */
export function outputsOf(type: ModuleType): number {
  return (1 << (type.outputs?.count ?? 0)) - 1;
}

/** What cannot be true of a module, though each of its fields is well formed. */
export function moduleFaults({ names, inputs, outputs, watchdog, latch }: ModuleType) {
  const faults: { path: PropertyKey[]; message: string }[] = [];
  const wrong = (path: PropertyKey[], message: string) => faults.push({ path, message });
  for (const [index, name] of names.entries()) {
    const shipped = moduleTypeOf(name);
    if (shipped)
      wrong(['names', index], `${name} is the name of the ${shipped.product}, which comes with Gatehouse`);
    if (names.indexOf(name) < index) wrong(['names', index], `${name} is there twice`);
  }
  if (!inputs && !outputs) wrong([], 'has neither inputs nor outputs');
  if (inputs && outputs && inputs.byte === outputs.byte)
    wrong(['inputs', 'byte'], 'is that of outputs: the reply to $AA6 has a byte for each');
  if (watchdog && !outputs) wrong(['watchdog'], 'needs outputs, which it switches off');
  if (latch && !inputs) wrong(['latch'], 'needs inputs, which it remembers');
  return faults;
}

export const moduleTypeSchema = moduleTypeShape.superRefine((type, context) => {
  for (const { path, message } of moduleFaults(type))
    context.addIssue({ code: 'custom', path, message, input: type });
});

/** What editors check the file of a module against; config/profiles/dcon-module.schema.json is this. */
export function moduleJsonSchema(): z.core.JSONSchema.BaseSchema {
  return { title: 'DCON module', ...z.toJSONSchema(moduleTypeSchema, { io: 'input' }) };
}
