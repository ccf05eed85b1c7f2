/** Who did what: the audit, the newest first, by who and by action. */
import { useSignal } from '@preact/signals';
import type { z } from 'zod';
import type { auditPage } from '../../services/audit/schema.ts';
import { call } from '../api.ts';
import { AuditExport } from '../audit-export.tsx';
import { useRead, wordsOf } from '../use-read.ts';
import { moment, t } from '../words.ts';

type Page = z.infer<typeof auditPage>;
const PAGE = 50;
const READ_MS = 10_000;

export function AuditPage() {
  const who = useSignal('');
  const what = useSignal('');
  const older = useSignal<Page>({ items: [], next: null });
  const refusal = useSignal('');
  const query = new URLSearchParams({ limit: String(PAGE) });
  if (who.value) query.set('actor', who.value);
  if (what.value) query.set('action', what.value);
  const path = `/audit?${query}`;
  const { value, fault } = useRead(() => call<Page>('GET', path), {
    key: path,
    everyMs: READ_MS,
    isMine: () => false,
  });
  const narrow = (field: typeof who, text: string) => {
    field.value = text;
    older.value = { items: [], next: null };
  };
  const more = async () => {
    const cursor = older.value.next ?? value?.next;
    try {
      const page = await call<Page>('GET', `${path}&cursor=${cursor}`);
      older.value = { items: [...older.value.items, ...page.items], next: page.next };
      refusal.value = '';
    } catch (error) {
      refusal.value = wordsOf(error);
    }
  };
  // The newest page is read again meanwhile: what has moved on from it is in the older ones, or is not shown twice.
  const last = value?.items.at(-1)?.seq ?? 0;
  const items = [...(value?.items ?? []), ...older.value.items.filter(({ seq }) => seq < last)];
  const hasMore = older.value.items.length > 0 ? older.value.next !== null : Boolean(value?.next);
  return (
    <>
      <h1>{t('audit')}</h1>
      {/* Without `value`: to read the page again must not take away what is being typed. */}
      <search class="tools">
        <input
          type="search"
          aria-label={t('who')}
          placeholder={t('who')}
          onChange={({ currentTarget }) => narrow(who, currentTarget.value)}
        />
        <input
          type="search"
          aria-label={t('what')}
          placeholder={t('what')}
          onChange={({ currentTarget }) => narrow(what, currentTarget.value)}
        />
      </search>
      <AuditExport query={query} />
      {(fault || refusal.value) && <p role="alert">{fault || refusal.value}</p>}
      {!value && !fault && <p role="status">{t('loading')}</p>}
      {value && items.length === 0 && <p>{t('noAudit')}</p>}
      <ul class="log">
        {items.map(({ seq, at, principal, action, object, outcome }) => (
          <li key={seq}>
            <strong>{action}</strong> {object} · {outcome}
            <br />
            <span class="soft" dir="auto">
              {moment(at)} · {principal.label}
            </span>
          </li>
        ))}
      </ul>
      {hasMore && (
        <button type="button" onClick={more}>
          {t('more')}
        </button>
      )}
    </>
  );
}
