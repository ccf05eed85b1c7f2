/** One Zigbee gateway: how it is, the window in which locks join, the channel, and the map of its network. */
import type { Zgate, ZgateState } from '../../resources/zgates/schema.ts';
import { call, mayDo } from '../api.ts';
import { Fact } from '../fact.tsx';
import { JoinWindow } from '../join-window.tsx';
import { Back, Reads } from '../messages.tsx';
import { useRead } from '../use-read.ts';
import { ago, errorOf, linkFault, listed, moment, sentence, t } from '../words.ts';
import { ChannelMove, NetworkMap } from '../zigbee-network.tsx';
import { Connected } from './encoders.tsx';
import { gatewayName } from './zigbee.tsx';

const READ_MS = 5_000;

interface Known {
  gateway: Zgate;
  state: ZgateState;
}

export function ZigbeeGateway({ id }: { id: string }) {
  const path = `/network/zgate/${encodeURIComponent(id)}`;
  const read = async (): Promise<Known> => {
    const [gateway, state] = await Promise.all([
      call<Zgate>('GET', path),
      call<ZgateState>('GET', `${path}/state`),
    ]);
    return { gateway, state };
  };
  const { value, fault, again } = useRead(read, {
    key: id,
    everyMs: READ_MS,
    isMine: ({ type, data }) => type.startsWith('gatehouse.zgate.') && data.deviceId === id,
  });
  return (
    <>
      <Back to="#/zigbee" label={t('allGateways')} />
      <Reads value={value} fault={fault} />
      {value && <Shown {...value} />}
      {value && mayDo('service-tool') && (
        <>
          <JoinWindow gateway={value.gateway} state={value.state} ended={again} />
          <ChannelMove gateway={value.gateway} ended={again} />
          <NetworkMap gateway={value.gateway} />
        </>
      )}
    </>
  );
}

function Shown({ gateway, state }: Known) {
  const { linkUp, linkError, failure, stayedBehind, reportAge } = state;
  const { platform, allowedChannels } = gateway;
  return (
    <>
      <h1 dir="auto">{gatewayName(gateway)}</h1>
      <p class="marks">
        <Connected {...gateway.connectionState} />
        <span class="soft">{t('since', { time: moment(gateway.connectionState.changedOn) })}</span>
      </p>
      {!linkUp && linkError !== null && (
        <p class="card bad">
          {t('gatewayGone')} {linkFault(linkError)}
        </p>
      )}
      {failure && <p class="card warn">{errorOf(failure)}</p>}
      {stayedBehind && (
        <p class="card bad">
          {sentence(stayedBehind.message)} {stayedBehind.locks.map(({ name, mac }) => name ?? mac).join(', ')}
        </p>
      )}
      <section>
        <h2>{t('state')}</h2>
        <dl class="facts">
          <Fact name={t('channel')}>{gateway.zigbeeChannel ?? '–'}</Fact>
          <Fact name={t('channelsAllowed')}>{allowedChannels.join(', ') || t('any')}</Fact>
          <Fact name={t('coordinator')}>{listed([gateway.type, gateway.hwId]) || '–'}</Fact>
          <Fact name={t('software')}>
            {listed([...gateway.apps.map(({ name, version }) => `${name} ${version}`), platform?.version]) ||
              '–'}
          </Fact>
          <Fact name={t('lastSeen')}>
            {reportAge === null ? t('notReported') : ago(Date.now() - reportAge, Date.now())}
          </Fact>
        </dl>
      </section>
    </>
  );
}
