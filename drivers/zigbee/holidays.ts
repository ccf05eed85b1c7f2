/**
 * Holidays of a lock (ZCL rev. 8, 7.3.2.17.19 to 21): each is read before it is written, and afterwards. While the lock may have
 * one it is not made to stand open by its passage mode: the end of a holiday gives the lock the mode of before, and a holiday is
 * another mode than that which was written.
 */
import { DriverError } from '../contract/driver.ts';
import { HOLIDAYS_MAX, type Holiday, OPERATING_MODES } from '../contract/settings.ts';
import type { Exchanges } from './lock-exchanges.ts';
import { DOOR_LOCK } from './radio.ts';
import { clearSchedules, isScheduleShown } from './schedules.ts';
import { limitsOf, MODE, offersMode } from './standard-lock.ts';
import { answerStatus, isSuccess, SCHEDULES } from './user-codes.ts';
import { field, integer, UINT32_LAST } from './values.ts';
import { statusName } from './zcl-status.ts';

const { set, get, clear } = SCHEDULES.holidays;

/** `begun`: before the first frame after which the lock may have other ones than it has shown. Throws REFUSED. */
export async function applyHolidays(
  wanted: Holiday[],
  exchanges: Exchanges,
  begun: () => void,
): Promise<void> {
  const { radio, lock } = exchanges;
  const { ieee, endpoint } = lock;
  const { holidays: limit } = limitsOf(lock, radio);
  if (limit !== undefined && wanted.length > limit)
    throw refused(`the lock keeps ${limit} of them, and ${wanted.length} are wanted`);
  const modes = radio.attribute(ieee, endpoint, DOOR_LOCK, 'supportedOperatingModes');
  const missing = wanted.find(({ mode }) => offersMode(modes, MODE[mode]) === false);
  if (missing) throw refused(`the lock has no mode ${missing.mode}`);
  // From the first frame on the lock may have them, and has not shown them.
  if (wanted.length > 0) radio.rememberFirst(ieee, { holidays: wanted, holidaysUnshown: true });
  else radio.remember(ieee, { holidaysUnshown: true });
  begun();
  let isShown = await clearSchedules({ kind: 'holidays', limit }, wanted.length, exchanges);
  for (const [id, one] of wanted.entries()) isShown = (await store(id, one, exchanges)) && isShown;
  radio.remember(ieee, { holidays: wanted, holidaysUnshown: isShown ? null : true });
}

/** All that the lock has. */
export async function readHolidays(exchanges: Exchanges): Promise<Holiday[]> {
  const holidays: Holiday[] = [];
  const { holidays: limit = 0 } = limitsOf(exchanges.lock, exchanges.radio);
  for (let id = 0; id < limit && holidays.length < HOLIDAYS_MAX; id += 1) {
    const payload = await exchanges.answered(get, { holidayscheduleid: id });
    const mode = OPERATING_MODES[integer(field(payload, 'opermodelduringholiday'), 0, 0xfe) ?? -1];
    const [start, end] = ['zigbeelocalstarttime', 'zigbeelocalendtime'].map((name) =>
      integer(field(payload, name), 0, UINT32_LAST),
    );
    if (isSuccess(payload) && mode && start !== undefined && end !== undefined)
      holidays.push({ start, end, mode });
  }
  exchanges.radio.remember(exchanges.lock.ieee, { holidays, holidaysUnshown: null });
  return holidays;
}

/** Resolves with whether the lock has shown it. */
async function store(id: number, { start, end, mode }: Holiday, exchanges: Exchanges): Promise<boolean> {
  const place = { holidayscheduleid: id };
  const times = { zigbeelocalstarttime: start, zigbeelocalendtime: end };
  const payload = { ...place, ...times, opermodelduringholiday: MODE[mode] };
  if (await isScheduleShown('holidays', payload, exchanges)) return true;
  const answer = await exchanges.answered(set, payload);
  if (!isSuccess(answer)) throw refused(`the lock refused one (${statusName(answerStatus(answer))})`);
  const has = await isScheduleShown('holidays', payload, exchanges);
  if (has !== false) return has === true;
  await exchanges.answered(clear, place);
  throw refused('the lock said that it took one, and shows another');
}

function refused(reason: string): DriverError {
  return new DriverError('REFUSED', `holidays: ${reason}`);
}
