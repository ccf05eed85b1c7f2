/** What an encoder says of itself goes into its row; absent means unchanged (docs/encoder-protocol.md, Messages). */
import type { EncoderConnection } from '../../../drivers/encoder/link.ts';
import type { Birth } from '../../../drivers/encoder/messages.ts';
import type { LiveEvents } from '../../services/events/events.ts';
import { alarmChanged } from './live-events.ts';
import type { EncoderTable } from './table.ts';

/** Inside a commit job. `now` is epoch milliseconds. */
export function writeReported(
  { table, events }: { table: EncoderTable; events: Pick<LiveEvents, 'publish'> },
  { encoderId, remoteAddress }: EncoderConnection,
  birth: Birth,
  now: number,
): void {
  const row = table.encoder.get(encoderId);
  if (!row) return;
  const raised = birth.alarm === undefined ? row.alarm_raised : Number(birth.alarm.raised);
  if (raised !== row.alarm_raised) events.publish(alarmChanged(encoderId, raised === 1, now));
  table.setReported.run(
    birth.ipAddress ?? remoteAddress ?? row.ip_address,
    raised,
    raised === row.alarm_raised ? row.alarm_changed_at : now,
    birth.apps ? JSON.stringify(birth.apps) : row.apps,
    birth.platform ? JSON.stringify(birth.platform) : row.platform,
    birth.versions ? JSON.stringify(birth.versions) : row.versions,
    birth.upgradeJobInfo === undefined ? row.upgrade_job_info : stored(birth.upgradeJobInfo),
    birth.journal,
    encoderId,
  );
}

function stored(value: object | null): string | null {
  return value === null ? null : JSON.stringify(value);
}
