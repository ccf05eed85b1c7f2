/** What is wrong, worst first, since when, and what to do (GET /status). */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { Status } from '../../services/status/schema.ts';
import { call, Refused } from '../api.ts';
import { epoch, onEvent } from '../live.ts';
import { type Problem, problemsOf } from '../problems.ts';
import { ago, t } from '../words.ts';

/** Figures such as the disk's come without an event. */
const READ_MS = 10_000;
/** One gateway that is lost brings an event for each of its doors. */
const SETTLE_MS = 300;

export function Now() {
  const status = useSignal<Status | undefined>(undefined);
  const fault = useSignal('');
  useEffect(() => {
    if (epoch.value === 0) return;
    let timer: ReturnType<typeof setTimeout>;
    let isOpen = true;
    const read = async () => {
      try {
        const answer = await call<Status>('GET', '/status');
        if (isOpen) status.value = answer;
        fault.value = '';
      } catch (error) {
        fault.value = (error instanceof Refused && error.message) || t('noAnswer');
      }
      if (isOpen) plan(READ_MS);
    };
    const plan = (milliseconds: number) => {
      clearTimeout(timer);
      timer = setTimeout(read, milliseconds);
    };
    void read();
    const end = onEvent(() => plan(SETTLE_MS));
    return () => {
      isOpen = false;
      clearTimeout(timer);
      end();
    };
  }, [epoch.value]);
  if (!status.value) return <p role="status">{fault.value || t('loading')}</p>;
  const problems = problemsOf(status.value);
  return (
    <>
      <h1>{t('now')}</h1>
      {fault.value && <p role="alert">{fault.value}</p>}
      {problems.length === 0 ? (
        <Well status={status.value} />
      ) : (
        <Problems {...{ problems }} now={status.value.clock.now} />
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
          <li key={title} class={`card ${severity}`}>
            <h2>{href === undefined ? title : <a href={href}>{title}</a>}</h2>
            {detail && <p>{detail}</p>}
            {since && <p class="soft">{ago(since, Date.parse(now))}</p>}
          </li>
        ))}
      </ul>
    </>
  );
}
