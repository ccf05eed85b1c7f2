/** The channel of a Zigbee network, and the radio neighbours of each node in it. */
import { useComputed, useSignal } from '@preact/signals';
import type { Zgate } from '../resources/zgates/schema.ts';
import { asking } from './ask.tsx';
import { doorName, readAllDoors } from './doors-list.ts';
import { Choice } from './edit-form.tsx';
import { type Job, JobButton } from './job-button.tsx';
import type { Graph, PlacedNode } from './map-layout.ts';
import { NetworkPicture } from './network-map.tsx';
import { gatewayName } from './pages/zigbee.tsx';
import { SearchField } from './search-field.tsx';
import { ShowMore } from './show-more.tsx';
import { useRead } from './use-read.ts';
import { listed, t } from './words.ts';

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
          {...asking('move', { name: gatewayName(gateway), channel })}
          anyway={t('moveAnyway')}
          path={`/network/zgate/${deviceId}/channel-move`}
          body={{ channel }}
          running={(percent) => t('moving', { percent })}
          done={movedIn}
          ended={() => {
            // It is on that channel now, which is no choice any more.
            chosen.value = undefined;
            ended();
          }}
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

const SHOWN = 20;
const NAMELESS: ReadonlyMap<string, string> = new Map();

/** On request only, since it asks every router: a picture, and a list that can be searched, coordinator first. */
export function NetworkMap({ gateway }: { gateway: Zgate }) {
  const map = useSignal<Graph | undefined>(undefined);
  const sought = useSignal('');
  const touched = useSignal<PlacedNode | undefined>(undefined);
  const shown = useSignal(SHOWN);
  const isDrawn = useSignal(false);
  const read = useRead(readLocks, { everyMs: READ_MS });
  const names = read.value ?? NAMELESS;
  const heard = useComputed(() => Map.groupBy(map.value?.links ?? [], ({ from }) => from));
  const nameOf = (hwId: string) => names.get(hwId) ?? hwId;
  const text = sought.value.trim().toLowerCase();
  const nodes = map.value?.nodes.filter(
    ({ hwId }) => hwId.includes(text) || nameOf(hwId).toLowerCase().includes(text),
  );
  return (
    <section>
      <h2>{t('mapTitle')}</h2>
      <JobButton
        {...asking('map', { name: gatewayName(gateway) })}
        path={`/network/zgate/${gateway.deviceId}/map`}
        running={(percent) => t('mapping', { percent })}
        done={mapWords}
        ended={({ status, result }) => {
          if (status === 'done') map.value = result as unknown as Graph;
        }}
      />
      {map.value && (
        <>
          <SearchField label={t('mapSearch')} text={sought} />
          <NetworkPicture
            graph={map.value}
            sought={text}
            names={names}
            touched={(node) => {
              touched.value = node;
            }}
            drawn={() => {
              isDrawn.value = true;
            }}
          />
          <p role="status">{touched.value && wordsOf(touched.value, nameOf)}</p>
        </>
      )}
      {/* Not in the frame of the picture, which is what a person looks at. */}
      {isDrawn.value && (
        <>
          <ul class="log">
            {nodes?.slice(0, shown.value).map(({ hwId, type }) => (
              <li key={hwId}>
                <strong dir="auto">{nameOf(hwId)}</strong> {nameOf(hwId) !== hwId && hwId} {type}{' '}
                <span class="soft">{neighboursOf(heard.value.get(hwId) ?? [], nameOf)}</span>
              </li>
            ))}
          </ul>
          <ShowMore shown={shown} step={SHOWN} all={nodes?.length ?? 0} />
        </>
      )}
    </section>
  );
}

/** Doors are renamed rarely. */
const READ_MS = 300_000;

/** Names of doors, by the addresses of their locks. */
async function readLocks(): Promise<Map<string, string>> {
  const doors = await readAllDoors();
  return new Map(doors.flatMap((door) => (door.mac === null ? [] : [[door.mac, doorName(door)]])));
}

type NameOf = (hwId: string) => string;

function wordsOf({ hwId, type, parent }: PlacedNode, nameOf: NameOf): string {
  const heardBy = parent && t('heardBy', { name: nameOf(parent.hwId), lqi: parent.lqi });
  return listed([nameOf(hwId), type, heardBy]);
}

function mapWords({ result }: Job): string {
  const { nodes, links, silent } = result as unknown as Graph;
  const found = t('mapDone', { nodes: nodes.length, links: links.length });
  return listed([found, silent.length > 0 && t('mapSilent', { names: silent.join(', ') })], ' ');
}

/** A coordinator may hear hundreds. */
const NEIGHBOURS_SHOWN = 12;

function neighboursOf(links: Graph['links'], nameOf: NameOf): string {
  const neighbours = links.slice(0, NEIGHBOURS_SHOWN).map(({ to, lqi }) => `${nameOf(to)} (${lqi})`);
  const more = links.length > NEIGHBOURS_SHOWN ? ' …' : '';
  return neighbours.length === 0 ? '' : t('hears', { neighbours: neighbours.join(', ') + more });
}
