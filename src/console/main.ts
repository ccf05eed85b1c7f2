/** The console begins: what its pages show is asked for while their code, which is much more, is still being loaded. */
import { computed, effect } from '@preact/signals';
import { session } from './api.ts';
import { begin } from './begin.ts';
import { readWorst } from './doors-list.ts';
import { openLive } from './live.ts';
// All of it here: a style that comes with a page is one more request before that is shown.
import './style.css';
import './chart.css';
import './network-map.css';
import './pages/api.css';
import './qr-code.css';
import './scan-code.css';
import './site-diff.css';

const AGAIN_MS = 2_000;

begin();
const isSignedIn = computed(() => Boolean(session.value));
effect(() => (isSignedIn.value ? openLive() : undefined));
// The page itself says what is wrong, when it reads them all.
if (location.hash === '#/doors') readWorst().catch(() => undefined);
// Without the pages there is nothing that could say so.
import('./app.tsx').catch(() => setTimeout(() => location.reload(), AGAIN_MS));
