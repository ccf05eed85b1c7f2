import { beforeEach, describe, expect, it } from 'vitest';
import { faults, send, things } from '../../../test/things-app.ts';

beforeEach(things.reset);

describe('validation', () => {
  it('names every fault with its place', async () => {
    expect(await faults('{"name":"too long","list":[{"n":1},{"n":10},{}],"other":1}')).toEqual([
      'VALIDATION_FAILED',
      '/name TOO_BIG',
      '/list/1/n TOO_BIG',
      '/list/2/n REQUIRED',
      '/other UNKNOWN_FIELD',
    ]);
  });

  it('answers UNKNOWN_FIELD when nothing else is wrong', async () => {
    expect(await faults('{"nmae":"x","list":[{"n":1,"a/b~c":2}]}')).toEqual([
      'UNKNOWN_FIELD',
      '/list/0/a~1b~0c UNKNOWN_FIELD',
      '/nmae UNKNOWN_FIELD',
    ]);
    expect(await faults('{"metadata":{"__proto__":"x"}}')).toEqual([
      'UNKNOWN_FIELD',
      '/metadata/__proto__ UNKNOWN_FIELD',
    ]);
  });

  it('names a place with two faults once in the message', async () => {
    const { body } = await send('PUT', '/thing/1', { as: 'pms', body: '{"list":[{"n":9007199254740993}]}' });
    expect(body.details).toHaveLength(2);
    expect(body.message).toMatch(/^Not valid: \/list\/0\/n: [^;]+\.$/);
  });

  it('says in the message itself what is expected, of the first places', async () => {
    const message = async (body: string) => (await send('PUT', '/thing/1', { as: 'pms', body })).body.message;
    expect(await message('{"name":"too long"}')).toBe('Not valid: /name: expected 5 characters at most.');
    expect(await message('{"list":[{"n":"1"},{"n":10},{},{}]}')).toBe(
      'Not valid: /list/0/n: expected a number, not a string; /list/1/n: expected 9 at most; /list/2/n: is required; and 1 more.',
    );
    expect(await message('[]')).toBe('Not valid: the body: expected an object, not an array.');
  });

  it('refuses an array, a text and null for the body', async () => {
    for (const body of ['[]', '"x"', 'null', '7'])
      expect(await faults(body)).toEqual(['VALIDATION_FAILED', ' INVALID_TYPE']);
  });

  it('bounds how many faults it lists', async () => {
    expect((await faults(`{"list":[${Array(60).fill('{}').join(',')}]}`)).length).toBe(21);
  });

  it.each([
    ['/thing/%zz', '{thingId}', 'INVALID_FORMAT'],
    ['/thing/%c3%28', '{thingId}', 'INVALID_FORMAT'],
    ['/thing/a%0ab', '{thingId}', 'INVALID_FORMAT'],
    ['/thing/%00', '{thingId}', 'INVALID_FORMAT'],
    [`/thing/${'a'.repeat(257)}`, '{thingId}', 'INVALID_FORMAT'],
    [`/thing/all?limit=${'1'.repeat(257)}`, '?limit', 'TOO_BIG'],
    ['/thing/a.b', '{thingId}', 'INVALID_FORMAT'],
    ['/thing/all?limit=1&limit=2', '?limit', 'DUPLICATE_KEY'],
    ['/thing/all?limit=%0d', '?limit', 'INVALID_FORMAT'],
  ])('refuses %s', async (path, place, code) => {
    const { status, body } = await send('GET', path, { as: 'front-desk' });
    expect([status, body.error]).toEqual([400, 'VALIDATION_FAILED']);
    expect(body.details).toMatchObject([{ path: place, code }]);
  });

  it.each(['0', '101', '0x10', '1e1', '%2B5', '5.0', '', '%205', '05'])(
    'refuses the limit %j',
    async (limit) => {
      const { status, body } = await send('GET', `/thing/all?limit=${limit}`, { as: 'front-desk' });
      expect(status).toBe(400);
      expect(body.details).toMatchObject([
        { path: '?limit', message: 'expected a whole number from 1 to 100' },
      ]);
    },
  );

  it('names an unknown query parameter', async () => {
    const { body } = await send('GET', '/thing/all?limt=3', { as: 'front-desk' });
    expect([body.error, body.details?.[0]?.path]).toEqual(['UNKNOWN_FIELD', '?limt']);
  });

  it.each([
    ['GET', '/thing/a', 'front-desk', undefined],
    ['PUT', '/thing/a', 'pms', '{}'],
    ['POST', '/thing/a/kick', 'pms', undefined],
  ])('names one where there are none: %s', async (method, path, as, body) => {
    const answer = await send(method, `${path}?dryRun=1`, { as, ...(body !== undefined && { body }) });
    expect([answer.status, answer.body.error]).toEqual([400, 'UNKNOWN_FIELD']);
    expect(answer.body.details).toMatchObject([{ path: '?dryRun' }]);
    expect(things.calls).toEqual([]);
  });

  it('gives the handler decoded parameters, defaults and headers', async () => {
    await send('GET', '/thing/a%2Fb%20%C3%A4', { as: 'front-desk', headers: { 'If-Match': '"3"' } });
    await send('GET', '/thing/all', { as: 'front-desk' });
    expect(things.calls[0]).toMatchObject({
      params: { thingId: 'a/b ä' },
      editor: { ifMatch: '"3"' },
      body: undefined,
    });
    expect(things.calls[1]).toMatchObject({ query: { limit: 50 } });
  });
});
