import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { expect, it } from 'vitest';
import { systemClock } from '../clock.ts';
import { CONNECTION_LIMITS, openArrivals, openConnections } from './connections.ts';

it('closes a connection after an answer that had begun before, and had promised to keep it', async () => {
  const under = Promise.withResolvers<ServerResponse>();
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'Content-Length': 4 });
    response.write('ab');
    under.resolve(response);
  });
  server.keepAliveTimeout = 60_000;
  const connections = openConnections(server, {
    arrivals: openArrivals(systemClock),
    clock: systemClock,
    limits: CONNECTION_LIMITS,
    isKnown: () => false,
    isProxy: () => false,
    refused: () => undefined,
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.write('GET / HTTP/1.1\r\nHost: gate\r\n\r\n');
  const gone = new Promise((resolve) => client.once('close', resolve));
  let text = '';
  client.on('data', (data) => {
    text += data;
  });
  const response = await under.promise;
  const closed = new Promise((resolve) => server.close(resolve));
  connections.closeWhenIdle();
  response.end('cd');
  await Promise.all([closed, gone]);
  expect(text).toMatch(/keep-alive.*abcd$/s);
});
