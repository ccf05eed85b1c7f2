/** Lets locks join: any, or one by its address and install code; counts down, and shows who came and who did not. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { Door } from '../resources/doors/schema.ts';
import type { Zgate, ZgateState } from '../resources/zgates/schema.ts';
import { call, mayDo } from './api.ts';
import { Countdown } from './countdown.tsx';
import { Typed } from './edit-form.tsx';
import { onEvent } from './live.ts';
import { Alert } from './messages.tsx';
import { DOORS } from './place.ts';
import { ScanCode } from './scan-code.tsx';
import { useOrder } from './use-order.ts';
import { useRead } from './use-read.ts';
import { moment, t } from './words.ts';

const SECONDS = 180;
/** Its name comes with an event. */
const READ_MS = 60_000;

interface JoinWindowProps {
  gateway: Zgate;
  state: ZgateState;
  ended(): void;
}

export function JoinWindow({ gateway, state: { joinWindow, failedJoins }, ended }: JoinWindowProps) {
  const mac = useSignal('');
  const code = useSignal('');
  const { said, submit } = useOrder(ended);
  const permit = async (body: object) => {
    await call('POST', `/network/zgate/${gateway.deviceId}/permit-join`, { body });
    mac.value = code.value = '';
  };
  const open = submit(() => {
    const one = mac.value.replaceAll(/[\s:-]/g, '').toLowerCase();
    const installCodes = code.value === '' ? [] : [{ mac: one, code: code.value.trim() }];
    return permit({ seconds: SECONDS, installCodes, ...(one !== '' && { allowed: [one] }) });
  });
  return (
    <section>
      <h2>{t('join')}</h2>
      {joinWindow ? (
        <>
          <Countdown until={joinWindow.until} text="joinCountdown" />
          <button type="button" onClick={submit(() => permit({ seconds: 0 }))}>
            {t('joinStop')}
          </button>
        </>
      ) : (
        <form onSubmit={open}>
          <p class="soft">{t('joinHelp')}</p>
          <ScanCode
            found={(text) => {
              const printed = printedIn(text);
              mac.value = printed.mac || mac.value;
              code.value = printed.code || code.value;
            }}
          />
          <Typed label={t('joinMac')} isExact text={mac} />
          <Typed label={t('joinCode')} isExact text={code} />
          <button type="submit" class="primary" disabled={code.value !== '' && mac.value === ''}>
            {t('joinStart')}
          </button>
        </form>
      )}
      <Alert text={said.value} />
      <Joined gatewayId={gateway.deviceId} />
      {failedJoins.length > 0 && (
        <>
          <h3>{t('joinFailed')}</h3>
          <ul class="log">
            {failedJoins.map(({ mac, at, message }) => (
              <li key={mac}>
                <strong>{mac}</strong> <span class="soft">{moment(at)}</span> {message}
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

/** What the code on a lock says: `Z:<EUI-64>$I:<install code>`, or one of the two alone; what is neither is shown to the person as it is. */
function printedIn(text: string): { mac: string; code: string } {
  const [, mac = '', code = ''] =
    /^(?:Z:)?([0-9a-f]{16}(?![0-9a-f]))?(?:\$?I:([0-9a-f]+))?/i.exec(text.trim()) ?? [];
  return mac === '' && code === '' ? { mac: '', code: text.trim() } : { mac: mac.toLowerCase(), code };
}

/** Locks that have joined here since the page was opened, each with the way to its door, which is given its name at once. */
function Joined({ gatewayId }: { gatewayId: string }) {
  const joined = useSignal<readonly { doorId: string; mac: string }[]>([]);
  useEffect(
    () =>
      onEvent(({ type, data }) => {
        const doorId = String(data.doorId);
        if (type !== 'gatehouse.door.lock.v1' || data.change !== 'joined' || data.gatewayId !== gatewayId)
          return;
        const others = joined.value.filter((one) => one.doorId !== doorId);
        joined.value = [{ doorId, mac: String(data.mac) }, ...others];
      }),
    [gatewayId],
  );
  if (joined.value.length === 0) return null;
  return (
    <>
      <h3>{t('joined')}</h3>
      <ul class="cards">
        {joined.value.map(({ doorId, mac }) => (
          <li key={doorId} class="card good">
            <JoinedLock doorId={doorId} mac={mac} />
          </li>
        ))}
      </ul>
    </>
  );
}

/** A lock that joins again has the room that it had. */
function JoinedLock({ doorId, mac }: { doorId: string; mac: string }) {
  const { value: door } = useRead(() => call<Door>('GET', `${DOORS}/${doorId}`), {
    key: doorId,
    everyMs: READ_MS,
    isMine: ({ source }) => source === `doors/${doorId}`,
  });
  return (
    <>
      <a class="back" href={`#/doors/${doorId}`} dir="auto">
        {door?.name ?? mac}
      </a>
      {door?.name && <span class="soft">{mac}</span>}
      {mayDo('front-desk-admin') && <DoorName doorId={doorId} />}
    </>
  );
}

function DoorName({ doorId }: { doorId: string }) {
  const name = useSignal('');
  const { said, submit } = useOrder();
  const save = submit(async () => {
    await call('PUT', `${DOORS}/${doorId}`, { body: { name: name.value } });
    return t('saved');
  });
  return (
    <form onSubmit={save}>
      <Typed label={t('whichRoom')} text={name} />
      <button type="submit" disabled={name.value === ''}>
        {t('save')}
      </button>
      <div role="status">{said.value}</div>
    </form>
  );
}
