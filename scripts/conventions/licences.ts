/** What may be delivered with, or used to build, a product under the MIT licence. */

/** Of a choice of licences one is enough. */
const LICENCES = new Set(['MIT', 'ISC', '0BSD', 'BSD-2-Clause', 'BSD-3-Clause', 'Apache-2.0']);
/** A compiler of tests, and what the command line of a library of the pages needs: neither goes into what is delivered. */
const BUILD_LICENCES = new Set([...LICENCES, 'MPL-2.0', 'PSF-2.0']);

/** Whether an SPDX expression, as package.json has it, allows delivery; of `dev`, building. */
export function isLicensed(expression: string, dev = false): boolean {
  const allowed = dev ? BUILD_LICENCES : LICENCES;
  const choices = expression.replaceAll(/[()]/g, '').split(' OR ');
  return choices.some((choice) => allowed.has(choice));
}
