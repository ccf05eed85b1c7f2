/** What a Modbus bus is configured with. */
import { z } from 'zod';
import { busOptions, checkPort, eachOnce, portName, SERIAL_SCHEMES } from '../bus/options.ts';

const HIGHEST_UNIT = 247;
const TURNAROUND_MS = 100;
/** Most gateways wait 1,000 ms for a device before they say that it is absent, and frames behind them take their time. */
const GATEWAY_MS = 1_500;
/**
 * A device that speaks Modbus TCP itself, and looks at no unit id (Messaging on TCP/IP Implementation Guide 1.0b, 4.4.2.1). 0 would do
 * as well there; behind a gateway it is the broadcast, which closes the relays of all.
 */
const TCP_DEVICE = 255;

/** The gateway, or the device itself, has a connection and MBAP headers in the place of a serial line. */
export function isModbusTcp(port: string): boolean {
  return port.startsWith('modbus-tcp://');
}

/** Which unit ids a device may have: 0 is the broadcast, and those above 247 are reserved (Modbus over serial line 1.02, 2.2). */
export function unitIds(port: string): readonly [lowest: number, highest: number] {
  return [1, isModbusTcp(port) ? TCP_DEVICE : HIGHEST_UNIT];
}

/** Those between are reserved, on modbus-tcp too. */
export function isUnitId(unit: number): boolean {
  return unit <= HIGHEST_UNIT || unit === TCP_DEVICE;
}

const unitId = z.int().min(1).max(TCP_DEVICE).refine(isUnitId, 'expected 1 to 247, or 255 on modbus-tcp');

const profileName = z
  .string()
  .regex(
    /^([a-z0-9-]{1,64}|[^\0]{1,4000}\.ya?ml)$/,
    'expected the name of a profile that comes with Gatehouse, or the path of a .yaml file',
  );

const options = z.strictObject({
  ...busOptions,
  port: portName(
    `(${SERIAL_SCHEMES}|modbus-tcp)`,
    'a device such as /dev/serial/by-id/…, tcp://host:port of a serial device server (rfc2217:// where it is one of RFC 2217, tcp-listen://address:port where it dials in), or modbus-tcp://host:port of a Modbus TCP gateway',
  ).describe(
    'Serial device (by-id paths survive replugging); a serial device server: tcp://host:port in raw mode, rfc2217://host:port by RFC 2217, tcp-listen://address:port where it dials in, at that address of this machine; modbus-tcp://host:502 of a Modbus TCP gateway or device',
  ),
  turnaroundMaxMs: busOptions.turnaroundMaxMs
    .removeDefault()
    .optional()
    .describe(
      `The longest a device takes to begin its reply; one that is there always has so long. When absent ${TURNAROUND_MS}, on modbus-tcp ${GATEWAY_MS}: a gateway waits for its devices itself, often 1000`,
    ),
  framing: z
    .enum(['rtu', 'ascii'])
    .default('rtu')
    .describe('How devices on a serial line write their frames; Modbus ASCII for those that have no other'),
  dataBits: z.literal([7, 8]).default(8).describe('7 with framing ascii, as the standard has it'),
  profile: profileName
    .default('gatehouse-io')
    .describe('What devices are taken for unless devices says otherwise'),
  devices: z
    .array(
      z.strictObject({
        unitId: unitId.describe('As set at the device; 255: the Modbus TCP device itself'),
        profile: profileName.optional().describe('Its product, when it is not the profile of the bus'),
      }),
    )
    .max(248)
    .superRefine(eachOnce('unitId'))
    .default([])
    .describe('Devices that are known to be there; a scan finds those that can say who they are'),
});

export const checkedOptions = options.superRefine((given, context) => {
  checkPort(given, context);
  const { port, localEcho, devices, framing, dataBits } = given;
  const refuse = (path: PropertyKey[], message: string) =>
    context.addIssue({ code: 'custom', path, message });
  if (isModbusTcp(port) && localEcho) refuse(['localEcho'], 'modbus-tcp has no echo');
  if (isModbusTcp(port) && framing === 'ascii') refuse(['framing'], 'modbus-tcp has frames of its own');
  if (framing === 'rtu' && dataBits === 7) refuse(['dataBits'], 'framing rtu needs 8: its bytes are binary');
  const [, highest] = unitIds(port);
  for (const [index, device] of devices.entries())
    if (device.unitId > highest)
      refuse(['devices', index, 'unitId'], `expected 1 to ${highest}: 255 is a device on modbus-tcp`);
});
/** Its own turnaround time, or that of what the port leads to. */
export function withTurnaround<Given extends { port: string; turnaroundMaxMs?: number | undefined }>(
  given: Given,
) {
  const usual = isModbusTcp(given.port) ? GATEWAY_MS : TURNAROUND_MS;
  return { ...given, turnaroundMaxMs: given.turnaroundMaxMs ?? usual };
}

export const modbusOptions = checkedOptions.transform(withTurnaround);
export type ModbusOptions = z.output<typeof modbusOptions>;
