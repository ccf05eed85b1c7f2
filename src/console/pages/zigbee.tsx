/** The Zigbee gateways of the site and which of them are there. */
import type { Zgate } from '../../resources/zgates/schema.ts';
import { readAll } from '../api.ts';
import { Reads } from '../messages.tsx';
import { useRead } from '../use-read.ts';
import { moment, t } from '../words.ts';
import { Connected } from './encoders.tsx';

const READ_MS = 10_000;

export function Zigbee() {
  const { value: gateways, fault } = useRead(() => readAll<Zgate>('/network/zgate'), {
    everyMs: READ_MS,
    isMine: ({ type }) => type.startsWith('gatehouse.zgate.'),
  });
  return (
    <>
      <h1>{t('zigbee')}</h1>
      <Reads value={gateways} fault={fault} />
      {gateways?.length === 0 && <p>{t('noGateways')}</p>}
      <ul class="cards">
        {gateways?.map((gateway) => (
          <li key={gateway.deviceId}>
            <a class="card row" href={`#/zigbee/${gateway.deviceId}`}>
              <span class="what">
                <strong dir="auto">{gatewayName(gateway)}</strong>
                <span class="soft">
                  {t('channel')} {gateway.zigbeeChannel ?? '–'} ·{' '}
                  {t('since', { time: moment(gateway.connectionState.changedOn) })}
                </span>
              </span>
              <span class="marks">
                {gateway.permitJoin && <span class="mark warn">{t('joinOpen')}</span>}
                <Connected {...gateway.connectionState} />
              </span>
            </a>
          </li>
        ))}
      </ul>
    </>
  );
}

export const gatewayName = ({ name, hwId, deviceId }: Zgate) => name ?? hwId ?? deviceId;
