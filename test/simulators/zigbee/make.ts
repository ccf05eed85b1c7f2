/** The make of coordinators that this run of a test is for (makes.ts). */
import { inject } from 'vitest';
import { MAKES } from './makes.ts';

declare module 'vitest' {
  interface ProvidedContext {
    make: keyof typeof MAKES;
  }
}

export const MAKE = MAKES[inject('make')];
