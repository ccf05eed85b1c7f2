/** What the framework costs alone: takes a JSON body and gives it back. Says its port in JSON; ends with standard input. */
import { serve } from '@hono/node-server';
import { Hono } from 'hono';

const app = new Hono();
app.put('/access/doors/:id', async (c) => c.json({ id: c.req.param('id'), ...(await c.req.json()) }));
serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, ({ port }) =>
  console.log(JSON.stringify({ port })),
);
process.stdin.on('end', () => process.exit()).resume();
