/**
 * Each method of zigbee-herdsman that is replaced or wrapped here, or whose order of steps is relied on, is still the one that
 * the code was written for. The digest is of its source text. When one differs after an update of the library: read the method again, mend the patch, run
 * the tests of drivers/zigbee, and write the new digest here.
 */
import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { Controller, Zcl } from 'zigbee-herdsman';
import { EmberAdapter } from 'zigbee-herdsman/dist/adapter/ember/adapter/emberAdapter.js';
import { Ezsp } from 'zigbee-herdsman/dist/adapter/ember/ezsp/ezsp.js';
import { UartAsh } from 'zigbee-herdsman/dist/adapter/ember/uart/ash.js';
import { AshParser } from 'zigbee-herdsman/dist/adapter/ember/uart/parser.js';
import { AdapterBackup } from 'zigbee-herdsman/dist/adapter/z-stack/adapter/adapter-backup.js';
import { ZnpAdapterManager } from 'zigbee-herdsman/dist/adapter/z-stack/adapter/manager.js';
import { ZStackAdapter } from 'zigbee-herdsman/dist/adapter/z-stack/adapter/zStackAdapter.js';
import { Parser } from 'zigbee-herdsman/dist/adapter/z-stack/unpi/parser.js';
import { Znp } from 'zigbee-herdsman/dist/adapter/z-stack/znp/znp.js';
import { Database } from 'zigbee-herdsman/dist/controller/database.js';
import { Device, Endpoint } from 'zigbee-herdsman/dist/controller/model/index.js';
import { Waitress } from 'zigbee-herdsman/dist/utils/index.js';

/** Patch, the class whose method it changes, the method, the first digits of the SHA-256 of its text. */
const PATCHED: [patch: string, owner: object, method: string, digest: string][] = [
  ['answers.ts', ZStackAdapter.prototype, 'waitForInternal', 'a34d6ea0239ea1d9'],
  ['answers.ts', ZStackAdapter.prototype, 'dataRequest', '7ddf5a42a63f230d'],
  ['attribute-cache.ts', Endpoint.prototype, 'saveClusterAttributeKeyValue', '1059ec5f546d249f'],
  ['backup-store.ts', AdapterBackup.prototype, 'getStoredBackup', 'e0d3d54364fe08d9'],
  ['backup-store.ts', Controller.prototype, 'backup', '8e5a55e9aa148474'],
  ['backup-store.ts', EmberAdapter.prototype, 'getStoredBackup', '2067f2c0431cc758'],
  ['ember-keys.ts', EmberAdapter.prototype, 'backup', '67b2de3d69026f81'],
  ['ember-listeners.ts', EmberAdapter.prototype, 'onStackStatus', 'f502e7aa35211ac0'],
  ['ember-listeners.ts', EmberAdapter.prototype, 'onTrustCenterJoin', 'cf069a3ee2bf6003'],
  ['ember-listeners.ts', EmberAdapter.prototype, 'watchdogCounters', 'f48d2e3b913a8f48'],
  ['ember-listeners.ts', EmberAdapter.prototype, 'onNcpNeedsResetAndInit', '576d870e9cb6a790'],
  ['ember-listeners.ts', Ezsp.prototype, 'callbackDispatch', 'd36b0fa342e6163a'],
  ['ember-parser.ts', AshParser.prototype, '_transform', 'c0eb4b1dbcc1c0b0'],
  ['ember-parser.ts', AshParser.prototype, '_flush', '70cfbb04c64a0a74'],
  ['ember-port.ts', UartAsh.prototype, 'initPort', '4c586707b7f6a56c'],
  ['ember-port.ts', UartAsh.prototype, 'send', '5e2f315d852c97bb'],
  ['ember-port.ts', UartAsh.prototype, 'sendExec', '9b0aa806827e385e'],
  ['ember-port.ts', UartAsh.prototype, 'closePort', '3063371dd0751768'],
  ['ember-port.ts', UartAsh.prototype, 'onPortClose', '93fc010bf9135193'],
  ['ember-sending.ts', EmberAdapter.prototype, 'sendZclFrameToEndpoint', '868632a540ca1c39'],
  ['ember-sending.ts', EmberAdapter.prototype, 'onMessageSent', 'd5142d999f07c5ed'],
  ['ember-sending.ts', Ezsp.prototype, 'send', '23ec6e758334e6fb'],
  ['ember-sending.ts', Ezsp.prototype, 'sendCommand', '6449de6db2cd9c41'],
  ['ember-sending.ts', Ezsp.prototype, 'ezspNop', 'befd6c69a0b13396'],
  ['ember-start.ts', Ezsp.prototype, 'ezspVersion', '775114377a6640e5'],
  ['ember-start.ts', EmberAdapter.prototype, 'initTrustCenter', 'da0e614423d456a3'],
  ['ember-start.ts', EmberAdapter.prototype, 'importLinkKeys', '480f275de474ec7a'],
  ['ember-start.ts', EmberAdapter.prototype, 'formNetwork', '47c66ca84a1f3927'],
  ['frame-filter.ts', Zcl.Frame, 'fromBuffer', '4fc79ac32b0b800a'],
  ['handlers.ts', Controller.prototype, 'onZclPayload', 'ba4a431f12fe9510'],
  ['handlers.ts', Controller.prototype, 'onDeviceJoined', '301d615ab3294726'],
  ['handlers.ts', Controller.prototype, 'onZdoResponse', '1c97b266b8db481a'],
  ['handlers.ts', Controller.prototype, 'onDeviceLeave', '4b6e00ad064b8d34'],
  ['handlers.ts', Controller.prototype, 'onAdapterDisconnected', '039343428db335ba'],
  ['herdsman.ts', Device.prototype, 'interview', '5d60ea2dc6f212b9'],
  ['herdsman.ts', Controller.prototype, 'stop', 'dfde3e7fc5ead976'],
  ['library-database.ts', Database, 'open', 'bf2ad7cc35959a50'],
  ['library-database.ts', Database.prototype, 'write', '1fc8bfb814a1fee6'],
  ['library-database.ts', Controller.prototype, 'databaseSave', '325a5d37bdd4f60f'],
  ['ota-restart.ts', Device.prototype, 'updateOta', '7076ae00402af529'],
  ['own-answers.ts', ZStackAdapter.prototype, 'sendZclFrameToEndpoint', 'bb45f16fb7acd00f'],
  ['own-answers.ts', ZStackAdapter.prototype, 'sendZclFrameToEndpointInternal', 'ee1e0c3300190f83'],
  ['parser.ts', Parser.prototype, '_transform', '8bdddee2ba8254bb'],
  ['port.ts', Znp.prototype, 'open', 'adf50fbe129cc58c'],
  ['port.ts', Znp.prototype, 'openSocketPort', 'fe424521e1d56038'],
  ['port.ts', Znp.prototype, 'request', '41107741a49f8b42'],
  ['port.ts', Znp.prototype, 'onPortClose', '6b5c2bb119cb4db8'],
  ['port.ts', Znp.prototype, 'onUnpiParsed', '4bb7def9a6ca056f'],
  ['spared-work.ts', Endpoint.prototype, 'sendRequest', 'b542f4f38519aaac'],
  ['spared-work.ts', Waitress.prototype, 'waitFor', '4472f85191da35ff'],
  ['strategy.ts', ZnpAdapterManager.prototype, 'determineStrategy', 'a1535d12726aed1b'],
];

it.each(PATCHED.map(([patch, owner, method, digest]) => ({ patch, owner, method, digest })))(
  '$patch: $method is what it was written for',
  ({ owner, method, digest }) => {
    const text = String(Reflect.get(owner, method));
    expect(createHash('sha256').update(text).digest('hex').slice(0, 16)).toBe(digest);
  },
);
