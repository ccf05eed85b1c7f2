/** What a gateway and its hosts send once its time as the active one is over: nothing that moves. */
import { duplexPair } from 'node:stream';
import { expect, it, onTestFinished } from 'vitest';
import { type ManualClock, manualClock } from '../../../test/manual-clock.ts';
import { FAULTY_DRIVERS } from '../../../test/platform/field/faulty-drivers.ts';
import { actingUntil } from '../acting.ts';
import { silentLog } from '../log.ts';
import { openChannel } from './channel.ts';
import { openConversation } from './conversation.ts';
import { EXIT, serve } from './host/serve.ts';
import { type DaemonMessage, type HostMessage, parseDaemonMessage, parseHostMessage } from './ipc.ts';

const never = new AbortController().signal;
const pulse = { kind: 'pulse', data: {}, timeoutMs: 5_000 };

function daemonSide(clock: ManualClock, until: number) {
  const [near, far] = duplexPair();
  const conversation = openConversation({
    acting: actingUntil(() => until, 2_000, clock),
    stream: near,
    linkIds: new Set(['a']),
    listener: { link: () => undefined, report: () => undefined, event: async () => undefined },
    clock,
    log: silentLog,
  });
  onTestFinished(() => conversation[Symbol.dispose]());
  const heard: DaemonMessage[] = [];
  openChannel(far, parseDaemonMessage, (message) => void heard.push(message));
  return { conversation, heard };
}

it('a command is not sent after that time, and none is taken any more, also by a process that was stopped', async () => {
  const clock = manualClock();
  const { conversation, heard } = daemonSide(clock, 3_000);
  const commands = () => heard.filter((message) => message.type === 'command');
  conversation.execute('a', pulse, never).catch(() => undefined);
  conversation.execute('a', { ...pulse, movesNothing: true }, never).catch(() => undefined);
  await clock.advance(0);
  expect(commands().map(({ deadline }) => deadline)).toEqual([3_000, 5_000]);
  // Stopped, and awake: no timer has fired yet.
  clock.hold(3_000);
  await expect(conversation.execute('a', pulse, never)).rejects.toMatchObject({ code: 'LINK_LOST' });
  await clock.advance(0);
  expect(commands()).toHaveLength(2);
});

it('hosts know the time, and end by themselves when they wake after it', async () => {
  const daemon = manualClock();
  const { heard } = daemonSide(daemon, 9_000);
  await daemon.advance(500);
  expect(heard.findLast(({ type }) => type === 'heartbeat')).toEqual({ type: 'heartbeat', actsUntil: 7_000 });

  const clock = manualClock();
  const [near, far] = duplexPair();
  const code = serve({ stream: near, protocols: [], drivers: FAULTY_DRIVERS, clock, signal: never });
  const channel = openChannel<HostMessage, DaemonMessage>(far, parseHostMessage, () => undefined);
  void channel.send({ type: 'start', links: [] });
  void channel.send({ type: 'heartbeat', actsUntil: 2_000 });
  await clock.advance(1_400);
  clock.hold(20_000);
  await clock.advance(500);
  await expect(code).resolves.toBe(EXIT.orphan);
});
