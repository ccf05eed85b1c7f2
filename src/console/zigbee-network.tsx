/** The channel of a Zigbee network, and the radio neighbours of each node in it. */
import { useComputed, useSignal } from '@preact/signals';
import type { Zgate } from '../resources/zgates/schema.ts';
import { Choice } from './edit-form.tsx';
import { type Job, JobButton } from './job-button.tsx';
import { gatewayName } from './pages/zigbee.tsx';
import { SearchField } from './search-field.tsx';
import { t } from './words.ts';

/** IEEE 802.15.4, 2.4 GHz. */
const CHANNELS = Array.from({ length: 16 }, (_, index) => 11 + index);

export function ChannelMove({ gateway, ended }: { gateway: Zgate; ended(): void }) {
  const { deviceId, allowedChannels, zigbeeChannel } = gateway;
  const channels = (allowedChannels.length > 0 ? allowedChannels : CHANNELS).filter(
    (channel) => channel !== zigbeeChannel,
  );
  const chosen = useSignal<number | undefined>(undefined);
  const channel = chosen.value ?? channels[0];
  if (channel === undefined) return null;
  return (
    <section>
      <h2>{t('channel')}</h2>
      <form onSubmit={(event) => event.preventDefault()}>
        <Choice
          label={t('moveTo')}
          value={String(channel)}
          choices={channels.map((one) => ({ id: String(one), name: String(one) }))}
          change={(one) => {
            chosen.value = Number(one);
          }}
        />
        <JobButton
          label={t('move')}
          question={t('moveAsk', { name: gatewayName(gateway), channel })}
          yes={t('moveYes')}
          anyway={t('moveAnyway')}
          path={`/network/zgate/${deviceId}/channel-move`}
          body={{ channel }}
          running={(percent) => t('moving', { percent })}
          done={movedIn}
          ended={ended}
        />
      </form>
    </section>
  );
}

function movedIn({ result }: Job): string {
  const { followed, locks, stragglers } = result as {
    followed: number;
    locks: number;
    stragglers: { name: string | null; mac: string }[];
  };
  const names = stragglers.map(({ name, mac }) => name ?? mac).join(', ');
  return [t('moved', { followed, all: locks }), names && t('movedBehind', { names })].join(' ');
}

interface Graph {
  nodes: { hwId: string; type: string }[];
  links: { from: string; to: string; lqi: number; isRoute: boolean }[];
  silent: string[];
}

/** On request only, since it asks every router; a list that stays still and can be searched, coordinator first. */
export function NetworkMap({ gateway }: { gateway: Zgate }) {
  const map = useSignal<Graph | undefined>(undefined);
  const sought = useSignal('');
  const heard = useComputed(() => Map.groupBy(map.value?.links ?? [], ({ from }) => from));
  const nodes = map.value?.nodes.filter(({ hwId }) => hwId.includes(sought.value.trim().toLowerCase()));
  return (
    <section>
      <h2>{t('mapTitle')}</h2>
      <JobButton
        label={t('map')}
        question={t('mapAsk', { name: gatewayName(gateway) })}
        yes={t('mapYes')}
        path={`/network/zgate/${gateway.deviceId}/map`}
        running={(percent) => t('mapping', { percent })}
        done={mapWords}
        ended={({ status, result }) => {
          if (status === 'done') map.value = result as unknown as Graph;
        }}
      />
      {map.value && <SearchField label={t('mapSearch')} text={sought} />}
      <ul class="log">
        {nodes?.map(({ hwId, type }) => (
          <li key={hwId}>
            <strong>{hwId}</strong> {type}{' '}
            <span class="soft">{neighboursOf(heard.value.get(hwId) ?? [])}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function mapWords({ result }: Job): string {
  const { nodes, links, silent } = result as unknown as Graph;
  const found = t('mapDone', { nodes: nodes.length, links: links.length });
  return [found, silent.length > 0 && t('mapSilent', { names: silent.join(', ') })].filter(Boolean).join(' ');
}

function neighboursOf(links: Graph['links']): string {
  const neighbours = links.map(({ to, lqi }) => `${to} (${lqi})`).join(', ');
  return neighbours && t('hears', { neighbours });
}
