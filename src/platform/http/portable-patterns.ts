/**
 * The patterns of text as the OpenAPI document publishes them. The validation uses Unicode properties (`\p{…}`), which the
 * regular expressions of Java and Python and many generators do not have under these names. These patterns use only
 * what JSON Schema recommends (2020-12, Core 6.4): literal characters, classes, groups, quantifiers and anchors. They take
 * the same text within the Basic Multilingual Plane; beyond it and for lone surrogates, which UTF-8 cannot hold, the
 * validation alone decides.
 */

/** General category Cc. */
const CONTROL = '\\u0000-\\u001F\\u007F-\\u009F';
/** Line and paragraph separators, and the characters that embed or override a direction. */
const BREAKS_AND_TURNS = '\\u2028\\u2029\\u202A-\\u202E\\u2066-\\u2069';
/** White_Space that ONE_LINE leaves. */
const SPACES = '\\u0020\\u00A0\\u1680\\u2000-\\u200A\\u202F\\u205F\\u3000';
/** Default_Ignorable_Code_Point of the Basic Multilingual Plane that ONE_LINE leaves, and the empty Braille cell. */
const INVISIBLE =
  '\\u00AD\\u034F\\u061C\\u115F\\u1160\\u17B4\\u17B5\\u180B-\\u180F\\u200B-\\u200F\\u2060-\\u2065\\u206A-\\u206F' +
  '\\u2800\\u3164\\uFE00-\\uFE0F\\uFEFF\\uFFA0\\uFFF0-\\uFFF8';

const ANY = `[^${CONTROL}${BREAKS_AND_TURNS}]`;
const NO_SPACE = `[^${CONTROL}${BREAKS_AND_TURNS}${SPACES}]`;
const VISIBLE = `[^${CONTROL}${BREAKS_AND_TURNS}${SPACES}${INVISIBLE}]`;

export const PORTABLE_ONE_LINE = `^${ANY}*$`;
/** Line feeds and tabs besides. */
export const PORTABLE_LINES = `^(${ANY}|[\\t\\n])*$`;
/** At least one visible character. */
export const PORTABLE_PRINTABLE = `^${ANY}*${VISIBLE}${ANY}*$`;
/** The same, or no character at all. */
export const PORTABLE_NAME = `^(${ANY}*${VISIBLE}${ANY}*)?$`;
/** At least one visible character, and no space at either end. */
export const PORTABLE_ID = `^(${NO_SPACE}${ANY}*)?${VISIBLE}(${ANY}*${NO_SPACE})?$`;
