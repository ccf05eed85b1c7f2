/** One operation: what it takes, sent with the rights of who is signed in, and the same for a shell. */
import { useSignal } from '@preact/signals';
import { session } from './api.ts';
import { Ask, asking } from './ask.tsx';
import { type Call, curlOf, pathOf, typeOf } from './documents.ts';
import { API } from './place.ts';
import { listed, t } from './words.ts';

/** The page stays usable. */
const SHOWN_MAX = 100_000;
const UNAUTHORIZED = 401;

export function TryIt({ call }: { call: Call }) {
  const { method, parameters = [], requestBody, responses, description } = call;
  const example = requestBody?.content['application/json'];
  const filled = useSignal<Record<string, string>>({});
  const body = useSignal(example && JSON.stringify(example.example ?? {}, null, 2));
  const answer = useSignal('');
  const isStream = Object.values(responses).some(({ content }) => content?.['text/event-stream']);
  const isReady = parameters.every(({ name, required }) => !required || filled.value[name]);
  const send = async () => {
    answer.value = t('loading');
    answer.value = await exchanged(call, filled.value, body.value);
  };
  return (
    <>
      {description && <p>{description}</p>}
      <form onSubmit={(event) => event.preventDefault()}>
        {parameters.map(({ name, in: place, required, description: words, schema }) => (
          <label key={name}>
            <span>
              <code>{name}</code>{' '}
              <span class="soft">{listed([place, typeOf(schema), required && t('apiRequired'), words])}</span>
            </span>
            <input
              autocomplete="off"
              autocapitalize="off"
              value={filled.value[name] ?? ''}
              onInput={({ currentTarget }) => {
                filled.value = { ...filled.value, [name]: currentTarget.value };
              }}
            />
          </label>
        ))}
        {body.value !== undefined && (
          <label>
            {t('apiBody')} {example && typeOf(example.schema)}
            <textarea
              rows={8}
              spellcheck={false}
              value={body.value}
              onInput={({ currentTarget }) => {
                body.value = currentTarget.value;
              }}
            />
          </label>
        )}
      </form>
      <Send
        method={method}
        path={pathOf(call, filled.value)}
        disabled={!isReady}
        isStream={isStream}
        send={send}
      />
      <div role="status">{answer.value && <pre>{answer.value}</pre>}</div>
      <pre>{curlOf(call, { parameters: filled.value, body: body.value }, location.origin + API)}</pre>
    </>
  );
}

interface SendProps {
  method: string;
  path: string;
  disabled: boolean;
  isStream: boolean;
  send(): void;
}

/** What changes something is sent after a question only. */
function Send({ method, path, disabled, isStream, send }: SendProps) {
  if (isStream) return <p class="soft">{t('apiStream')}</p>;
  if (method === 'GET')
    return (
      <button type="button" disabled={disabled} onClick={send}>
        {t('apiSend')}
      </button>
    );
  return <Ask {...asking('apiSend', { what: `${method} ${path}` })} disabled={disabled} onYes={send} />;
}

/** The answer as it came, with what a program would look at in its head. */
async function exchanged(
  call: Call,
  parameters: Readonly<Record<string, string>>,
  body: string | undefined,
): Promise<string> {
  const { method } = call;
  const headers = {
    ...(body !== undefined && { 'Content-Type': 'application/json' }),
    // A browser that sends it again by itself has it carried out once.
    ...(method === 'POST' && { 'Idempotency-Key': crypto.randomUUID() }),
  };
  let response: Response;
  try {
    const content = body === undefined ? {} : { body };
    response = await fetch(API + pathOf(call, parameters), { method, headers, ...content });
  } catch {
    return t('noAnswer');
  }
  const text = await response.text();
  if (response.status === UNAUTHORIZED) session.value = null;
  const head = ['ETag', 'Location', 'Retry-After'].flatMap((name) => {
    const value = response.headers.get(name);
    return value === null ? [] : [`${name}: ${value}`];
  });
  return [`${response.status} ${response.statusText}`, ...head, '', shown(text)].join('\n');
}

function shown(text: string): string {
  let whole = text;
  try {
    whole = JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // It is no JSON: as it came.
  }
  return whole.length > SHOWN_MAX ? `${whole.slice(0, SHOWN_MAX)}\n…` : whole;
}
