/** Who is signed in, asked at the start and again by a person who has read that there was no answer. */
import { signal } from '@preact/signals';
import { readSession } from './api.ts';

export const failed = signal(false);

export function begin(): void {
  failed.value = false;
  readSession().catch(() => {
    failed.value = true;
  });
}
