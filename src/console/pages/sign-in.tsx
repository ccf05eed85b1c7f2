/** The only page without a session: a login code is redeemed for one (POST /session). */
import { useEffect, useState } from 'preact/hooks';
import type { Session } from '../../services/auth/schema.ts';
import { call, session } from '../api.ts';
import { wordsOf } from '../use-read.ts';
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
  const [fault, setFault] = useState('');
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    // The address of a code, opened where this page stands already, loads nothing.
    const take = () => setCode((before) => codeInAddress() || before);
    addEventListener('hashchange', take);
    return () => removeEventListener('hashchange', take);
  }, []);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setFault('');
    try {
      session.value = await call<Session>('POST', '/session', { body: { code } });
    } catch (error) {
      setFault(wordsOf(error));
    }
    setBusy(false);
  };
  return (
    <form onSubmit={submit}>
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
      {fault && <p role="alert">{fault}</p>}
      <button type="submit" class="primary" disabled={busy}>
        {t('signIn')}
      </button>
      <p class="soft">{t('signInHelp')}</p>
    </form>
  );
}
