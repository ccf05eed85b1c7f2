/** What doors refer to: groups, weekly schedules and templates. A desk's administrator changes them; others look. */
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import type { Group, Schedule, Template } from '../../services/catalogue/schema.ts';
import { CATALOGUE, call, mayDo } from '../api.ts';
import { Ask, asking } from '../ask.tsx';
import { etagOf, present, readCatalogue } from '../catalogue.ts';
import { Choice, EditForm, TextField, typed } from '../edit-form.tsx';
import { Alert, Reads } from '../messages.tsx';
import { ScheduleGrid } from '../schedule-grid.tsx';
import { useOrder } from '../use-order.ts';
import { useRead } from '../use-read.ts';
import { t } from '../words.ts';

const READ_MS = 30_000;
const templateLabels = () => ({
  onlineEnabled: 'onlineEnabled',
  standOpenAllowed: t('mayStandOpen'),
  relaySetup: 'relaySetup',
  type: 'type',
});
/** Of an id that is put for the first time. */
const EMPTY = {
  groups: (id: string) => ({ name: id }),
  schedules: () => ({ intervals: [] }),
  templates: () => ({}),
};

type Kind = keyof typeof EMPTY;

export function Catalogue() {
  const { value, fault, again } = useRead(readCatalogue, {
    everyMs: READ_MS,
  });
  return (
    <>
      <h1>{t('catalogue')}</h1>
      <Reads value={value} fault={fault} />
      {value && (
        <>
          <p class="soft">
            {t('systemConfig')}: {value.systemConfigVersion || t('noneChosen')}
          </p>
          <Part kind="groups" title={t('groups')} items={value.groups} ended={again}>
            {(group) => <GroupForm group={group} ended={again} />}
          </Part>
          <Part kind="schedules" title={t('schedules')} items={value.schedules} ended={again}>
            {(schedule) => <ScheduleForm schedule={schedule} ended={again} />}
          </Part>
          <Part kind="templates" title={t('templates')} items={value.templates} ended={again}>
            {(template) => <TemplateForm template={template} ended={again} />}
          </Part>
        </>
      )}
    </>
  );
}

interface PartProps<Item> {
  kind: Kind;
  title: string;
  items: readonly Item[];
  ended(): void;
  children(item: Item): ComponentChildren;
}

function Part<Item extends { id: string; name?: string }>({
  kind,
  title,
  items,
  ended,
  children,
}: PartProps<Item>) {
  return (
    <section aria-labelledby={kind}>
      <h2 id={kind}>{title}</h2>
      {items.length === 0 && <p class="soft">{t('noneYet')}</p>}
      {items.map((item) => (
        <details key={item.id} class="card">
          <summary dir="auto">{item.name ?? item.id}</summary>
          {children(item)}
          {mayDo('front-desk-admin') && <Remove kind={kind} id={item.id} ended={ended} />}
        </details>
      ))}
      {mayDo('front-desk-admin') && (
        <New kind={kind} title={title} ids={items.map(({ id }) => id)} ended={ended} />
      )}
    </section>
  );
}

function GroupForm({ group, ended }: { group: Group; ended(): Promise<void> }) {
  if (!mayDo('front-desk-admin')) return <p class="soft">{group.id}</p>;
  return (
    <EditForm
      path={pathOf('groups', group.id)}
      value={group}
      etag={undefined}
      fields={{ name: t('label') }}
      saved={ended}
    >
      {(shown, change) => (
        <TextField label={t('label')} value={shown.name} change={(name) => change({ name: name ?? '' })} />
      )}
    </EditForm>
  );
}

function ScheduleForm({ schedule, ended }: { schedule: Schedule; ended(): Promise<void> }) {
  if (!mayDo('front-desk-admin')) return <ScheduleGrid intervals={schedule.intervals} />;
  return (
    <EditForm
      path={pathOf('schedules', schedule.id)}
      value={schedule}
      etag={etagOf(schedule)}
      present={() => present<Schedule>('schedules', schedule.id)}
      fields={{ intervals: t('intervals') }}
      saved={ended}
    >
      {(shown, change) => (
        <ScheduleGrid intervals={shown.intervals} change={(intervals) => change({ intervals })} />
      )}
    </EditForm>
  );
}

const YES_NO = [
  { id: 'true', name: 'yes' },
  { id: 'false', name: 'no' },
] as const;

function TemplateForm({ template, ended }: { template: Template; ended(): Promise<void> }) {
  const choices = YES_NO.map(({ id, name }) => ({ id, name: t(name) }));
  const flag = (value: boolean | null) => (value === null ? null : String(value));
  const flagOf = (text: string | null) => (text === null ? null : text === 'true');
  if (!mayDo('front-desk-admin'))
    return (
      <p class="soft">
        {Object.entries(templateLabels())
          .map(([field, label]) => `${label} ${template[field as 'type'] ?? '–'}`)
          .join(' · ')}
      </p>
    );
  return (
    <EditForm
      path={pathOf('templates', template.id)}
      value={template}
      etag={etagOf(template)}
      present={() => present<Template>('templates', template.id)}
      fields={templateLabels()}
      saved={ended}
    >
      {(shown, change) => (
        <>
          <Choice
            label={t('mayStandOpen')}
            none={t('saysNothing')}
            value={flag(shown.standOpenAllowed)}
            choices={choices}
            change={(text) => change({ standOpenAllowed: flagOf(text) })}
          />
          <Choice
            label="onlineEnabled"
            none={t('saysNothing')}
            value={flag(shown.onlineEnabled)}
            choices={choices}
            change={(text) => change({ onlineEnabled: flagOf(text) })}
          />
          <TextField
            label="relaySetup"
            value={shown.relaySetup}
            change={(relaySetup) => change({ relaySetup })}
          />
          <TextField label="type" value={shown.type} change={(type) => change({ type })} />
        </>
      )}
    </EditForm>
  );
}

function Remove({ kind, id, ended }: { kind: Kind; id: string; ended(): void }) {
  const { said, submit } = useOrder(ended);
  const remove = submit(() => call('DELETE', pathOf(kind, id)));
  return (
    <>
      <Ask {...asking('remove', { id })} onYes={remove} />
      <Alert text={said.value} />
    </>
  );
}

interface NewProps {
  kind: Kind;
  title: string;
  /** Those that there are: to put one of them would empty it. */
  ids: readonly string[];
  ended(): void;
}

function New({ kind, title, ids, ended }: NewProps) {
  const id = useSignal('');
  const { said, submit } = useOrder(ended);
  const make = submit(async () => {
    if (ids.includes(id.value)) return t('idTaken');
    await call('PUT', pathOf(kind, id.value), { body: EMPTY[kind](id.value) });
    id.value = '';
  });
  return (
    <form class="tools" onSubmit={make}>
      <input aria-label={`${t('newId')}: ${title}`} placeholder={t('newId')} {...typed(id)} />
      <button type="submit" disabled={id.value === ''}>
        {t('make')}
      </button>
      <Alert text={said.value} />
    </form>
  );
}

const pathOf = (kind: Kind, id: string) => `${CATALOGUE}/${kind}/${encodeURIComponent(id)}`;
