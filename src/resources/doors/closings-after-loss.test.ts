import { expect, it } from 'vitest';
import { type DoorSite, openDoorSite, openRelayDoor, playedRelay } from '../../../test/door-site.ts';
import { MAC, openDoorSiteWithLock } from '../../../test/resources/doors/doors.ts';
import { LOCAL_ADMINISTRATOR } from '../../platform/principal.ts';
import { type Duty, dutiesIn, openClosingsAfter } from './closings-after-loss.ts';

const kinds = ({ played }: DoorSite) => played.actuated.map(({ kind }) => kind);
const standing = async (site: DoorSite, id: string) =>
  (await site.desk('GET', `/doors/${id}/state`)).body.standingOpen;

async function siteThatStandsOpen() {
  const { site, id } = await openDoorSiteWithLock();
  await site.desk('PUT', `/doors/${id}`, { standOpenEnabled: true });
  expect(await site.desk('POST', `/doors/${id}/stand-open`, { seconds: 600 })).toMatchObject({ status: 200 });
  return { site, id };
}

/** The first start on the database of `copy` after it took the place of another one. */
async function restored(
  copy: DoorSite,
  known: readonly Duty[] | undefined,
  actuate?: DoorSite['played']['actuate'],
) {
  const { database } = copy;
  const given = { known, reason: 'restored', now: copy.clock.now(), principal: LOCAL_ADMINISTRATOR };
  const toLock = await database.commit(() => openClosingsAfter(database)({ ...given, audit: undefined }));
  const site = await openDoorSite(database, { now: copy.clock.now() });
  if (actuate) site.played.actuate = actuate;
  const end = site.run();
  await site.clock.advance(60_000);
  await end();
  return { site, toLock };
}

it('closes what the database that was replaced has open, until it was seen locked', async () => {
  const [replaced, copy] = [await siteThatStandsOpen(), await openDoorSiteWithLock()];
  const known = dutiesIn(replaced.site.database);
  expect(known).toMatchObject([{ mac: MAC, door_id: replaced.id, purpose: 'standOpen' }]);
  const { site, toLock } = await restored(copy.site, known);
  // Again when nothing can arrive any more that opens it and was sent before.
  expect([toLock, kinds(site)]).toEqual([1, ['endStandOpen', 'endStandOpen']]);
  expect(dutiesIn(site.database)).toEqual([]);
});

it('closes what stood open when the copy was made, and does not open it again', async () => {
  const copy = await siteThatStandsOpen();
  const { site, toLock } = await restored(copy.site, []);
  expect([toLock, kinds(site), await standing(site, copy.id)]).toEqual([
    1,
    ['endStandOpen', 'endStandOpen'],
    null,
  ]);
  const relay = await openRelayDoor(playedRelay('0c7c2c52-1a6f-4c5e-9d3e-2b8f1f0d6a40'));
  await relay.site.desk('PUT', `/doors/${relay.id}`, { standOpenEnabled: true });
  await relay.site.desk('POST', `/doors/${relay.id}/stand-open`, { seconds: 600 });
  expect(await standing(relay.site, relay.id)).not.toBeNull();
  const after = await restored(relay.site, []);
  expect([after.toLock, await standing(after.site, relay.id)]).toEqual([0, null]);
});

it('locks each lock once where it is not known what was opened, and only what is known else', async () => {
  const [unknown, nothing] = [await openDoorSiteWithLock(), await openDoorSiteWithLock()];
  expect(kinds((await restored(unknown.site, undefined)).site)).toEqual(['lock', 'lock']);
  expect(kinds((await restored(nothing.site, [])).site)).toEqual([]);
});

it('names in the status the doors that were not seen locked', async () => {
  const { site: copy, id } = await openDoorSiteWithLock();
  await copy.desk('PUT', `/doors/${id}`, { name: 'Room 214' });
  const { site } = await restored(copy, undefined, async () => ({ outcome: 'jammed' }));
  expect(site.doors.counts()).toMatchObject({
    notLocked: 1,
    notSeenLocked: [
      {
        doorId: id,
        name: 'Room 214',
        message: expect.stringMatching(/has to be locked since .* \(restored\), .*: the bolt did not move/),
      },
    ],
  });
});
