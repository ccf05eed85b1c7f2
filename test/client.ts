/** A client of an interface in this process: of the resources below one path, as a service tool unless it says otherwise. */
import type { App } from '../src/platform/http/app.ts';
import { send } from './things-app.ts';

export function clientOf(app: App, base: string) {
  const ask = (method: string, path: string, body: unknown, as = 'service-tool', headers: object = {}) =>
    send(method, `${base}${path}`, {
      as,
      headers,
      app,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  return {
    get: (path: string, as?: string) => ask('GET', path, undefined, as),
    put: (id: string, body: unknown, as?: string, headers?: object) =>
      ask('PUT', `/${id}`, body, as, headers),
    delete: (path: string, as?: string) => ask('DELETE', path, undefined, as),
    post: (path: string, body?: unknown, as?: string, headers?: object) =>
      ask('POST', path, body, as, headers),
    /** To any path, and with nothing else than it says. */
    send: (method: string, path: string, options: Parameters<typeof send>[2]) =>
      send(method, path, { app, ...options }),
  };
}
