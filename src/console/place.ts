/** Where the gateway that served this page has its interface; and what is asked of it before the code that shows it is there. */

const place = document.querySelector<HTMLMetaElement>('meta[name=gatehouse]')?.dataset;
/** Before every path of the interface: the configuration's http.basePath, or "". */
export const API = place?.api ?? '';
/** Path of the doors, by http.productSegment. */
export const DOORS = `/${place?.doors ?? 'access'}/doors`;

/** Most doors of a page that the gateway gives. */
export const DOORS_PAGE = 1_000;

const asked = new Map<string, Promise<Response | undefined>>();

/** The answer is for `exchange` of api.ts. */
export function askEarly(path: string): void {
  asked.set(
    path,
    fetch(`${API}${path}`).catch(() => undefined),
  );
}

/** Once; undefined when it was not asked for, or not answered. */
export async function takeEarly(path: string): Promise<Response | undefined> {
  const answer = asked.get(path);
  asked.delete(path);
  return answer;
}
