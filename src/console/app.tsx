/** The pages: signs in, and shows the page that the address names (#/now, #/doors/ID). */
import { computed, effect, signal, useSignal } from '@preact/signals';
import { type ComponentType, render } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { Session } from '../services/auth/schema.ts';
import { call, mayDo, readSession, session } from './api.ts';
import { openLive, stale } from './live.ts';
import { Access } from './pages/access.tsx';
import { AuditPage } from './pages/audit.tsx';
import { Catalogue } from './pages/catalogue.tsx';
import { Door } from './pages/door.tsx';
import { Doors } from './pages/doors.tsx';
import { Encoder } from './pages/encoder.tsx';
import { Encoders } from './pages/encoders.tsx';
import { Events } from './pages/events.tsx';
import { Now } from './pages/now.tsx';
import { Rs485 } from './pages/rs485.tsx';
import { Rs485Device } from './pages/rs485-device.tsx';
import { SignIn } from './pages/sign-in.tsx';
import { Site } from './pages/site.tsx';
import { System } from './pages/system.tsx';
import { Zigbee } from './pages/zigbee.tsx';
import { ZigbeeGateway } from './pages/zigbee-gateway.tsx';
import { chooseLanguage, language, t } from './words.ts';

// All of it here: a style that comes with a page is one more request before that is shown.
import './style.css';
import './chart.css';
import './network-map.css';
import './pages/api.css';
import './qr-code.css';
import './scan-code.css';
import './site-diff.css';
import './week-grid.css';

/** Who is signed in could not be asked. */
const failed = signal(false);

function begin(): void {
  failed.value = false;
  readSession().catch(() => {
    failed.value = true;
  });
}

const route = signal(location.hash);
addEventListener('hashchange', () => {
  route.value = location.hash;
});

const PAGES = [
  'now',
  'doors',
  'encoders',
  'rs485',
  'zigbee',
  'catalogue',
  'site',
  'events',
  'audit',
  'access',
  'system',
] as const;
/** Who may read what a page shows; of those that are absent, anyone. */
const READERS: Partial<Record<(typeof PAGES)[number], Session['roles']>> = {
  now: ['service-tool', 'front-desk-admin', 'monitor'],
  rs485: ['service-tool', 'front-desk-admin', 'monitor'],
  zigbee: ['service-tool', 'front-desk-admin', 'monitor'],
  site: ['front-desk-admin', 'service-tool'],
  audit: ['front-desk-admin', 'service-tool'],
  access: ['service-tool'],
  system: ['service-tool', 'front-desk-admin', 'monitor'],
};
const isOpenTo = (name: (typeof PAGES)[number]) => READERS[name] === undefined || mayDo(...READERS[name]);

function Page() {
  const [, name = '', id] = route.value.split('/');
  if (name === 'access' && isOpenTo('access')) return <Access />;
  if (name === 'system' && isOpenTo('system')) return <System />;
  if (name === 'catalogue') return <Catalogue />;
  if (name === 'site' && isOpenTo('site')) return <Site />;
  if (name === 'events') return <Events />;
  if (name === 'audit' && isOpenTo('audit')) return <AuditPage />;
  if (name === 'rs485' && isOpenTo('rs485'))
    return id === undefined ? <Rs485 /> : <Rs485Device key={id} id={id} />;
  if (name === 'zigbee' && isOpenTo('zigbee'))
    return id === undefined ? <Zigbee /> : <ZigbeeGateway key={id} id={id} />;
  if (name === 'encoders') return id === undefined ? <Encoders /> : <Encoder key={id} id={id} />;
  if (name === 'doors') return id === undefined ? <Doors /> : <Door key={id} id={id} />;
  if (name === 'api') return <LazyPage page={readApiPage} />;
  return isOpenTo('now') ? <Now /> : <Doors />;
}

/** With both documents it is as large as a third of the rest, and for programmers alone. */
const readApiPage = async () => (await import('./pages/api.tsx')).ApiPage;

function LanguageButton() {
  return (
    <button type="button" class="quiet" onClick={() => chooseLanguage(language.value === 'en' ? 'de' : 'en')}>
      {t('language')}
    </button>
  );
}

function Frame() {
  const pages = PAGES.filter(isOpenTo);
  const shown = pages.find((name) => route.value.startsWith(`#/${name}`)) ?? pages[0];
  const nav = useRef<HTMLElement>(null);
  useEffect(() => {
    nav.current?.querySelector('[aria-current]')?.scrollIntoView({ inline: 'center', block: 'nearest' });
  }, [shown]);
  const signOut = () =>
    call('DELETE', '/session').then(
      () => {
        session.value = null;
      },
      () => undefined,
    );
  return (
    <>
      <header>
        <strong>Gatehouse</strong>
        <nav ref={nav}>
          {pages.map((name) => (
            <a key={name} href={`#/${name}`} aria-current={name === shown ? 'page' : undefined}>
              {t(name)}
            </a>
          ))}
        </nav>
        <span class="grow" />
        <LanguageButton />
        <button type="button" class="quiet" onClick={signOut}>
          {t('signOut')}
        </button>
      </header>
      {stale.value && (
        <p role="alert" class="banner">
          {t(stale.value)}
        </p>
      )}
      <main class={stale.value ? 'stale' : ''}>
        <Page />
      </main>
    </>
  );
}

function Console() {
  useEffect(() => {
    document.documentElement.lang = language.value;
  }, [language.value]);
  if (failed.value)
    return (
      <main>
        <p role="alert">{t('noAnswer')}</p>
        <button type="button" onClick={begin}>
          {t('again')}
        </button>
      </main>
    );
  if (session.value === undefined) return <main>{t('loading')}</main>;
  return session.value ? (
    <Frame />
  ) : (
    <main class="narrow">
      <SignIn />
      <LanguageButton />
    </main>
  );
}

begin();
const isSignedIn = computed(() => Boolean(session.value));
effect(() => (isSignedIn.value ? openLive() : undefined));
const root = document.getElementById('app');
if (root) render(<Console />, root);

// A page whose code is read when it is shown.

/** `page` stays the same function. */
function LazyPage({ page }: { page: () => Promise<ComponentType> }) {
  const shown = useSignal<{ Page: ComponentType } | undefined>(undefined);
  const isFailed = useSignal(false);
  useEffect(() => {
    page().then(
      (Page) => {
        shown.value = { Page };
      },
      () => {
        isFailed.value = true;
      },
    );
  }, [page]);
  if (shown.value) return <shown.value.Page />;
  if (!isFailed.value) return <p role="status">{t('loading')}</p>;
  return (
    <>
      <p role="alert">{t('partMissing')}</p>
      <button type="button" onClick={() => location.reload()}>
        {t('reload')}
      </button>
    </>
  );
}
