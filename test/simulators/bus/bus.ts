/** A simulated RS-485 bus for tests, benches and the demo: a process that plays the wire and its devices. */
import { openChild } from '../child.ts';
import { callControl } from '../control.ts';
import type { BusChange, BusPlan, DeviceChange } from './plan.ts';
import type { BusStats } from './simulation.ts';
import type { DeviceState } from './station.ts';

export interface SimulatedBus extends AsyncDisposable {
  /** What a gateway opens: the link when the plan has one, the pty, or tcp://host:port. */
  readonly port: string;
  /** Where people look and change things, over HTTP (control.ts). */
  readonly control: string;
  readonly pid: number;
  /** Resolves when the process has ended, no matter who ended it. */
  readonly exited: Promise<unknown>;
  /** Changes a device and returns its state. Throws when there is none, or the change is wrong. */
  set(address: number, change: DeviceChange): Promise<DeviceState>;
  state(address: number): Promise<DeviceState>;
  setBus(change: BusChange): Promise<BusStats>;
  stats(): Promise<BusStats>;
  /** Pulls the adapter. */
  hangUp(): Promise<void>;
  /** Plugs it in again: at the same path when the plan has a link, else at a new `port`. */
  replug(): Promise<void>;
}

const MAIN = `${import.meta.dirname}/main.ts`;

export async function openSimulatedBus(plan: BusPlan): Promise<SimulatedBus> {
  await using stack = new AsyncDisposableStack();
  const child = stack.use(openChild<{ port: string; control: string }>({ args: [MAIN, '-'] }));
  child.say(plan);
  const { port: first, control } = await child.waitFor(() => true);
  let port = first;
  const open = stack.move();
  const setBus = (change: BusChange) => callControl<BusStats>(control, 'POST', '/', change);

  return {
    get port() {
      return port;
    },
    control,
    pid: child.pid,
    exited: child.exited,
    set: (address, change) => callControl(control, 'POST', `/devices/${address}`, change),
    state: (address) => callControl(control, 'GET', `/devices/${address}`),
    setBus,
    stats: () => callControl(control, 'GET', '/stats'),
    async hangUp() {
      await setBus({ plugged: false });
    },
    async replug() {
      await setBus({ plugged: true });
      ({ port } = await callControl<{ port: string }>(control, 'GET', '/'));
    },
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  };
}
