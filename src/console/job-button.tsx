/**
 * A button for long work of the gateway: asks, shows how far it is, stops it, and says how it ended. A page that is loaded again
 * goes on with what it has ordered.
 */
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { Job } from '../services/jobs/schema.ts';
import { call, isUnanswered, Refused } from './api.ts';
import { Ask } from './ask.tsx';
import { useOrder } from './use-order.ts';
import { errorOf, t } from './words.ts';

export type { Job };

const LOOK_MS = 1_000;

const isOpen = ({ status }: Job) => status === 'queued' || status === 'running';

export interface JobButtonProps {
  label: string;
  question: string;
  yes: string;
  path: string;
  /** Which of several buttons with this path. */
  of?: string;
  body?: object;
  /** Whether only what was ordered before is shown. */
  isOver?: boolean;
  /** Shown when the gateway wants the order confirmed (CONFIRMATION_NEEDED), which is sent with `confirm` then. */
  anyway?: string;
  running(percent: number): string;
  done(job: Job): ComponentChildren;
  /** It was accepted. */
  begun?(): void;
  ended(job: Job): void;
}

export function JobButton({
  label,
  question,
  yes,
  path,
  of = '',
  body,
  isOver = false,
  anyway,
  running,
  done,
  begun,
  ended,
}: JobButtonProps) {
  const job = useSignal<Job | undefined>(undefined);
  const { said, isUnconfirmed, run } = useOrder();
  const isRunning = job.value && isOpen(job.value);
  const kept = `gatehouse.job ${path} ${of}`;
  const isShown = useRef(true);
  const follow = async (ordered: Job) => {
    sessionStorage.setItem(kept, ordered.id);
    let now = ordered;
    job.value = now;
    while (isOpen(now)) {
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      if (!isShown.current) return;
      try {
        now = await call<Job>('GET', `/jobs/${now.id}`);
        job.value = now;
      } catch (error) {
        // The gateway may be away for a moment, and the job goes on.
        if (!isUnanswered(error)) throw error;
      }
    }
    sessionStorage.removeItem(kept);
    ended(now);
  };
  useEffect(() => {
    isShown.current = true;
    const id = sessionStorage.getItem(kept);
    if (id !== null)
      void run(() =>
        call<Job>('GET', `/jobs/${id}`)
          .then(follow)
          .catch((error) => {
            // The gateway keeps jobs for a time.
            if (!(error instanceof Refused) || error.status !== 404) throw error;
            sessionStorage.removeItem(kept);
          }),
      );
    return () => {
      isShown.current = false;
    };
  }, [kept]);
  const begin = (order: object | undefined) =>
    run(async () => {
      const ordered = await call<Job>('POST', path, { body: order, key: crypto.randomUUID() });
      begun?.();
      await follow(ordered);
    });
  const stop = () => run(() => call('DELETE', `/jobs/${job.value?.id}`));
  return (
    <>
      {isRunning ? (
        <button type="button" onClick={stop}>
          {t('stop')}
        </button>
      ) : (
        !isOver && <Ask label={label} question={question} yes={yes} onYes={() => begin(body)} />
      )}
      <div role="status">
        {isRunning && <p>{running(job.value?.progress.percent ?? 0)}</p>}
        {job.value?.status === 'done' && <div>{done(job.value)}</div>}
        {job.value?.error && <p>{errorOf(job.value.error)}</p>}
        {said.value && <p>{said.value}</p>}
        {isUnconfirmed.value && anyway !== undefined && (
          <button type="button" onClick={() => begin({ ...body, confirm: true })}>
            {anyway}
          </button>
        )}
      </div>
    </>
  );
}
