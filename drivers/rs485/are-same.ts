/** Whether two lists have the same values, one by one: what is made of them need not be made again. Pure. */
export function areSame(some: readonly unknown[], others: readonly unknown[]): boolean {
  return some.length === others.length && some.every((one, index) => one === others[index]);
}
