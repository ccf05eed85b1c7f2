/** Which gateway of a cluster this is, whether it may move anything, and who takes over when it is gone. */
import type { Status } from '../services/status/schema.ts';
import { listed, t } from './words.ts';

export type Cluster = NonNullable<Status['cluster']>;

export function ClusterPart({ cluster }: { cluster: Cluster }) {
  const { name, epoch, acts, durability, standby, lastError } = cluster;
  return (
    <section>
      <h2>{t('cluster')}</h2>
      <ul class="cards">
        <li class="card row">
          <span class="what">
            <strong dir="auto">{name}</strong>
            <span class="soft">{t('clusterActive', { epoch, durability })}</span>
            {lastError !== null && <span class="soft">{lastError}</span>}
          </span>
          <span class={`mark ${acts ? 'good' : 'bad'}`}>{t(acts ? 'leaseHeld' : 'leaseOver')}</span>
        </li>
        <li class="card row">
          <span class="what">
            <strong dir="auto">{standby?.name ?? '–'}</strong>
            <span class="soft">{standbyText(standby)}</span>
          </span>
          <span class={`mark ${standby?.takesOver ? 'good' : 'bad'}`}>
            {t(standby?.takesOver ? 'takesOver' : 'takesOverNot')}
          </span>
        </li>
      </ul>
    </section>
  );
}

/** How far it is, or what keeps it from taking over. */
export function standbyText(standby: Cluster['standby']): string {
  if (!standby) return t('standbyNone');
  const { behind, reason } = standby;
  return listed([reason, behind !== null && t('standbyBehind', { count: behind })]);
}
