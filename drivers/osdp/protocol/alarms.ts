/**
 * What makes a device, or the wire to it, suspect: the incidents of exchanges (transmission.ts), and the alarms that come of them. One
 * forged reply raises its alarm at once; what a late reply or a restart can explain raises it when it happens again and again. An
 * alarm ends after a hundred answers with nothing odd about them. Pure.
 */
import { SECURITY_ALARMS } from '../../contract/rs485.ts';

export type Alarm = (typeof SECURITY_ALARMS)[number];

/** Those that a handshake which succeeds has disproved. */
const OF_HANDSHAKE: readonly Alarm[] = ['wrongKey', 'downgrade', 'securityRequired', 'keyRefused'];

export type Incident = 'forged' | 'clearText' | 'stale' | 'foreignAddress' | 'second' | 'lost' | 'lostLate';

const FULL = 100;
const WEIGHTS: Record<Incident, { alarm: Alarm; weight: number }> = {
  forged: { alarm: 'forged', weight: FULL },
  clearText: { alarm: 'clearText', weight: FULL },
  // A device that answers late does so now and then.
  stale: { alarm: 'replayed', weight: FULL / 10 },
  // So does one that is asked before us.
  foreignAddress: { alarm: 'duplicateAddress', weight: FULL / 4 },
  second: { alarm: 'duplicateAddress', weight: FULL },
  // A power cut loses it once.
  lost: { alarm: 'sessionLost', weight: FULL / 3 },
  // The refusal may be of a request before it. Who swallows replies could excuse each loss so.
  lostLate: { alarm: 'sessionLost', weight: FULL / 10 },
};

export interface AlarmLevel {
  /** 0 to FULL. */
  readonly level: number;
  readonly raised: boolean;
}
export type AlarmLevels = Readonly<Partial<Record<Alarm, AlarmLevel>>>;

export interface AlarmEffect {
  kind: 'alarm';
  alarm: Alarm;
  raised: boolean;
}

export interface AlarmChange {
  levels: AlarmLevels;
  effects: AlarmEffect[];
}

export function afterIncidents(before: AlarmLevels, incidents: readonly Incident[]): AlarmChange {
  const levels: Partial<Record<Alarm, AlarmLevel>> = { ...before };
  const effects: AlarmEffect[] = [];
  for (const incident of incidents) {
    const { alarm, weight } = WEIGHTS[incident];
    const known = levels[alarm];
    const level = Math.min(FULL, (known?.level ?? 0) + weight);
    const raised = known?.raised === true || level >= FULL;
    if (raised && !known?.raised) effects.push({ kind: 'alarm', alarm, raised });
    levels[alarm] = { level, raised };
  }
  return { levels, effects };
}

/** After an answer with nothing odd about it. */
export function afterCleanAnswer(before: AlarmLevels): AlarmChange {
  const levels: Partial<Record<Alarm, AlarmLevel>> = {};
  const effects: AlarmEffect[] = [];
  for (const alarm of SECURITY_ALARMS) {
    const known = before[alarm];
    if (!known) continue;
    if (OF_HANDSHAKE.includes(alarm) || known.level > 1) {
      levels[alarm] = OF_HANDSHAKE.includes(alarm) ? known : { ...known, level: known.level - 1 };
    } else if (known.raised) effects.push({ kind: 'alarm', alarm, raised: false });
  }
  return { levels, effects };
}

/** After a handshake that failed. */
export function afterFailure(before: AlarmLevels, alarm: Alarm): AlarmChange {
  const effects: AlarmEffect[] = before[alarm]?.raised ? [] : [{ kind: 'alarm', alarm, raised: true }];
  return { levels: { ...before, [alarm]: { level: FULL, raised: true } }, effects };
}

/** After a session was established as the policy has it. */
export function afterHandshake(before: AlarmLevels): AlarmChange {
  const levels = { ...before };
  const effects: AlarmEffect[] = [];
  for (const alarm of OF_HANDSHAKE) {
    if (levels[alarm]?.raised) effects.push({ kind: 'alarm', alarm, raised: false });
    delete levels[alarm];
  }
  return { levels, effects };
}
