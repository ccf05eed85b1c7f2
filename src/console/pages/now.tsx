/** What is wrong, worst first, since when, and what to do (GET /status). */
import type { Status } from '../../services/status/schema.ts';
import { call } from '../api.ts';
import { Alert } from '../messages.tsx';
import { type Absent, type Problem, problemsOf } from '../problems.ts';
import { useRead } from '../use-read.ts';
import { ago, sentence, t } from '../words.ts';

/** Figures such as the disk's come without an event. */
const READ_MS = 10_000;

/** Named at most; of more the list has the rest. */
const NAMED_MAX = 10;

async function read() {
  const status = await call<Status>('GET', '/status');
  const { encoders, zgates } = status;
  const away = `connected=false&limit=${NAMED_MAX}`;
  const list = async <Item,>(isAny: boolean, path: string): Promise<Item[]> =>
    isAny ? (await call<{ items: Item[] }>('GET', path)).items : [];
  const absent: Absent = {
    encoders: await list(encoders.connected < encoders.registered, `/encoder?revoked=false&${away}`),
    zgates: await list(zgates.connected < zgates.registered, `/network/zgate?${away}`),
  };
  return { status, absent };
}

export function Now() {
  const { value, fault } = useRead(read, { everyMs: READ_MS, isMine: () => true });
  if (!value) return <p role="status">{fault || t('loading')}</p>;
  const { status, absent } = value;
  const problems = problemsOf(status, absent);
  return (
    <>
      <h1>{t('now')}</h1>
      <Alert text={fault} />
      {problems.length === 0 ? (
        <Well status={status} />
      ) : (
        <Problems problems={problems} now={status.clock.now} />
      )}
    </>
  );
}

function Well({ status: { doors, encoders, field } }: { status: Status }) {
  return (
    <section class="card good">
      <h2>{t('allWell')}</h2>
      <p>
        {t('allWellDetail', {
          doors: doors.registered,
          encoders: encoders.registered,
          links: field.links.length,
        })}
      </p>
    </section>
  );
}

function Problems({ problems, now }: { problems: Problem[]; now: string }) {
  return (
    <>
      <p class="soft">{t('problems', { count: problems.length })}</p>
      <ul class="cards">
        {problems.map(({ severity, title, detail, since, href }) => (
          <li key={`${title} ${href}`} class={`card ${severity}`}>
            <h2>{href === undefined ? title : <a href={href}>{title}</a>}</h2>
            {detail && <p>{sentence(detail)}</p>}
            {since && <p class="soft">{ago(since, Date.parse(now))}</p>}
          </li>
        ))}
      </ul>
    </>
  );
}
