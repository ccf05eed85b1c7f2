/** A page on a phone: its processor is slower than that of this machine. */
import type { Page } from 'playwright-core';

/** As Chromium's own tools slow it down. */
export const THROTTLE = 6;

export async function slowDown(page: Page): Promise<void> {
  const session = await page.context().newCDPSession(page);
  await session.send('Emulation.setCPUThrottlingRate', { rate: THROTTLE });
}
