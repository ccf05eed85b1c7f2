/** The messages of the AsyncAPI document: what encoders and the gateway say to each other, and the events. */
import { document } from '../../docs/asyncapi.yaml';
import { nameOf, type Schema, typeOf } from './documents.ts';
import { Opened } from './opened.tsx';
import { t } from './words.ts';

export function Messages({ search }: { search: string }) {
  const { channels, components } = document;
  const found = Object.values(channels).flatMap(({ address, description, servers, messages }) => {
    const names = Object.values(messages).map(({ $ref = '' }) => nameOf($ref));
    const isFound = [address, description, ...names].some((text) => text?.toLowerCase().includes(search));
    return isFound ? [{ address, description, server: nameOf(servers[0]?.$ref ?? ''), names }] : [];
  });
  return (
    <section>
      <h2>{t('apiMessages')}</h2>
      <p class="soft">{t('apiMessagesHelp')}</p>
      {found.map(({ address, description, server, names }) => (
        <Opened key={address} summary={<code>{address}</code>}>
          <p class="soft">
            {server}: {description}
          </p>
          {names.map((name) => {
            const payload = components.messages[name]?.payload ?? {};
            return (
              <section key={name}>
                <h3>{name}</h3>
                <Fields schema={resolved(payload)} depth={0} />
              </section>
            );
          })}
        </Opened>
      ))}
    </section>
  );
}

function resolved(schema: Schema): Schema {
  return schema.$ref === undefined ? schema : (document.components.schemas[nameOf(schema.$ref)] ?? {});
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
