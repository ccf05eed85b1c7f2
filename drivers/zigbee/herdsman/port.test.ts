/** Coordinators that stop reading their port: what was written to them, they carry out whenever they wake. */
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import {
  CONFIRMED,
  folder,
  joined,
  LOCK,
  opened,
  simulated,
  unlockOf,
} from '../../../test/drivers/zigbee/gateway.ts';
import { openWire } from '../../../test/drivers/zigbee/wire.ts';
import { manualClock } from '../../../test/manual-clock.ts';
import type { SimulatedGateway } from '../../../test/simulators/zigbee/gateway.ts';
import { openGate } from './gate.ts';
import { guardPort, type Port } from './port.ts';

const unlock = unlockOf(LOCK);

const stops: { transport: 'tcp' | 'pty'; stop(site: SimulatedGateway, on: boolean): Promise<void> }[] = [
  {
    transport: 'tcp',
    stop: async ({ pid }, on) => void process.kill(pid, on ? 'SIGSTOP' : 'SIGCONT'),
  },
  { transport: 'pty', stop: async (site, on) => void (await site.setGateway({ reading: !on })) },
];
it.each(stops)('never opens a door when its coordinator wakes later, over $transport', async (one) => {
  const { transport, stop } = one;
  const link = transport === 'pty' ? { link: join(folder(), 'adapter') } : {};
  const site = await simulated({ transport, ...link, locks: [{ ieee: LOCK }] });
  const gateway = await opened(site);
  await joined(gateway, site);
  await stop(site, true);
  await expect(gateway.execute('unlock', unlock)).rejects.toMatchObject({
    code: 'DEVICE_OFFLINE',
    message: expect.stringContaining('not sent'),
  });
  await stop(site, false);
  // Written after it, and so carried out after it.
  await expect.poll(() => gateway.execute('unlock', unlock).catch(String)).toEqual(CONFIRMED);
  expect((await site.state(LOCK)).executed).toHaveLength(1);
});

it('loses a coordinator at once that does not take an unlock, with what it has not taken', async () => {
  const site = await simulated({ locks: [{ ieee: LOCK }] });
  const wire = await openWire(site.port);
  const gateway = await opened(wire);
  await joined(gateway, site);
  // Nothing but answers to a ping.
  wire.tamper = (frame) => (frame.type === 'SRSP' && frame.subsystem === 1 ? frame : undefined);
  await expect(gateway.execute('unlock', unlock)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
  expect(await gateway.ended).toMatchObject({ code: 'LINK_LOST' });
});

describe('a frame', () => {
  const listenerless = { on: () => undefined };
  /** A port that says what it is asked to, in order, as the library's does. */
  function openPort(answers: (command: string) => Promise<unknown>) {
    const written: string[] = [];
    let last: Promise<unknown> = Promise.resolve();
    const port: Port = {
      initialized: true,
      unpiWriter: listenerless,
      unpiParser: { ...listenerless, write: () => true },
      socketPort: undefined,
      onUnpiParsed: () => undefined,
      onPortClose: () => undefined,
      open: () => Promise.resolve(),
      waitress: { waiters: new Map(), remove: () => undefined },
      openSocketPort: () => Promise.resolve(),
      skipBootloader: () => Promise.resolve(),
      queue: {
        run: (write) => {
          last = last.then(write, write);
          return last;
        },
        clear: () => undefined,
      },
      request(_, command) {
        return this.queue.run(() => {
          written.push(command);
          return answers(command);
        });
      },
      close: vi.fn(() => Promise.resolve()),
    };
    const { passBy } = guardPort(port);
    const clock = manualClock();
    const send = (actuates: boolean, released?: Promise<void>) => {
      const gate = openGate({ timeout: 1 }, 2_000, clock, released && { released });
      void { ...(gate.payload as object) };
      const sent = passBy({ gate, actuates, clock }, () => port.request(4, 'dataRequest'));
      return { gate, sent: sent.then(() => 'taken', String) };
    };
    return { port, written, clock, send };
  }
  const never = new Promise<never>(() => undefined);

  it('that waits for its turn when the port closes fails and is not written', async () => {
    const { port, written } = openPort(() => never);
    await port.open();
    void port.request(1, 'first');
    const second = port.request(1, 'second');
    port.queue.clear();
    await expect(second).rejects.toThrow('the connection to the coordinator is gone');
    expect(written).toEqual(['first']);
  });

  it('that comes when the port is closed fails and is not written', async () => {
    const { port, written } = openPort(() => never);
    await port.open();
    port.initialized = false;
    await expect(port.request(1, 'late')).rejects.toThrow('the connection to the coordinator is gone');
    expect(written).toEqual([]);
  });

  it('that waits for its turn is written when the one before has failed', async () => {
    const { port, written } = openPort(async (command) => {
      if (command === 'first') throw new Error('it failed');
      return command;
    });
    await port.open();
    const requests = ['first', 'second', 'third'].map((command) => port.request(1, command).catch(String));
    expect(await Promise.all(requests)).toEqual(['Error: it failed', 'second', 'third']);
    expect(written).toEqual(['first', 'second', 'third']);
  });

  it('that opens a door is written behind a ping, any other at once', async () => {
    const { send, written } = openPort(() => Promise.resolve());
    expect(await send(true).sent).toBe('taken');
    expect(await send(false).sent).toBe('taken');
    expect(written).toEqual(['ping', 'dataRequest', 'dataRequest']);
  });

  it('that opens a door needs no ping of its own behind one of just now, and waits for its answer', async () => {
    const answered = Promise.withResolvers<void>();
    const { send, written, clock } = openPort((command) =>
      command === 'ping' ? answered.promise : Promise.resolve(),
    );
    const { sent: first } = send(true);
    await clock.advance(10);
    const { sent } = send(true);
    await clock.advance(0);
    expect(written).toEqual(['ping']);
    answered.resolve();
    expect(await Promise.all([first, sent])).toEqual(['taken', 'taken']);
    await clock.advance(11);
    expect(await send(true).sent).toBe('taken');
    expect(written).toEqual(['ping', 'dataRequest', 'dataRequest', 'ping', 'dataRequest']);
  });

  it('that is held is written once it is released, behind the ping of meanwhile', async () => {
    const { send, written, clock } = openPort(() => Promise.resolve());
    const hold = Promise.withResolvers<void>();
    const { sent, gate } = send(true, hold.promise);
    await clock.advance(20);
    expect([gate.state(), written]).toEqual(['made', ['ping']]);
    hold.resolve();
    expect(await sent).toBe('taken');
    expect(written).toEqual(['ping', 'dataRequest']);
  });

  it('that was held for long is written behind another ping, and not when that is not answered', async () => {
    let isReading = true;
    const { send, written, clock } = openPort(() => (isReading ? Promise.resolve() : never));
    const [hold, other] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const { sent } = send(true, hold.promise);
    await clock.advance(21);
    hold.resolve();
    expect(await sent).toBe('taken');
    expect(written).toEqual(['ping', 'ping', 'dataRequest']);
    await clock.advance(21);
    const { sent: unsent } = send(true, other.promise);
    await clock.advance(21);
    isReading = false;
    other.resolve();
    await clock.advance(1_000);
    expect(await unsent).toContain('does not answer');
    expect(written.slice(3)).toEqual(['ping', 'ping']);
  });

  it('that is not released in time is late, and not written when it is released then', async () => {
    const { send, written, clock } = openPort(() => Promise.resolve());
    const hold = Promise.withResolvers<void>();
    const { sent, gate } = send(true, hold.promise);
    await clock.advance(2_000);
    expect([await sent, gate.state()]).toEqual(['Error: the frame was not released in time', 'late']);
    hold.resolve();
    await clock.advance(0);
    expect(written).toEqual(['ping']);
    // Nor where no one waits for its release.
    expect(await send(false, hold.promise).sent).toContain('not released');
  });

  it('that is withdrawn while it is held is not written', async () => {
    const { send, written } = openPort(() => Promise.resolve());
    const { sent } = send(true, Promise.reject(new Error('withdrawn')));
    expect(await sent).toBe('Error: withdrawn');
    expect(written).toEqual(['ping']);
  });

  it('that opens a door is not written when the ping is not answered', async () => {
    const { send, written, clock, port } = openPort(() => never);
    const { sent, gate } = send(true);
    await clock.advance(1_000);
    expect([await sent, gate.state(), written]).toEqual([
      ...['Error: the coordinator does not answer', 'made', ['ping']],
    ]);
    expect(port.close).not.toHaveBeenCalled();
  });

  it('that opens a door takes the connection with it when it is not taken', async () => {
    const { send, clock, port } = openPort((command) => (command === 'ping' ? Promise.resolve() : never));
    const { sent, gate } = send(true);
    await vi.waitFor(() => expect(gate.state()).toBe('sent'));
    await clock.advance(1_000);
    expect(await sent).toContain('does not answer');
    expect(port.close).toHaveBeenCalledOnce();
  });

  it('is not written late behind requests that wait for their answers', async () => {
    const blocked = Promise.withResolvers<void>();
    const { port, send, written, clock } = openPort((command) =>
      command === 'other' ? blocked.promise : Promise.resolve(),
    );
    void port.request(1, 'other');
    const { sent, gate } = send(false);
    await clock.advance(2_001);
    blocked.resolve();
    expect([await sent, gate.state(), written]).toEqual([
      ...['Error: the time of the frame is over', 'late', ['other']],
    ]);
  });
});
