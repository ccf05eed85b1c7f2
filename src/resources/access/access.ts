/** Puts the parts of this slice together. */

import { type Cards, openCards } from './cards.ts';
import type { AccessContext } from './context.ts';
import { type Decisions, openDecisions } from './decisions.ts';
import { openRules, type Rules } from './rules.ts';
import { openAccessTable } from './table.ts';

export interface Access extends Pick<Rules, 'rules' | 'setRules'>, Decisions {
  readonly cards: Cards;
}

export function openAccess(below: Omit<AccessContext, 'table'>): Access {
  const context: AccessContext = { ...below, table: openAccessTable(below.database) };
  const rules = openRules(context);
  const cards = openCards(context);
  return {
    ...openDecisions(context, rules, cards),
    rules: rules.rules,
    setRules: rules.setRules,
    cards,
  };
}
