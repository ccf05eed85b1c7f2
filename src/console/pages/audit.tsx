/** Who did what: the audit, the newest first, by who, by action and of a time. */
import { useSignal } from '@preact/signals';
import type { z } from 'zod';
import type { auditPage, VerifiedPage } from '../../services/audit/schema.ts';
import { call, readAll } from '../api.ts';
import { Export } from '../export.tsx';
import { Reads, Said } from '../messages.tsx';
import { named, useNames } from '../names.ts';
import { TimeFields, type TimeRange, timeQuery } from '../time-range.tsx';
import { useOrder } from '../use-order.ts';
import { useRead } from '../use-read.ts';
import { moment, t } from '../words.ts';

type Page = z.infer<typeof auditPage>;
type Entry = Page['items'][number];
const PAGE = 50;
const READ_MS = 10_000;

export function AuditPage() {
  const who = useSignal('');
  const what = useSignal('');
  const range = useSignal<TimeRange>({ from: '', to: '' });
  const older = useSignal<{ path: string } & Page>({ path: '', items: [], next: null });
  const { said, run } = useOrder();
  useNames();
  const query = new URLSearchParams({
    ...(who.value && { actor: who.value }),
    ...(what.value && { action: what.value }),
    ...timeQuery(range.value),
  });
  const path = `/audit?${query}&limit=${PAGE}`;
  const { value, fault } = useRead(() => call<Page>('GET', path), {
    key: path,
    everyMs: READ_MS,
  });
  const before = older.value.path === path ? older.value : { items: [], next: null };
  const more = async () => {
    const page = await call<Page>('GET', `${path}&cursor=${before.next ?? value?.next}`);
    older.value = { path, items: [...before.items, ...page.items], next: page.next };
  };
  // The newest page is read again meanwhile: what has moved on from it is in the older ones, or is not shown twice.
  const last = value?.items.at(-1)?.seq ?? 0;
  const items = [...(value?.items ?? []), ...before.items.filter(({ seq }) => seq < last)];
  const hasMore = before.items.length > 0 ? before.next !== null : Boolean(value?.next);
  return (
    <>
      <h1>{t('audit')}</h1>
      {/* Without `value`: to read the page again must not take away what is being typed. */}
      <search class="tools">
        <input
          type="search"
          aria-label={t('who')}
          placeholder={t('who')}
          onChange={({ currentTarget }) => {
            who.value = currentTarget.value;
          }}
        />
        <input
          type="search"
          aria-label={t('what')}
          placeholder={t('what')}
          onChange={({ currentTarget }) => {
            what.value = currentTarget.value;
          }}
        />
      </search>
      <details>
        <summary>{t('periodAndExport')}</summary>
        <form onSubmit={(event) => event.preventDefault()}>
          <TimeFields range={range} />
          <Export
            name="audit"
            read={async () => (await readAll<Entry>(`/audit?${query}`)).toReversed()}
            row={({ seq, at, principal, action, object, outcome, correlationId, detail }: Entry) => ({
              seq,
              at,
              principal: principal.label,
              action,
              object,
              outcome,
              correlationId,
              detail,
            })}
          />
        </form>
        <ChainCheck />
      </details>
      <Reads value={value} fault={fault || said.value} />
      {value && items.length === 0 && <p>{t('noAudit')}</p>}
      <ul class="log">
        {items.map(({ seq, at, principal, action, object, outcome }) => (
          <li key={seq}>
            <strong>{action}</strong> <bdi>{named(object)}</bdi> · {outcome}
            <br />
            <span class="soft" dir="auto">
              {moment(at)} · {principal.label}
            </span>
          </li>
        ))}
      </ul>
      {hasMore && (
        <button type="button" onClick={() => run(more)}>
          {t('more')}
        </button>
      )}
    </>
  );
}

// Whether the audit is as it was written: asked for, since every entry is looked at.

function ChainCheck() {
  const { busy, said, run } = useOrder();
  const check = async () => {
    let page: VerifiedPage | undefined;
    do {
      page = await call<VerifiedPage>('GET', `/audit/verify?after=${page?.through ?? 0}`);
    } while (!page.complete && page.fault === null);
    return page.fault
      ? t('chainFault', { entry: page.fault.firstBad, reason: page.fault.reason })
      : t('chainSound', { count: page.through - page.prunedThrough });
  };
  return (
    <>
      <button type="button" disabled={busy.value} onClick={() => run(check, t('loading'))}>
        {t('chainCheck')}
      </button>
      <Said text={said.value} />
    </>
  );
}
