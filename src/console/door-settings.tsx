/** What is wanted of a door. */
import type { Door } from '../resources/doors/schema.ts';
import { readCatalogue } from './catalogue.ts';
import { Check, Choice, EditForm, TextField } from './edit-form.tsx';
import { DOORS } from './place.ts';
import { useRead } from './use-read.ts';
import { t } from './words.ts';

const labels = () => ({
  name: t('label'),
  pmsId: t('pmsId'),
  groupId: t('group'),
  scheduleId: t('schedule'),
  templateId: t('template'),
  standOpenEnabled: t('mayStandOpen'),
});
/** What travels to a lock, and has no field in the form. */
const others = () => ({
  number: t('numberInLock'),
  options: t('accessInternal'),
  accessInternal: t('accessInternal'),
  outputs: t('outputs'),
  catalogue: t('catalogue'),
});
/** As the form calls it; one that is new is called as in the interface. */
export const doorField = (name: string): string =>
  Object.entries({ ...labels(), ...others() }).find(([field]) => field === name)?.[1] ?? name;
/** Groups, schedules and templates change rarely. */
const READ_MS = 300_000;

interface DoorSettingsProps {
  door: Door;
  etag: string | undefined;
  saved(): Promise<void>;
}

export function DoorSettings({ door, etag, saved }: DoorSettingsProps) {
  const { value: catalogue } = useRead(readCatalogue, {
    everyMs: READ_MS,
  });
  return (
    <EditForm path={`${DOORS}/${door.id}`} value={door} etag={etag} fields={labels()} saved={saved}>
      {(shown, change) => (
        <>
          <TextField label={t('label')} value={shown.name} change={(name) => change({ name })} />
          <TextField label={t('pmsId')} value={shown.pmsId} change={(pmsId) => change({ pmsId })} />
          <Choice
            label={t('group')}
            none={t('noneChosen')}
            value={shown.groupId}
            choices={catalogue?.groups ?? []}
            change={(groupId) => change({ groupId })}
          />
          <Choice
            label={t('schedule')}
            none={t('noneChosen')}
            value={shown.scheduleId}
            choices={catalogue?.schedules.map(named) ?? []}
            change={(scheduleId) => change({ scheduleId })}
          />
          <Choice
            label={t('template')}
            none={t('noneChosen')}
            value={shown.templateId}
            choices={catalogue?.templates.map(named) ?? []}
            change={(templateId) => change({ templateId })}
          />
          <Check
            label={t('mayStandOpen')}
            value={shown.standOpenEnabled}
            change={(standOpenEnabled) => change({ standOpenEnabled })}
          />
        </>
      )}
    </EditForm>
  );
}

/** They have no other name. */
const named = ({ id }: { id: string }) => ({ id, name: id });
