/** What the warnings of a bus say; one that has not reported yet is none without warnings. */
export const messagesOf = (of: { warnings: readonly { message: string }[] } | undefined): string[] =>
  (of?.warnings ?? [{ message: 'no report' }]).map(({ message }) => message);
