/** A simulated bus as a process of its own (program.ts); --help says how. */
import { runSimulation } from '../program.ts';
import { openControl } from './control.ts';
import { planSchema } from './plan.ts';
import { openSimulation } from './simulation.ts';

await runSimulation({
  program: 'test/simulators/bus/main.ts',
  what: 'an RS-485 bus with devices',
  schema: planSchema,
  async open(plan, stack) {
    const simulation = stack.use(await openSimulation(plan));
    const control = stack.use(await openControl(simulation, plan));
    return { port: simulation.port, control: control.url };
  },
});
