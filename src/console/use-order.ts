/** What a person orders by a form or a button, and what became of it in words. */
import { type Signal, useSignal } from '@preact/signals';
import { Refused } from './api.ts';
import { wordsOf } from './use-read.ts';

export interface Order {
  /** It is under way. */
  busy: Signal<boolean>;
  /** What its work returned, where that is a text, or why it failed. */
  said: Signal<string>;
  /** It is carried out only if it is sent again with `confirm`. */
  isUnconfirmed: Signal<boolean>;
  /** `meanwhile`: said until it has ended. */
  run(work: () => Promise<unknown>, meanwhile?: string): Promise<void>;
  /** For a form or a button: begins nothing while an order is under way. */
  submit(work: () => Promise<unknown>): (event?: Event) => void;
}

/** `ended`: called after each order, for what it changes to be read; `faultOf`: why one failed. */
export function useOrder(ended?: () => unknown, faultOf: (error: unknown) => string = wordsOf): Order {
  const busy = useSignal(false);
  const said = useSignal('');
  const isUnconfirmed = useSignal(false);
  const run = async (work: () => Promise<unknown>, meanwhile = '') => {
    busy.value = true;
    said.value = meanwhile;
    isUnconfirmed.value = false;
    try {
      const result = await work();
      said.value = typeof result === 'string' ? result : '';
    } catch (error) {
      said.value = faultOf(error);
      isUnconfirmed.value = error instanceof Refused && error.code === 'CONFIRMATION_NEEDED';
    }
    busy.value = false;
    ended?.();
  };
  const submit = (work: () => Promise<unknown>) => (event?: Event) => {
    event?.preventDefault();
    if (!busy.value) void run(work);
  };
  return { busy, said, isUnconfirmed, run, submit };
}
