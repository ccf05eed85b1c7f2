/** Who has access: tokens of programs and sessions of people, their revocation, and a login code for a colleague. */
import { useSignal } from '@preact/signals';
import type { CreatedToken, LoginCode, Session, Token } from '../../services/auth/schema.ts';
import { call, gatewayNow, readAll, session } from '../api.ts';
import { Ask, asking } from '../ask.tsx';
import { Chosen, Typed, typed } from '../edit-form.tsx';
import { Alert, Reads } from '../messages.tsx';
import { QrCode } from '../qr-code.tsx';
import { useOrder } from '../use-order.ts';
import { useRead } from '../use-read.ts';
import { ago, moment, t } from '../words.ts';
import { signInAddress } from './sign-in.tsx';

const READ_MS = 15_000;

async function readTokens(): Promise<Token[]> {
  const tokens = await readAll<Token>('/tokens');
  return tokens.filter(({ status }) => status === 'active').toReversed();
}

export function Access() {
  const reading = useRead(readTokens, {
    everyMs: READ_MS,
    isMine: ({ type }) => type.startsWith('gatehouse.token.'),
  });
  const { said, run } = useOrder(reading.again);
  return (
    <>
      <h1>{t('access')}</h1>
      <Reads value={reading.value} fault={said.value || reading.fault} />
      <Colleague />
      <NewToken ended={reading.again} />
      <h2>{t('tokens')}</h2>
      <ul class="cards">
        {reading.value?.map((token) => (
          <li key={token.id} class="card row">
            <span class="what">
              <strong dir="auto">{token.label}</strong>
              <span class="soft">{factsOf(token)}</span>
            </span>
            {/* One's own is ended by signing out: it is the first of the list, and easily taken for another one. */}
            {token.principalId !== session.value?.principalId && (
              <Ask
                {...asking('revoke', { name: token.label })}
                onYes={() => run(() => call('DELETE', `/tokens/${token.id}`))}
              />
            )}
          </li>
        ))}
      </ul>
    </>
  );
}

function factsOf({ principalId, kind, roles, lastUsedAt, expiresAt }: Token): string {
  return [
    t(
      principalId === session.value?.principalId
        ? 'thisSession'
        : kind === 'api'
          ? 'tokenApi'
          : 'tokenSession',
    ),
    roles.join(', '),
    lastUsedAt === null ? t('neverUsed') : t('lastUsed', { time: ago(lastUsedAt, gatewayNow()) }),
    t('until', { time: moment(expiresAt) }),
  ].join(' · ');
}

const choicesOf = (roles: Session['roles']) => roles.map((role) => ({ id: role, name: role }));

/** The gateway gives no role that the caller does not have. */
function Colleague() {
  const roles: Session['roles'] = session.value?.roles ?? [];
  const label = useSignal('');
  const role = useSignal<string>(roles[0] ?? '');
  const made = useSignal<LoginCode | undefined>(undefined);
  const { said, submit } = useOrder();
  const make = submit(async () => {
    made.value = undefined;
    const body = { label: label.value, roles: [role.value] };
    made.value = await call<LoginCode>('POST', '/login-codes', { body });
  });
  return (
    <section>
      <h2>{t('colleague')}</h2>
      <form class="tools" onSubmit={make}>
        <input required aria-label={t('label')} placeholder={t('label')} {...typed(label)} />
        <Chosen label={t('role')} isBare choices={choicesOf(roles)} chosen={role} />
        <button type="submit">{t('makeCode')}</button>
      </form>
      <Alert text={said.value} />
      <div role="status">
        {made.value && (
          <div class="card good">
            <p class="next">{t('codeMade', { code: made.value.code, time: moment(made.value.expiresAt) })}</p>
            <QrCode text={signInAddress(made.value.code)} label={t('codeToScan')} />
            <p class="soft">{t('codeToScan')}</p>
          </div>
        )}
      </div>
    </section>
  );
}

// Makes a token for a program: it is shown once, and by then it counts.

/** The gateway gives no role that the caller does not have. */
function NewToken({ ended }: { ended: () => void }) {
  const roles = session.value?.roles ?? [];
  const label = useSignal('');
  const role = useSignal<string>(roles[0] ?? '');
  const days = useSignal('90');
  const made = useSignal<CreatedToken | undefined>(undefined);
  const { busy, said, submit } = useOrder(ended);
  const make = submit(async () => {
    made.value = undefined;
    const body = { label: label.value, roles: [role.value], expiresInDays: Number(days.value) };
    made.value = await call<CreatedToken>('POST', '/tokens', { body, key: crypto.randomUUID() });
    label.value = '';
  });
  return (
    <details>
      <summary>{t('newToken')}</summary>
      <p class="soft">{t('newTokenHelp')}</p>
      <form onSubmit={make}>
        <Typed label={t('newTokenFor')} text={label} />
        <Chosen label={t('newTokenRole')} choices={choicesOf(roles)} chosen={role} />
        <Typed label={t('newTokenDays')} isExact text={days} />
        <button type="submit" class="primary" disabled={busy.value || label.value === ''}>
          {t('newTokenMake')}
        </button>
        <div role="status">
          {said.value && <p class="card bad">{said.value}</p>}
          {made.value && (
            <div class="card good">
              <p>{t('newTokenMade', { time: moment(made.value.expiresAt) })}</p>
              <p>
                <code>{made.value.token}</code>
              </p>
            </div>
          )}
        </div>
      </form>
    </details>
  );
}
