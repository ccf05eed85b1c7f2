/** The console begins: its doors are asked for while the code of its pages, which is much more, is still being loaded. */
import { askEarly, DOORS, DOORS_PAGE } from './place.ts';

const AGAIN_MS = 2_000;

if (location.hash === '#/doors') askEarly(`${DOORS}/brief?limit=${DOORS_PAGE}`);
// Without the pages there is nothing that could say so.
import('./app.tsx').catch(() => setTimeout(() => location.reload(), AGAIN_MS));
