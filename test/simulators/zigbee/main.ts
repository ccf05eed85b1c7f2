/** A simulated Zigbee network as a process of its own (program.ts); --help says how. */
import { runSimulation } from '../program.ts';
import { openControl } from './control.ts';
import { planSchema } from './plan.ts';
import { openSimulation } from './simulation.ts';

await runSimulation({
  program: 'test/simulators/zigbee/main.ts',
  what: 'a Zigbee coordinator with locks',
  schema: planSchema,
  async open(plan, stack) {
    const simulation = stack.use(await openSimulation(plan));
    const control = stack.use(await openControl(simulation));
    return { port: simulation.port, control: control.url };
  },
});
