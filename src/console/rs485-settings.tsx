/** The settings of an RS-485 device. */
import type { Rs485Device } from '../resources/rs485/schema.ts';
import { DOORS, readAll } from './api.ts';
import { doorName, type ListedDoor } from './doors-list.ts';
import { Check, Choice, EditForm, TextField } from './edit-form.tsx';
import type { LiveEvent } from './live.ts';
import { useRead } from './use-read.ts';
import { t } from './words.ts';

const labels = () => ({
  name: t('label'),
  description: t('description'),
  doorId: t('opensDoor'),
  relayIndex: t('relay'),
  unlockDurationMilliseconds: t('relayMilliseconds'),
  useInputPinMemory: t('inputMemory'),
  ioPins: t('pinsInUse'),
});
const RELAYS = Array.from({ length: 8 }, (_, index) => ({ id: String(index), name: String(index) }));

/** Doors are made, named and removed with an event. */
const READ_MS = 300_000;
const isMine = ({ type }: LiveEvent) => /^gatehouse\.door\.(changed|lock)\./.test(type);

/** A relay opens a door that has no lock. */
async function readDoors(): Promise<{ id: string; name: string }[]> {
  const doors = await readAll<ListedDoor>(DOORS);
  return doors.filter(({ mac }) => mac === null).map((door) => ({ id: door.id, name: doorName(door) }));
}

interface Rs485SettingsProps {
  device: Rs485Device;
  etag: string | undefined;
  saved(): void;
}

export function Rs485Settings({ device, etag, saved }: Rs485SettingsProps) {
  const path = `/network/rs485/${device.deviceId}`;
  const { value: doors } = useRead(readDoors, { key: 'doors', everyMs: READ_MS, isMine });
  return (
    <EditForm path={path} value={device} etag={etag} fields={labels()} saved={saved}>
      {(shown, change) => (
        <>
          <TextField label={t('label')} value={shown.name} change={(name) => change({ name })} />
          <TextField
            label={t('description')}
            value={shown.description}
            change={(description) => change({ description })}
          />
          <Choice
            label={t('opensDoor')}
            none={t('noneChosen')}
            value={shown.doorId}
            choices={doors ?? []}
            change={(doorId) => change({ doorId })}
          />
          <Choice
            label={t('relay')}
            none={t('noRelay')}
            value={shown.relayIndex === null ? null : String(shown.relayIndex)}
            choices={RELAYS}
            change={(relay) => change({ relayIndex: relay === null ? null : Number(relay) })}
          />
          <label>
            {t('seconds')}
            <input
              type="number"
              min="0.1"
              max="600"
              step="0.1"
              value={
                shown.unlockDurationMilliseconds === null ? '' : shown.unlockDurationMilliseconds / 1_000
              }
              onInput={({ currentTarget: { value } }) =>
                change({
                  unlockDurationMilliseconds: value === '' ? null : Math.round(1_000 * Number(value)),
                })
              }
            />
          </label>
          <fieldset>
            <legend>{t('pinsInUse')}</legend>
            {Object.entries(shown.ioPins).map(([pin, isUsed]) => (
              <Check
                key={pin}
                label={pin}
                value={isUsed}
                change={(used) => change({ ioPins: { ...shown.ioPins, [pin]: used } })}
              />
            ))}
            <Check
              label={t('inputMemory')}
              whole
              value={shown.useInputPinMemory}
              change={(useInputPinMemory) => change({ useInputPinMemory })}
            />
          </fieldset>
        </>
      )}
    </EditForm>
  );
}
