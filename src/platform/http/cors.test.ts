import { describe, expect, it } from 'vitest';
import { authenticate, lanApp, send } from '../../../test/things-app.ts';

const ORIGIN = 'https://desk.example:8443';
const rate = () => ({ perSecond: 1_000, burst: 1_000 });
const appWith = (...corsOrigins: string[]) =>
  lanApp({ surface: { kind: 'lan', basePath: '', authenticate, rate, corsOrigins } });
const namesOf = (headers: Headers) =>
  [...headers.keys()].filter((name) => name.startsWith('access-control-')).toSorted();
const PREFLIGHT = {
  'access-control-request-method': 'PUT',
  'access-control-request-headers': 'authorization',
};

describe('a page of another origin', () => {
  it.each([
    ['that is named', ORIGIN, true],
    ['of another port', 'https://desk.example', false],
    ['of another scheme', 'http://desk.example:8443', false],
    ['of no origin', 'null', false],
  ])('%s may read answers and refusals: %j, %j', async (_, origin, isNamed) => {
    const app = appWith(ORIGIN);
    for (const [as, status] of [
      ['pms', 200],
      [undefined, 401],
    ] as const) {
      const { headers, ...answer } = await send('PUT', '/thing/a', {
        app,
        body: '{}',
        headers: { origin },
        ...(as && { as }),
      });
      expect(answer.status).toBe(status);
      expect(headers.get('access-control-allow-origin')).toBe(isNamed ? ORIGIN : null);
      expect(headers.get('access-control-allow-credentials')).toBeNull();
      expect(headers.get('vary')).toContain('Origin');
    }
  });

  it('asks before it sends a change', async () => {
    const asked = { app: appWith(ORIGIN), headers: { ...PREFLIGHT, origin: ORIGIN } };
    const { status, headers } = await send('OPTIONS', '/thing/a', asked);
    expect(status).toBe(200);
    expect(headers.get('access-control-allow-methods')).toContain('PUT');
    expect(headers.get('access-control-allow-headers')).toMatch(/Authorization.*If-Match.*Idempotency-Key/);
    const other = await send('OPTIONS', '/thing/a', {
      ...asked,
      headers: { ...PREFLIGHT, origin: 'https://other.example' },
    });
    expect([other.status, namesOf(other.headers)]).toEqual([405, []]);
  });

  it('has nothing from a gateway whose configuration names none', async () => {
    const asked = { app: appWith(), headers: { ...PREFLIGHT, origin: ORIGIN } };
    for (const method of ['OPTIONS', 'GET']) {
      const { headers } = await send(method, '/thing/a', asked);
      expect(namesOf(headers)).toEqual([]);
      expect(headers.get('vary')).toBeNull();
    }
  });
});
