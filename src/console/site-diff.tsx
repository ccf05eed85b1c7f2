/** What an import changes, entry by entry and value by value; at first only as much as a person reads. */
import { useSignal } from '@preact/signals';
import type { ImportResult } from '../resources/site-import/schema.ts';
import { ShowMore } from './show-more.tsx';
import { t } from './words.ts';

type Change = ImportResult['changes'][number];

const SHOWN = 50;
/** Options of a door can be long. */
const VALUE_SHOWN_MAX = 120;
const MARKS = {
  added: { word: 'siteNew', severity: 'good' },
  changed: { word: 'siteChanged', severity: 'warn' },
  'left alone': { word: 'siteKept', severity: '' },
} as const;

export function SiteDiff({ changes }: { changes: readonly Change[] }) {
  const shown = useSignal(SHOWN);
  const open = (['changed', 'added', 'left alone'] as const).flatMap((kind) =>
    changes.filter(({ change }) => change === kind),
  );
  return (
    <>
      <ul class="cards">
        {open.slice(0, shown.value).map((change) => (
          <Entry key={`${change.resource} ${change.id}`} {...change} />
        ))}
      </ul>
      <ShowMore shown={shown} step={SHOWN} all={open.length} />
    </>
  );
}

function Entry({ resource, id, name, change, fields }: Change) {
  if (change === 'unchanged') return null;
  const { word, severity } = MARKS[change];
  return (
    <li class="card">
      <p class="marks">
        <span class={`mark ${severity}`}>{t(word)}</span>
        <strong dir="auto">{name ?? id}</strong>
        <span class="soft">
          {resource} {name !== null && name !== id && id}
        </span>
      </p>
      <dl class="diff">
        {fields.map(({ field, from, to }) => (
          <div key={field}>
            <dt>{field}</dt>
            <dd dir="auto">
              {change === 'changed' && (
                <>
                  <del>{textOf(from)}</del> →{' '}
                </>
              )}
              <ins>{textOf(to)}</ins>
            </dd>
          </div>
        ))}
      </dl>
    </li>
  );
}

function textOf(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.length > VALUE_SHOWN_MAX ? `${text.slice(0, VALUE_SHOWN_MAX)}…` : text;
}
