/** The only page without a session: a login code is redeemed for one (POST /session). */
import { useEffect, useState } from 'preact/hooks';
import type { Session } from '../../services/auth/schema.ts';
import { call, session } from '../api.ts';
import { Alert } from '../messages.tsx';
import { useOrder } from '../use-order.ts';
import { t } from '../words.ts';

const HASH = '#/sign-in/';

/** Where a login code stands in the field already. What is behind the # is sent to no server and stands in no log of one. */
export const signInAddress = (code: string) => `${location.origin}/${HASH}${encodeURIComponent(code)}`;

function codeInAddress(): string {
  if (!location.hash.startsWith(HASH)) return '';
  const code = decodeURIComponent(location.hash.slice(HASH.length));
  history.replaceState(null, '', '#/');
  return code;
}

export function SignIn() {
  // It is not redeemed by itself: a link would sign a person in without a question.
  const [code, setCode] = useState(codeInAddress);
  const { busy, said, submit } = useOrder();
  useEffect(() => {
    // The address of a code, opened where this page stands already, loads nothing.
    const take = () => setCode((before) => codeInAddress() || before);
    addEventListener('hashchange', take);
    return () => removeEventListener('hashchange', take);
  }, []);
  const signIn = submit(async () => {
    session.value = await call<Session>('POST', '/session', { body: { code } });
  });
  return (
    <form onSubmit={signIn}>
      <h1>Gatehouse</h1>
      <label for="code">{t('code')}</label>
      <input
        id="code"
        required
        autocomplete="one-time-code"
        autocapitalize="characters"
        spellcheck={false}
        value={code}
        onInput={({ currentTarget }) => setCode(currentTarget.value)}
      />
      <Alert text={said.value} />
      <button type="submit" class="primary" disabled={busy.value}>
        {t('signIn')}
      </button>
      <p class="soft">{t('signInHelp')}</p>
    </form>
  );
}
