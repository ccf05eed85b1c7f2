/** A button that moves something: asks, orders it once for each answer, and says what is known of its outcome. */
import { useSignal } from '@preact/signals';
import { call, isUnanswered } from './api.ts';
import { Ask } from './ask.tsx';
import { Said } from './messages.tsx';
import { useOrder } from './use-order.ts';
import { wordsOf } from './use-read.ts';

/** What became of it, for a person. */
export interface Outcome {
  severity: 'good' | 'warn' | 'bad';
  text: string;
}

export interface ActuateProps<Result> {
  label: string;
  /** Instead of `label` while it is under way. */
  busyLabel?: string;
  question: string;
  yes: string;
  /** Default: POST. */
  method?: 'POST' | 'DELETE';
  path: string;
  body?: unknown;
  /** Default: true. */
  primary?: boolean;
  /** Shown when there was no answer: it may have been carried out. */
  noAnswer: string;
  outcomeOf(result: Result): Outcome;
  /** Called after each answer, for what it changes to be read. */
  ended(): void;
}

export function Actuate<Result>({
  label,
  busyLabel = label,
  question,
  yes,
  method = 'POST',
  path,
  body,
  primary = true,
  noAnswer,
  outcomeOf,
  ended,
}: ActuateProps<Result>) {
  const outcome = useSignal<Outcome | undefined>(undefined);
  const { busy, said, submit } = useOrder(ended, (error) =>
    isUnanswered(error) ? noAnswer : wordsOf(error),
  );
  const order = submit(async () => {
    outcome.value = undefined;
    const key = method === 'POST' ? { key: crypto.randomUUID() } : {};
    outcome.value = outcomeOf(await call<Result>(method, path, { body, ...key }));
  });
  const { severity, text } = outcome.value ?? { severity: 'bad', text: said.value };
  return (
    <section>
      <Ask
        label={busy.value ? busyLabel : label}
        question={question}
        yes={yes}
        primary={primary}
        disabled={busy.value}
        onYes={order}
      />
      <Said text={text} tone={`card ${severity}`} />
    </section>
  );
}
