/** Saves what a page has found as a file. */
import { download } from './download.ts';
import { Said } from './messages.tsx';
import { useOrder } from './use-order.ts';
import { t } from './words.ts';

/** What is no text is saved as JSON. */
type Row = Record<string, unknown>;

const TYPES = { csv: 'text/csv', json: 'application/json' };

interface ExportProps {
  /** Of the file. */
  name: string;
  /** All of it, the oldest first. */
  read(): Promise<readonly object[]>;
  /** For CSV. */
  row(entry: never): Row;
}

export function Export({ name, read, row }: ExportProps) {
  const { said, run } = useOrder();
  const save = async (format: keyof typeof TYPES) => {
    const entries = await read();
    const text = format === 'csv' ? csvOf(entries.map((entry) => row(entry as never))) : jsonOf(entries);
    download(`gatehouse-${name}.${format}`, TYPES[format], text);
    return t('exported', { count: entries.length });
  };
  return (
    <>
      <span class="choices">
        {(['csv', 'json'] as const).map((format) => (
          <button key={format} type="button" onClick={() => run(() => save(format), t('exporting'))}>
            {t('export')}: {format.toUpperCase()}
          </button>
        ))}
      </span>
      <Said text={said.value} />
    </>
  );
}

const jsonOf = (entries: readonly object[]) => JSON.stringify(entries, null, 2);

/** RFC 4180. */
function csvOf(rows: readonly Row[]): string {
  const lines = rows.map((row) =>
    Object.values(row).map((value) => (typeof value === 'string' ? value : JSON.stringify(value))),
  );
  return [Object.keys(rows[0] ?? {}), ...lines].map((line) => `${line.map(cell).join(',')}\r\n`).join('');
}

/** A spreadsheet would take text that begins so for a formula (OWASP, CSV injection). */
function cell(text: string): string {
  return `"${(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
}
