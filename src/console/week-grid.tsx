/** The intervals of a weekly schedule as a picture of the week, which is dragged; the fields below it do the same by keyboard. */
import { useSignal } from '@preact/signals';
import type { WeeklyInterval } from '../services/catalogue/schema.ts';
import {
  DAY_MINUTES,
  DAYS,
  dragged,
  type Grip,
  isSameSlot,
  type Piece,
  type Place,
  piecesOf,
} from './week-drag.ts';
import { language, t } from './words.ts';

/** A week that begins with a Monday, 1 January 2024. */
const MONDAY = Date.UTC(2024, 0, 1);
const DAY_MS = 86_400_000;
const HOURS = [0, 6, 12, 18, 24] as const;
/** Of an end, for a finger; what is too low for three of them is moved as a whole. */
const END_PX = 12;

interface Drag {
  grip: Grip | undefined;
  from: Place;
  to: Place;
}

interface WeekGridProps {
  intervals: readonly WeeklyInterval[];
  /** Absent: it is only shown. */
  change?: ((intervals: WeeklyInterval[]) => void) | undefined;
}

export function WeekGrid({ intervals, change }: WeekGridProps) {
  const drag = useSignal<Drag | undefined>(undefined);
  const begin = (event: PointerEvent & { currentTarget: HTMLElement }) => {
    if (!change || event.button !== 0) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    const place = placeOf(event);
    drag.value = { grip: gripOf(event), from: place, to: place };
  };
  const made = outcomeOf(intervals, drag.value);
  const held = made?.[drag.value?.grip?.index ?? intervals.length];
  const end = () => {
    // What is drawn may be of the move before the last.
    const last = outcomeOf(intervals, drag.value);
    drag.value = undefined;
    if (last) change?.(last);
  };
  return (
    <>
      {change && <p class="soft">{t('weekHelp')}</p>}
      <div class="week" aria-hidden="true">
        {DAYS.map((day) => (
          <b key={day}>{dayName(day)}</b>
        ))}
        <span class="hours">
          {HOURS.map((hour) => (
            <span key={hour} style={{ top: `${(100 * hour) / 24}%` }}>
              {hour}
            </span>
          ))}
        </span>
        <div
          class={change ? 'grid open' : 'grid'}
          onPointerDown={begin}
          onPointerMove={(event) => {
            if (drag.value) drag.value = { ...drag.value, to: placeOf(event) };
          }}
          onPointerUp={end}
          onPointerCancel={() => {
            drag.value = undefined;
          }}
        >
          {held && <span class="held">{wordsOf(held)}</span>}
          {piecesOf(made ?? intervals).map((piece) => (
            <Shown key={`${piece.index} ${piece.day} ${piece.hasStart}`} {...piece} />
          ))}
        </div>
      </div>
    </>
  );
}

function Shown({ index, day, top, bottom, hasStart, hasEnd }: Piece) {
  const style = {
    left: `${(100 * day) / DAYS.length}%`,
    top: `${(100 * top) / DAY_MINUTES}%`,
    height: `${(100 * (bottom - top)) / DAY_MINUTES}%`,
  };
  return <i data-index={index} data-start={hasStart} data-end={hasEnd} style={style} />;
}

function placeOf({ clientX, clientY, currentTarget }: PointerEvent & { currentTarget: HTMLElement }): Place {
  const { left, top, width, height } = currentTarget.getBoundingClientRect();
  const step = (share: number, steps: number) => Math.min(Math.max(Math.floor(share * steps), 0), steps - 1);
  return {
    day: step((clientX - left) / width, DAYS.length),
    minute: step((clientY - top) / height, DAY_MINUTES),
  };
}

function gripOf({ target, offsetY }: PointerEvent): Grip | undefined {
  const { dataset, offsetHeight } = target as HTMLElement;
  if (dataset.index === undefined) return undefined;
  const hasEnds = offsetHeight >= 3 * END_PX;
  const isAtStart = hasEnds && dataset.start === 'true' && offsetY < END_PX;
  const isAtEnd = hasEnds && dataset.end === 'true' && offsetY >= offsetHeight - END_PX;
  return { index: Number(dataset.index), part: isAtStart ? 'start' : isAtEnd ? 'end' : 'whole' };
}

/** A tap drags nothing. */
function outcomeOf(intervals: readonly WeeklyInterval[], drag: Drag | undefined) {
  if (!drag || isSameSlot(drag.from, drag.to)) return undefined;
  return dragged(intervals, drag.grip, drag.from, drag.to);
}

export function dayName(day: (typeof DAYS)[number]): string {
  const format = new Intl.DateTimeFormat(language.value, { weekday: 'short', timeZone: 'UTC' });
  return format.format(MONDAY + DAYS.indexOf(day) * DAY_MS);
}

export function wordsOf({ days, start, end }: WeeklyInterval): string {
  return `${days.map(dayName).join(', ')} ${timeOf(start)}–${timeOf(end)}`;
}

/** Minutes of the day as "08:05". */
export function timeOf(minutes: number): string {
  return [Math.floor(minutes / 60), minutes % 60].map((part) => String(part).padStart(2, '0')).join(':');
}
