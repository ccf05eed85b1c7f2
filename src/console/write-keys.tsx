/**
 * Has an encoder write a request that was loaded or pasted, and follows each card as a person at the desk would. The id of the
 * request is chosen once: sent again after a lost answer, it is the same request (interface specification 4.3).
 */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { WriteRequestStatus } from '../resources/writes/schema.ts';
import { call, isUnanswered } from './api.ts';
import { typed } from './edit-form.tsx';
import { Alert } from './messages.tsx';
import { useOrder } from './use-order.ts';
import { useRead, wordsOf } from './use-read.ts';
import { listed, t } from './words.ts';

/** Progress comes with events; this is for what they leave out. */
const READ_MS = 5_000;

type WriteEntry = WriteRequestStatus['entries'][number];

const TERMINAL: readonly string[] = ['written', 'failed', 'cancelled', 'expired', 'unknown'];
const isEnded = ({ status }: WriteEntry) => TERMINAL.includes(status);

/** What became of one card, or what becomes of it. */
export function cardWord({ status, error }: WriteEntry): string {
  if (status === 'unknown') return t('unknownCard');
  if (status === 'written' || status === 'cancelled' || status === 'expired') return t(status);
  if (status === 'failed') return listed([t('failed'), error?.message ?? error?.code], ': ');
  return t(status === 'queued' ? 'queued' : 'inProgress');
}

/** What the person at the encoder does next, or how it ended. */
export function requestWord({ entries }: Pick<WriteRequestStatus, 'entries'>): string {
  const all = entries.length;
  const index = entries.findIndex((entry) => !isEnded(entry));
  const current = entries[index];
  if (!current) {
    const written = entries.filter(({ status }) => status === 'written').length;
    return t(written === all ? 'cardsDone' : 'cardsEnded', { written, all });
  }
  const place = { card: index + 1, all };
  if (current.status === 'queued') return t('cardQueued', place);
  const isThere = current.status === 'cardDetected' || current.status === 'writing';
  return t(isThere ? 'cardKeep' : 'cardPut', place);
}

/** Which cards no one may hand out unseen; "" when there are none. */
function checkWord({ entries }: Pick<WriteRequestStatus, 'entries'>): string {
  const cards = entries.flatMap(({ status }, index) => (status === 'unknown' ? [index + 1] : []));
  return cards.length === 0 ? '' : t('checkCards', { count: cards.length, cards: cards.join(', ') });
}

interface WriteKeysProps {
  encoderId: string;
  /** The request that the encoder works on, from any client. A page that is opened again goes on with it. */
  underWay: string | undefined;
  ended(): void;
}

export function WriteKeys({ encoderId, underWay, ended }: WriteKeysProps) {
  const text = useSignal('');
  const { busy, said, submit } = useOrder(ended, (error) =>
    isUnanswered(error) ? t('writeAgain') : wordsOf(error),
  );
  const requestId = useSignal(newId());
  const accepted = useSignal<string | undefined>(undefined);
  useEffect(() => {
    accepted.value ??= underWay;
  }, [underWay]);
  const path = `/encoder/${encodeURIComponent(encoderId)}/write-request`;
  const send = submit(async () => {
    const body = parsed(text.value);
    if (body === undefined) return t('notJson');
    await call('PUT', `${path}/${requestId.value}`, { body });
    accepted.value = requestId.value;
    text.value = '';
    requestId.value = newId();
  });
  return (
    <section>
      <h2>{t('writeKeys')}</h2>
      {accepted.value && <Follow key={accepted.value} path={`${path}/${accepted.value}`} id={encoderId} />}
      <form onSubmit={send}>
        <p class="soft">{t('writeHelp')}</p>
        <input
          type="file"
          aria-label={t('writeFile')}
          accept=".json,application/json"
          onChange={async ({ currentTarget }) => {
            text.value = (await currentTarget.files?.[0]?.text()) ?? text.value;
          }}
        />
        <textarea rows={4} required spellcheck={false} aria-label={t('writeText')} {...typed(text)} />
        {text.value === '' && (
          <button type="button" onClick={() => (text.value = exampleRequest())}>
            {t('writeExample')}
          </button>
        )}
        <Alert text={said.value} />
        <button type="submit" class="primary" disabled={busy.value}>
          {t('writeStart')}
        </button>
      </form>
    </section>
  );
}

/** For who has no PMS at hand: each card gets a key that opens nothing. */
const exampleRequest = () =>
  JSON.stringify(
    {
      description: t('writeExampleName'),
      data: [1, 2].map(() => ({ keyId: crypto.randomUUID(), blocks: ['00'.repeat(16)] })),
    },
    null,
    2,
  );

const newId = () => `console-${crypto.randomUUID()}`;

function parsed(text: string): object | undefined {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === 'object' && body !== null ? body : undefined;
  } catch {
    return undefined;
  }
}

function Follow({ path, id }: { path: string; id: string }) {
  const { value, fault, again } = useRead(() => call<WriteRequestStatus>('GET', path), {
    key: path,
    everyMs: READ_MS,
    isMine: ({ source }) => source === `encoders/${id}`,
  });
  const { said, run } = useOrder(again);
  if (!value) return <p role="status">{fault || t('loading')}</p>;
  const isOpen = value.entries.some((entry) => !isEnded(entry));
  const check = checkWord(value);
  const isGood = value.entries.every(({ status }) => status === 'written');
  return (
    <div class={`card ${check ? 'bad' : isOpen ? '' : isGood ? 'good' : 'bad'}`}>
      <p role="status" class="next">
        {requestWord(value)}
      </p>
      <Alert text={check} />
      <ol>
        {value.entries.map((entry) => (
          <li key={entry.keyId}>{cardWord(entry)}</li>
        ))}
      </ol>
      <Alert text={fault || said.value} />
      {isOpen && (
        <button type="button" onClick={() => run(() => call('DELETE', path))}>
          {t('writeCancel')}
        </button>
      )}
    </div>
  );
}
