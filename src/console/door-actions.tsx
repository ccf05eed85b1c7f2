/** What a person may have a door do: unlock, lock, and stand open for a time. Each is ordered once, and its outcome shown. */
import { useSignal } from '@preact/signals';
import type { LockResult, StandOpenResult, UnlockResult } from '../resources/doors/lock-schema.ts';
import type { Door, DoorState } from '../resources/doors/schema.ts';
import { Actuate, type Outcome } from './actuate.tsx';
import { asking } from './ask.tsx';
import { doorName } from './doors-list.ts';
import { Chosen } from './edit-form.tsx';
import { DOORS } from './place.ts';
import { moment, sentence, t } from './words.ts';

interface DoorActionsProps {
  door: Door;
  state: DoorState;
  /** Called after each answer, for what it changes to be read. */
  ended(): void;
}

/** Minutes; a day is the most. */
const TIMES = [5, 15, 60, 240, 1_440];

export function DoorActions({ door, state, ended }: DoorActionsProps) {
  const path = `${DOORS}/${door.id}`;
  const name = doorName(door);
  const hasLock = door.mac !== null;
  return (
    <>
      {!state.standingOpen && (
        <Actuate
          {...asking('unlock', { door: name })}
          busyLabel={t('unlocking')}
          path={`${path}/unlock`}
          noAnswer={t('noAnswerUnlock')}
          outcomeOf={({ outcome, reason }: UnlockResult) => shown(UNLOCKED[outcome], reason)}
          ended={ended}
        />
      )}
      {hasLock && (
        <Actuate
          primary={false}
          {...asking('lock', { door: name })}
          path={`${path}/lock`}
          noAnswer={t('noAnswerLock')}
          outcomeOf={({ outcome, reason }: LockResult) => shown(LOCKED[outcome], reason)}
          ended={ended}
        />
      )}
      <StandOpen door={door} state={state} ended={ended} />
    </>
  );
}

function StandOpen({ door, state, ended }: DoorActionsProps) {
  const minutes = useSignal('15');
  const path = `${DOORS}/${door.id}/stand-open`;
  const name = doorName(door);
  const { standingOpen, effective } = state;
  if (!standingOpen && !effective.standOpenEnabled) return null;
  const outcomeOf = ({ outcome, reason }: StandOpenResult) =>
    shown((standingOpen ? LOCKED : STANDS)[outcome], reason);
  if (standingOpen)
    return (
      <section class="card warn">
        <p>
          {t('standingUntil', { time: standingOpen.until === null ? '–' : moment(standingOpen.until) })}{' '}
          {t(STATES[standingOpen.state])}
        </p>
        {standingOpen.failure && <p>{sentence(standingOpen.failure.message)}</p>}
        <Actuate
          {...asking('lock')}
          label={t('standEnd')}
          question={t('standEndAsk', { door: name })}
          method="DELETE"
          path={path}
          noAnswer={t('noAnswerLock')}
          outcomeOf={outcomeOf}
          ended={ended}
        />
      </section>
    );
  return (
    <section>
      <Chosen
        label={`${t('standFor')} `}
        choices={TIMES.map((each) => ({
          id: String(each),
          name: each < 60 ? t('minutes', { count: each }) : t('hours', { count: each / 60 }),
        }))}
        chosen={minutes}
      />
      <Actuate
        primary={false}
        {...asking('stand', { door: name })}
        path={path}
        body={{ seconds: Number(minutes.value) * 60 }}
        noAnswer={t('noAnswerUnlock')}
        outcomeOf={outcomeOf}
        ended={ended}
      />
    </section>
  );
}

const UNLOCKED = {
  confirmed: ['good', 'confirmed'],
  accepted: ['warn', 'accepted'],
  jammed: ['bad', 'jammed'],
  refused: ['bad', 'refused'],
  unknown: ['bad', 'outcomeUnknown'],
} as const;
const LOCKED = {
  confirmed: ['good', 'lockConfirmed'],
  accepted: ['warn', 'lockAccepted'],
  jammed: ['bad', 'lockJammed'],
  refused: ['bad', 'refused'],
  unknown: ['bad', 'lockUnknown'],
  waiting: ['bad', 'lockWaiting'],
} as const;
const STANDS = {
  confirmed: ['good', 'standConfirmed'],
  accepted: ['warn', 'accepted'],
  jammed: ['bad', 'jammed'],
  refused: ['bad', 'refused'],
  unknown: ['bad', 'outcomeUnknown'],
  waiting: ['warn', 'standWaiting'],
} as const;
/** Of a door that is to stand open. */
const STATES = {
  waiting: 'standWaiting',
  sent: 'standSent',
  open: 'standConfirmed',
  lost: 'standLost',
  ending: 'standEnding',
} as const;

function shown(
  [severity, word]: readonly [Outcome['severity'], Parameters<typeof t>[0]],
  reason: string | null,
): Outcome {
  return { severity, text: reason === null ? t(word) : `${t(word)} ${sentence(reason)}` };
}
