/** What is wrong with the next replies. */
export const REPLY_FAULTS = [
  /** Carried out, and not answered. */
  'lost',
  /** The reply to a command for another address or rate is lost; others are as they should be. */
  'mute',
  /** One bit is wrong. */
  'damaged',
  /** Its last reply but one, again. */
  'replayed',
  /** Under another number. */
  'sequence',
  /** Too busy to do it. */
  'busy',
  /** Offers the key that everybody knows, whatever was asked for. */
  'downgrade',
  /** Without security, inside a session. */
  'clearText',
  /** Says no to what would change it: it cannot do what the record says. */
  'refused',
  /** In the name of another address. */
  'foreignAddress',
] as const;
export type ReplyFault = (typeof REPLY_FAULTS)[number];
