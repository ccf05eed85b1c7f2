/** A simulated Zigbee gateway for tests, benches and the demo: a process that plays the stick and the locks around it. */
import { openChild } from '../child.ts';
import { callControl } from '../control.ts';
import type { LockState } from './lock.ts';
import type { GatewayChange, GatewayPlan, LockChange } from './plan.ts';
import type { GatewayStats } from './simulation.ts';
import type { JoinOutcome } from './stick/admissions.ts';

export interface SimulatedGateway extends AsyncDisposable {
  /** What a host opens: tcp://host:port, the link when the plan has one, or the pty. */
  readonly port: string;
  /** What its coordinator speaks. */
  readonly adapter: 'zstack' | 'ember';
  /** Where people look and change things, over HTTP (control.ts). */
  readonly control: string;
  readonly pid: number;
  /** Resolves when the process has ended, no matter who ended it. */
  readonly exited: Promise<unknown>;
  /** A lock or a router asks to join. */
  join(ieee: string): Promise<JoinOutcome>;
  /** Changes a lock and returns its state. Throws when there is none, or the change is wrong. */
  set(ieee: string, change: LockChange): Promise<LockState>;
  state(ieee: string): Promise<LockState>;
  setGateway(change: GatewayChange): Promise<GatewayStats>;
  stats(): Promise<GatewayStats>;
  /** Drops the connection; the host may connect again at once, over a pty without link at a new `port`. */
  drop(): Promise<void>;
  /** The stick hears nothing and says nothing, also to a host that connects; until `hang(false)`. */
  hang(on: boolean): Promise<void>;
  /** The stick resets itself, and says so. */
  selfReset(): Promise<void>;
  /** It has no room for the next so many requests to send. */
  fill(requests: number): Promise<void>;
  /** Pulls the adapter. */
  hangUp(): Promise<void>;
  replug(): Promise<void>;
}

const MAIN = `${import.meta.dirname}/main.ts`;

export async function openSimulatedGateway(plan: GatewayPlan): Promise<SimulatedGateway> {
  await using stack = new AsyncDisposableStack();
  const child = stack.use(openChild<{ port: string; control: string }>({ args: [MAIN, '-'] }));
  child.say(plan);
  const { port: first, control } = await child.waitFor(() => true);
  let port = first;
  const open = stack.move();
  async function setGateway(change: GatewayChange): Promise<GatewayStats> {
    const stats = await callControl<GatewayStats>(control, 'POST', '/', change);
    if (change.plugged !== false) ({ port } = stats);
    return stats;
  }

  return {
    get port() {
      return port;
    },
    adapter: plan.adapter ?? 'zstack',
    control,
    pid: child.pid,
    exited: child.exited,
    async join(ieee) {
      return (await callControl<{ outcome: JoinOutcome }>(control, 'POST', `/locks/${ieee}/join`)).outcome;
    },
    set: (ieee, change) => callControl(control, 'POST', `/locks/${ieee}`, change),
    state: (ieee) => callControl(control, 'GET', `/locks/${ieee}`),
    setGateway,
    stats: () => callControl(control, 'GET', '/'),
    drop: async () => void (await setGateway({ drop: true })),
    hang: async (on) => void (await setGateway({ silent: on })),
    selfReset: async () => void (await setGateway({ selfReset: true })),
    fill: async (full) => void (await setGateway({ full })),
    hangUp: async () => void (await setGateway({ plugged: false })),
    replug: async () => void (await setGateway({ plugged: true })),
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  };
}
