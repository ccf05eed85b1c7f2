/** What only OSDP has: a device is given its key on the bus, and new firmware. */
import { useSignal } from '@preact/signals';
import type { BusOverview } from '../resources/rs485/bus-schema.ts';
import type { Rs485Device } from '../resources/rs485/schema.ts';
import { asking } from './ask.tsx';
import { Countdown } from './countdown.tsx';
import { TextField, Typed } from './edit-form.tsx';
import { JobButton } from './job-button.tsx';
import { t } from './words.ts';

/** For a technician to put the device into its installation mode. */
const PAIRING_SECONDS = 120;

/** A device at an address gets its key: anyone on the wire could listen in meanwhile, so it is asked for. */
export function Pairing({
  bus: { id: bus, pairing, devices },
  ended,
}: {
  bus: BusOverview;
  ended: () => void;
}) {
  const typed = useSignal<string | undefined>(undefined);
  // The one that answers and may not say who it is yet; empty where there is none, since another one would lose its key.
  const address =
    typed.value ?? String(devices.find(({ alive, hwId }) => alive && hwId === null)?.address ?? '');
  return (
    <>
      {pairing && (
        <Countdown until={pairing.until} text="pairCountdown" values={{ address: pairing.address }} />
      )}
      <TextField
        label={t('pairAddress')}
        isExact
        value={address}
        change={(value) => {
          typed.value = value ?? '';
        }}
      />
      <JobButton
        {...asking('pair', { address, bus })}
        path={`/network/rs485/buses/${bus}/pair`}
        body={{ address: address === '' ? null : Number(address), seconds: PAIRING_SECONDS }}
        running={() => t('pairing')}
        begun={ended}
        done={({ result }) => t('paired', { device: String(result?.hwId ?? result?.deviceId ?? '') })}
        ended={ended}
      />
    </>
  );
}

export function Firmware({ device, ended }: { device: Rs485Device; ended: () => void }) {
  const file = useSignal('');
  const { deviceId, upgradeJobInfo } = device;
  return (
    <section>
      <h2>{t('firmware')}</h2>
      {upgradeJobInfo && <p>{t('firmwareRunning', { version: upgradeJobInfo.platform.version })}</p>}
      <Typed label={t('firmwareFile')} isExact text={file} />
      <JobButton
        {...asking('firmwareGive', { file: file.value, name: device.name ?? device.hwId })}
        path={`/network/rs485/${deviceId}/firmware`}
        body={{ file: file.value }}
        running={(percent) => t('firmwarePercent', { percent })}
        done={({ result }) => t('firmwareDone', { version: String(result?.platformVersion ?? '–') })}
        ended={ended}
      />
    </section>
  );
}
