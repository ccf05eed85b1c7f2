/** Power cuts while doors are made: what was answered is there afterwards, and nothing is damaged. */
import { equal, match } from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Bench } from './steps.ts';

const CUTS = 2;
/** Of answered changes, before the power goes. */
const CHANGES = 25;

export async function powerCuts({ machine, site, report }: Bench): Promise<void> {
  for (let cut = 1; cut <= CUTS; cut += 1) {
    const answered: string[] = [];
    await report.step(`power cut ${cut}, while doors are made`, async () => {
      let isOff = false;
      let names = 0;
      const work = Array.from({ length: 3 }, async () => {
        while (!isOff) {
          names += 1;
          const answer = await site
            .call('POST', '/access/doors', { name: `cut ${cut}, ${names}` })
            .catch(() => undefined);
          if (answer && answer.status < 300) answered.push(String(answer.body.id));
          else await sleep(20);
        }
      });
      while (answered.length < CHANGES) await sleep(5);
      await machine.cutPower();
      isOff = true;
      await Promise.all(work);
      report.note(`${answered.length} changes were answered`);
    });
    await report.step('it starts again, and has all that was answered', async () => {
      await machine.boot();
      await machine.run('until systemctl is-active --quiet gatehouse; do sleep 0.5; done');
      for (const id of answered) equal((await site.call('GET', `/access/doors/${id}`)).status, 200, id);
      match(await machine.run('gatehouse audit verify'), /intact/);
      const { database } = JSON.parse(await machine.run('gatehouse status --json')) as {
        database: { damaged: string[]; damagedRows: string[] };
      };
      equal(JSON.stringify([database.damaged, database.damagedRows]), '[[],[]]');
      await site.connected();
      match(await machine.run('gatehouse unlock "Room 101" --yes'), /is open/);
    });
  }
}
