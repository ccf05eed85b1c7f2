/** Events that the gateway keeps, the newest first, with those that come meanwhile on top. */
import { useSignal } from '@preact/signals';
import { call, PAGE } from './api.ts';
import { type LiveEvent, localEvent, recent } from './live.ts';
import { Reads } from './messages.tsx';
import { named } from './names.ts';
import { useOrder } from './use-order.ts';
import { useRead } from './use-read.ts';
import { kindOf, moment, t, withTimes } from './words.ts';

interface Page {
  items: LiveEvent[];
  next: string | null;
}

const SHOWN = 30;
const READ_MS = 60_000;

interface EventLogProps {
  /** Of GET /events/log. */
  query: Record<string, string>;
  /** Which of what was read is shown; of what comes meanwhile too. */
  isMine(event: LiveEvent): boolean;
  /** Whether what comes meanwhile belongs to it. */
  isLive?: boolean;
  withSource?: boolean;
}

export function EventLog({ query, isMine, isLive = true, withSource = false }: EventLogProps) {
  const path = `/events/log?${new URLSearchParams({ ...query, limit: String(SHOWN) })}`;
  const older = useSignal<{ path: string } & Page>({ path, items: [], next: null });
  const { said, run } = useOrder();
  const { value, fault: unread } = useRead(() => readPage(path), {
    key: path,
    everyMs: READ_MS,
  });
  const more = older.value.path === path ? older.value : { items: [], next: null };
  const next = more.items.length > 0 ? more.next : (value?.next ?? null);
  const events = new Map(
    [...(isLive ? recent.value : []), ...(value?.items ?? []), ...more.items].map((event) => [
      event.id,
      event,
    ]),
  );
  const shown = [...events.values()].filter(isMine);
  const readMore = async () => {
    let items = more.items;
    let cursor = next;
    // A page may have none of what is searched for.
    do {
      const page = await readPage(`${path}&cursor=${cursor}`);
      items = [...items, ...page.items];
      cursor = page.next;
    } while (cursor !== null && items.filter(isMine).length === more.items.filter(isMine).length);
    older.value = { path, items, next: cursor };
  };
  return (
    <>
      <Reads value={value} fault={unread || said.value} />
      {(value || shown.length > 0) && <EventList events={shown} withSource={withSource} />}
      {next !== null && (
        <button type="button" onClick={() => run(readMore)}>
          {t('more')}
        </button>
      )}
    </>
  );
}

async function readPage(path: string): Promise<Page> {
  const { items, next } = await call<Page>('GET', path);
  return { items: items.map(localEvent), next };
}

/** All that is kept, the oldest first. */
export async function readEvents(
  query: Record<string, string>,
  isMine: (event: LiveEvent) => boolean,
): Promise<LiveEvent[]> {
  const path = `/events/log?${new URLSearchParams({ ...query, limit: String(PAGE) })}`;
  const found: LiveEvent[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page: Page = await readPage(`${path}${cursor && `&cursor=${cursor}`}`);
    found.push(...page.items.filter(isMine));
    cursor = page.next;
  }
  return found.toReversed();
}

interface EventListProps {
  events: readonly LiveEvent[];
  /** Whose they are is not plain from where they are shown. */
  withSource?: boolean;
}

function EventList({ events, withSource = false }: EventListProps) {
  if (events.length === 0) return <p class="soft">{t('noEvents')}</p>;
  return (
    <ul class="log">
      {events.map(({ id, time, type, source, data }) => (
        <li key={id}>
          <time dateTime={time}>{timeOf(time)}</time> {kindOf(type)}{' '}
          {withSource && <bdi>{named(source)}</bdi>}{' '}
          <span class="soft" dir="auto">
            {valuesOf(data)}
          </span>
        </li>
      ))}
    </ul>
  );
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-/;

/** The plain values of an event that say something to a person. */
function valuesOf(data: Record<string, unknown>): string {
  return Object.entries(data)
    .filter(([, value]) => typeof value !== 'object' && !UUID.test(String(value)))
    .map(([name, value]) => `${name} ${withTimes(String(value))}`)
    .join(' · ');
}

/** Of today without its date. */
function timeOf(time: string): string {
  const at = new Date(time);
  return at.toDateString() === new Date().toDateString() ? at.toLocaleTimeString() : moment(time);
}
