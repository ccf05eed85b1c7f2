/** The interface for who writes programs: each operation that the caller may call, to be tried, and the messages and events. */
import { useSignal } from '@preact/signals';
import { document } from '../../../docs/asyncapi.yaml';
import { call, mayDo, session } from '../api.ts';
import { type Call, callsOf, nameOf, type OpenApi, type Schema, typeOf } from '../documents.ts';
import { Reads } from '../messages.tsx';
import { Opened } from '../opened.tsx';
import { API } from '../place.ts';
import { SearchField } from '../search-field.tsx';
import { TryIt } from '../try-it.tsx';
import { useRead } from '../use-read.ts';
import { t } from '../words.ts';

type Role = Parameters<typeof mayDo>[0];
const DAY_MS = 86_400_000;

const isMine = ({ 'x-roles': roles }: Call) => roles === undefined || mayDo(...(roles as Role[]));

export function ApiPage() {
  const text = useSignal('');
  const { value, fault } = useRead(async () => callsOf(await call<OpenApi>('GET', '/openapi.json')), {
    everyMs: DAY_MS,
  });
  const search = text.value.trim().toLowerCase();
  const mine = value?.filter(isMine) ?? [];
  const found = mine.filter((each) =>
    [each.path, each.summary, each.operationId, each.method].some((part) =>
      part.toLowerCase().includes(search),
    ),
  );
  return (
    <>
      <h1>{t('apiPage')}</h1>
      <p class="soft">{t('apiHelp', { roles: session.value?.roles.join(', ') ?? '' })}</p>
      <p class="choices">
        <a class="back" href={`${API}/docs`}>
          {t('apiReference')}
        </a>
        <a class="back" href={`${API}/openapi.json`} download="openapi.json">
          openapi.json
        </a>
      </p>
      <SearchField label={t('apiSearch')} text={text} />
      <Reads value={value} fault={fault} />
      {value && (
        <p role="status" class="soft">
          {t('apiShown', { shown: found.length, hidden: value.length - mine.length })}
        </p>
      )}
      {[...new Set(found.flatMap(({ tags }) => tags))].map((tag) => (
        <section key={tag}>
          <h2>{tag}</h2>
          {found
            .filter(({ tags }) => tags.includes(tag))
            .map((each) => (
              <Opened key={each.operationId} summary={<Title {...each} />}>
                <TryIt call={each} />
              </Opened>
            ))}
        </section>
      ))}
      <Messages search={search} />
    </>
  );
}

function Title({ method, path, summary }: Call) {
  return (
    <span>
      <code>
        <b>{method}</b> {path}
      </code>
      <br />
      {summary}
    </span>
  );
}

// The messages of the AsyncAPI document: what encoders and the gateway say to each other, and the events.

function Messages({ search }: { search: string }) {
  const found = document.channels.filter(({ address, description, schemas }) =>
    [address, description, ...schemas].some((text) => text.toLowerCase().includes(search)),
  );
  return (
    <section>
      <h2>{t('apiMessages')}</h2>
      <p class="soft">{t('apiMessagesHelp')}</p>
      {found.map(({ address, description, server, schemas }) => (
        <Opened key={address} summary={<code>{address}</code>}>
          <p class="soft">
            {server}: {description}
          </p>
          {schemas.map((name) => (
            <section key={name}>
              <h3>{name}</h3>
              <Fields schema={document.schemas[name] ?? {}} depth={0} />
            </section>
          ))}
        </Opened>
      ))}
    </section>
  );
}

function resolved(schema: Schema): Schema {
  return schema.$ref === undefined ? schema : (document.schemas[nameOf(schema.$ref)] ?? {});
}

/** Deeper there is nothing that has no name of its own. */
const DEPTH_MAX = 4;

function Fields({ schema, depth }: { schema: Schema; depth: number }) {
  const { properties = {}, optional = [], description } = schema;
  return (
    <>
      {description && <p class="soft">{description}</p>}
      <ul class="fields">
        {Object.entries(properties).map(([name, field]) => {
          const inner = resolved(field.items ?? field);
          return (
            <li key={name}>
              <code>{name}</code> {typeOf(field)}
              {optional.includes(name) ? ` (${t('apiOptional')})` : ''}
              {inner.properties && depth < DEPTH_MAX ? (
                <Fields schema={inner} depth={depth + 1} />
              ) : (
                field.description && <span class="soft"> {field.description}</span>
              )}
            </li>
          );
        })}
      </ul>
    </>
  );
}
