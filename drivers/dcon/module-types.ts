/**
 * The modules that come with Gatehouse, by the name they give to $AAM. A site adds others by files (`moduleTypes` of the link), in the same words.
 *
 * **Relays need a watchdog.** DCON modules do not time a pulse: the gateway switches on and off. So that a dead gateway
 * leaves no door open, an output is only ever switched on where the module itself switches it off when it hears nothing
 * any more. A module without such a watchdog is read, its outputs are kept off, and a pulse is REFUSED.
 */

import { z } from 'zod';
import { type ModuleType, moduleTypeShape } from './module-shape.ts';

const ADAM_4000 =
  "Advantech, ADAM 4000 Series User's Manual, 4 (command tables), 7 ($AA6, #AABB, $AA5, $AAX0)";
const ADAM_4100 = "Advantech, ADAM 4100 Series User's Manual, 4.6.3 to 4.6.7";
/**
 * The outputs come first, as in the example of the EX-9060D manual, a copy of the I-7060; the example in 2.8 of the DIO
 * manual can be read the other way round. The tables of its section 1.9 would settle it; they were not to be had. So
 * compare the levels in `…/state` with a module of a kind that is new to a site before a door hangs on it.
 */
const ICP_DAS = 'ICP DAS, I-7000 DIO Manual, 2.3, 2.8, 2.13; expertDAQ, EX-9060D manual, 2.14';

const adam = { watchdog: null, resetStatus: true, latch: false, source: ADAM_4000 } as const;
const icpDas = { watchdog: 'host', resetStatus: true, latch: true, source: ICP_DAS } as const;
const outputs = (count: number) => ({ byte: 0, count }) as const;
const inputs = (count: number) => ({ byte: 1, count }) as const;

export const MODULE_TYPES: readonly ModuleType[] = [
  // Its command table has no $AAX0.
  { ...adam, product: 'ADAM-4050', names: ['4050'], outputs: outputs(8), inputs: inputs(7) },
  // 16 inputs; the lower eight are the second byte.
  { ...adam, product: 'ADAM-4051', names: ['4051'], outputs: null, inputs: inputs(8) },
  {
    ...adam,
    product: 'ADAM-4055',
    names: ['4055'],
    outputs: outputs(8),
    inputs: inputs(8),
    watchdog: 'safety',
  },
  { ...adam, product: 'ADAM-4060', names: ['4060'], outputs: outputs(4), inputs: null, watchdog: 'safety' },
  { ...adam, product: 'ADAM-4068', names: ['4068'], outputs: outputs(8), inputs: null, watchdog: 'safety' },
  {
    product: 'ADAM-4150',
    names: ['4150'],
    outputs: outputs(8),
    inputs: inputs(7),
    watchdog: 'safety',
    resetStatus: false,
    latch: false,
    source: ADAM_4100,
  },
  {
    product: 'ADAM-4168',
    names: ['4168'],
    outputs: outputs(8),
    inputs: null,
    watchdog: 'safety',
    resetStatus: false,
    latch: false,
    source: ADAM_4100,
  },
  { ...icpDas, product: 'I-7050', names: ['7050', '7050D'], outputs: outputs(8), inputs: inputs(7) },
  { ...icpDas, product: 'I-7060', names: ['7060', '7060D'], outputs: outputs(4), inputs: inputs(4) },
  {
    ...icpDas,
    product: 'I-7063',
    names: ['7063', '7063D', '7063A', '7063AD', '7063B', '7063BD'],
    outputs: outputs(3),
    inputs: inputs(8),
  },
  {
    ...icpDas,
    product: 'I-7065',
    names: ['7065', '7065D', '7065A', '7065AD', '7065B', '7065BD'],
    outputs: outputs(5),
    inputs: inputs(4),
  },
  {
    ...icpDas,
    product: 'I-7066',
    names: ['7066', '7066D'],
    outputs: outputs(7),
    inputs: null,
    latch: false,
  },
  {
    ...icpDas,
    product: 'I-7067',
    names: ['7067', '7067D'],
    outputs: outputs(7),
    inputs: null,
    latch: false,
  },
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
