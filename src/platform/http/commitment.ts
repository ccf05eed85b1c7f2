/** What an operation that changes something needs beside the database of this gateway. */
export interface Commitment {
  /** Before it is begun: throws STORAGE_UNAVAILABLE. */
  admit(): void;
  /** Before it is answered: resolves when what was committed so far is safe, rejects with STORAGE_UNAVAILABLE. */
  kept(): Promise<void>;
}
