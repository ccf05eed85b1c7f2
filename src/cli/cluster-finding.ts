/** What `gatehouse status` says of the cluster. */
import type { Status } from '../services/status/schema.ts';
import type { Finding } from './findings.ts';

/** Also of gatehouse cluster status. */
export const NO_STANDBY =
  'no gateway follows, and nothing takes over: start the other one (systemctl start gatehouse) with this cluster section and its own cluster.name, and look at its log';

/** A standby follows within a second; more than this and a takeover loses work. */
const BEHIND_MAX = 50;

export function clusterFinding(cluster: NonNullable<Status['cluster']>): Finding {
  const { name, epoch, acts, standby, lastError } = cluster;
  const finding = (severity: Finding['severity'], text: string): Finding => {
    return { severity, subject: 'cluster', text: `${name} is active (epoch ${epoch}); ${text}` };
  };
  if (!acts)
    return finding(
      'bad',
      'NATS does not answer, and the standby may be active: nothing moves until it does; see gatehouse cluster status',
    );
  if (lastError !== null) return finding('bad', `NATS stores no commits: ${lastError}`);
  if (!standby) return finding('doubtful', NO_STANDBY);
  const lag = standby.behind === null ? '' : `, ${standby.behind} messages behind`;
  if (!standby.takesOver)
    return finding('doubtful', `${standby.name} would not take over: ${standby.reason ?? 'it is not heard'}`);
  const isLate = standby.behind !== null && standby.behind > BEHIND_MAX;
  return finding(isLate ? 'doubtful' : 'good', `${standby.name} takes over when it is gone${lag}`);
}
