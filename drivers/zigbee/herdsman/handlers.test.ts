import { describe, expect, it } from 'vitest';
import { doubtOthersAt, isDoubted } from './doubts.ts';
import { guardHandlers } from './handlers.ts';

/** Zdo.ClusterId.END_DEVICE_ANNOUNCE of the library. */
const DEVICE_ANNOUNCE = 0x13;

function played() {
  const device = (ieeeAddr: string, networkAddress: number) => ({
    ieeeAddr,
    networkAddress,
    meta: {} as Record<string, unknown>,
    save() {},
  });
  const devices = [device('0x01', 0x22_22), device('0x02', 0x33_33)];
  const doubted = () => devices.filter(isDoubted).map(({ ieeeAddr }) => ieeeAddr);
  /** What was in doubt when the library's own handler began. */
  const atHandler: string[][] = [];
  const handle = async (..._values: unknown[]): Promise<void> => void atHandler.push(doubted());
  const controller = {
    onZclPayload: handle,
    onDeviceJoined: handle,
    onZdoResponse: handle,
    onDeviceLeave: handle,
    onAdapterDisconnected: handle,
    getDevicesIterator: (predicate: (one: (typeof devices)[number]) => boolean) => devices.filter(predicate),
  };
  guardHandlers(
    controller,
    () => {},
    (place) => void doubtOthersAt(controller, place),
  );
  return { controller, atHandler };
}

describe('the address of a lock is in doubt before the library looks who it is that has the same', () => {
  it.each(['0x02', '0x0c0ffee0'])('and asks to join: %s', async (ieeeAddr) => {
    const { controller, atHandler } = played();
    await controller.onDeviceJoined({ ieeeAddr, networkAddress: 0x22_22 });
    expect(atHandler).toEqual([['0x01']]);
  });

  it('and announces itself, known or not', async () => {
    const { controller, atHandler } = played();
    await controller.onZdoResponse(DEVICE_ANNOUNCE, [0, { eui64: '0x0c0ffee0', nwkAddress: 0x22_22 }]);
    expect(atHandler).toEqual([['0x01']]);
  });

  it('but not by the lock itself, nor by another address', async () => {
    const { controller, atHandler } = played();
    await controller.onDeviceJoined({ ieeeAddr: '0x01', networkAddress: 0x22_22 });
    await controller.onZdoResponse(DEVICE_ANNOUNCE, [0, { eui64: '0x01', nwkAddress: 0x22_22 }]);
    await controller.onDeviceJoined({ ieeeAddr: '0x0c0ffee0', networkAddress: 0x44_44 });
    await controller.onZdoResponse(DEVICE_ANNOUNCE, [0x80]);
    expect(atHandler).toEqual([[], [], [], []]);
  });
});
