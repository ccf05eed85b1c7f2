import { expect, it } from 'vitest';
import { coordinatorAt, coordinatorOptions } from './coordinators.ts';

/** Names of the comments at the fingerprints of zigbee-herdsman 10.9.5. */
it.each([
  ['usb-Nabu_Casa_SkyConnect_v1.0_3abe54797c91ed118fc3cad13b20a111-if00-port0', 'ember', 115_200, true],
  ['usb-Nabu_Casa_ZBT-2_10B41DE58D6C-if00', 'ember', 460_800, true],
  ['usb-ITEAD_SONOFF_Zigbee_3.0_USB_Dongle_Plus_V2_20240122184111-if00', 'ember', 115_200, false],
  ['usb-SONOFF_SONOFF_Dongle_Max_MG24_08965d6b0674ef11b2f4e61e313510fd-if00-port0', 'ember', 115_200, false],
  ['usb-SMLIGHT_SMLIGHT_SLZB-07_be9faa0786e1ea11bd68dc2d9a583111-if00-port0', 'ember', 115_200, true],
  ['usb-SMLIGHT_SMLIGHT_SLZB-07p7_be9faa0786e1ea11bd68dc2d9a583111-if00-port0', 'zstack', 115_200, false],
  ['usb-Silicon_Labs_Sonoff_Zigbee_3.0_USB_Dongle_Plus_0111-if00-port0', 'zstack', 115_200, false],
  [
    'usb-SONOFF_SONOFF_Dongle_Plus_CC2674P10_141ff85f6b12f011b6500514773d9da9-if00-port0',
    'zstack',
    115_200,
    false,
  ],
  ['usb-dresden_elektronik_ConBee_III_DE03188111-if00-port0', null, 115_200, false],
])('knows %s', (name, adapter, baudRate, rtscts) => {
  const port = `/dev/serial/by-id/${name}`;
  expect(coordinatorAt(port)).toEqual({ port, adapter, baudRate, rtscts });
});

it('knows no coordinator in an adapter of RS-485', () => {
  expect(coordinatorAt('/dev/serial/by-id/usb-FTDI_FT232R_USB_UART_A10K1ABC-if00-port0')).toBeUndefined();
});

it('gives a link the options that are not so by default', () => {
  expect(coordinatorOptions('/dev/serial/by-id/usb-Nabu_Casa_ZBT-2_10B41DE58D6C-if00')).toEqual({
    adapter: 'ember',
    baudRate: 460_800,
    rtscts: true,
  });
  expect(coordinatorOptions('/dev/serial/by-id/usb-Texas_Instruments_CC2538_USB_CDC-if00')).toEqual({});
});
