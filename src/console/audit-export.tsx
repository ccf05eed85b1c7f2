/** Saves what the audit has of a period, with the filters of its page, as a file. */
import { useSignal } from '@preact/signals';
import type { z } from 'zod';
import type { auditPage } from '../services/audit/schema.ts';
import { readAll } from './api.ts';
import { download } from './download.ts';
import { wordsOf } from './use-read.ts';
import { t } from './words.ts';

type Entry = z.infer<typeof auditPage>['items'][number];

const COLUMNS = ['seq', 'at', 'principal', 'action', 'object', 'outcome', 'correlationId', 'detail'] as const;
const FORMATS = {
  csv: { type: 'text/csv', text: csvOf },
  json: { type: 'application/json', text: (entries: readonly Entry[]) => JSON.stringify(entries, null, 2) },
} as const;

/** `query`: the filters of the page. */
export function AuditExport({ query }: { query: URLSearchParams }) {
  const from = useSignal('');
  const to = useSignal('');
  const message = useSignal('');
  const save = async (format: keyof typeof FORMATS) => {
    message.value = t('exporting');
    try {
      const wanted = new URLSearchParams(query);
      wanted.delete('limit');
      if (from.value) wanted.set('from', new Date(from.value).toISOString());
      if (to.value) wanted.set('to', new Date(to.value).toISOString());
      const entries = (await readAll<Entry>(`/audit?${wanted}`)).toReversed();
      const { type, text } = FORMATS[format];
      download(`gatehouse-audit.${format}`, type, text(entries));
      message.value = t('exported', { count: entries.length });
    } catch (error) {
      message.value = wordsOf(error);
    }
  };
  const time = (label: string, kept: typeof from) => (
    <label>
      {label}
      <input
        type="datetime-local"
        value={kept.value}
        onChange={({ currentTarget }) => {
          kept.value = currentTarget.value;
        }}
      />
    </label>
  );
  return (
    <details>
      <summary>{t('export')}</summary>
      <form onSubmit={(event) => event.preventDefault()}>
        {time(t('from'), from)}
        {time(t('to'), to)}
        <span class="choices">
          <button type="button" onClick={() => save('csv')}>
            CSV
          </button>
          <button type="button" onClick={() => save('json')}>
            JSON
          </button>
        </span>
        <div role="status">{message.value && <p>{message.value}</p>}</div>
      </form>
    </details>
  );
}

/** RFC 4180. */
function csvOf(entries: readonly Entry[]): string {
  const rows = entries.map((entry) =>
    COLUMNS.map((name) => {
      if (name === 'principal') return entry.principal.label;
      return name === 'detail' ? JSON.stringify(entry.detail) : String(entry[name]);
    }),
  );
  return [COLUMNS, ...rows].map((row) => `${row.map(cell).join(',')}\r\n`).join('');
}

/** A spreadsheet would take text that begins so for a formula (OWASP, CSV injection). */
function cell(text: string): string {
  return `"${(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
}
