/**
 * Whether the watchdog behind a relay was proved for the device that is there now. A product without a serial number is known by
 * its place, so another module may be there: its proof is void while it says something else of itself than when it was tested,
 * and is withdrawn when it was away for long enough to be exchanged.
 */

import { randomUUID } from 'node:crypto';
import type { Rs485Report } from '../../../drivers/contract/settings.ts';
import type { Database } from '../../platform/database/database.ts';
import { GatehouseError } from '../../platform/errors.ts';
import type { Log } from '../../platform/log.ts';
import { SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import type { Rs485Context } from './context.ts';
import type { Rs485Row } from './table.ts';

/** Longer than any watchdog test keeps a device silent: twice 1.2 times 60 s, with what is around it. */
const EXCHANGED_MS = 300_000;

interface Withdrawal {
  /** Inside a commit job. */
  store(): void;
  isUnderWay: boolean;
  /** The log says that it could not be stored. */
  isReported: boolean;
}

export interface WatchdogProofs {
  /** The device said this. */
  reported(row: Rs485Row, report: Rs485Report): void;
  /** undefined: not proved for what is there now. */
  of(row: Rs485Row, report: Rs485Report, relay: number): { proven_at: number; proven_by: string } | undefined;
  /** Rejects when it is not stored. */
  keep(row: Rs485Row, proof: { relay: number; proof: string; identity: string }, by: string): Promise<void>;
  /** A test has shown that the watchdog does not open this relay. Never rejects: it counts also while it is not stored. */
  refute(row: Rs485Row, relay: number): Promise<void>;
}

export function openWatchdogProofs(options: Rs485Context): WatchdogProofs {
  const { database, table, audit, clock, log } = options;
  /** Of devices that are away, and of those that came back: since when, monotonic milliseconds. */
  const lostAt = new Map<string, number>();
  const backAt = new Map<string, number>();
  const { withdrawn, tryToStore, withdraw } = openWithdrawals(database, log);

  /** Where all of a bus went and came back together, its power did. */
  function wasAlone({ bus, device_id }: Rs485Row, since: number): boolean {
    const others = table.onBus.all(bus).filter((one) => one.device_id !== device_id);
    const hasStayed = ({ device_id: id }: { device_id: string }) =>
      !lostAt.has(id) && backAt.has(id) && (backAt.get(id) ?? 0) < since;
    const wentToo = ({ device_id: id }: { device_id: string }) =>
      lostAt.has(id) || (backAt.get(id) ?? 0) >= since;
    return others.some(hasStayed) || !others.some(wentToo);
  }

  function withdrawAll(row: Rs485Row, awayMs: number): void {
    const reason = `the device has no serial number and was away for ${Math.round(awayMs / 1_000)} s: another one may be in its place`;
    void withdraw(row.device_id, () => {
      if (table.dropWatchdogProofs.run(row.device_id).changes === 0) return;
      audit.record({
        principal: SYSTEM_PRINCIPAL,
        correlationId: randomUUID(),
        action: 'rs485.watchdogProof',
        object: `rs485/${row.device_id}`,
        outcome: 'withdrawn',
        detail: { hwId: row.hw_id, reason },
      });
    });
  }

  return {
    reported(row, { connected, watchdog }) {
      const id = row.device_id;
      const now = clock.monotonic();
      void tryToStore(id);
      if (!connected) {
        if (!lostAt.has(id)) lostAt.set(id, now);
        return;
      }
      const since = lostAt.get(id);
      lostAt.delete(id);
      if (since !== undefined || !backAt.has(id)) backAt.set(id, now);
      if (since === undefined || now - since < EXCHANGED_MS || !watchdog?.isNamedByPlace) return;
      if (wasAlone(row, since)) withdrawAll(row, now - since);
    },
    of(row, report, relay) {
      void tryToStore(row.device_id);
      if (!report.watchdog || withdrawn.has(row.device_id)) return undefined;
      return table.watchdogProof.get(
        row.device_id,
        relay,
        row.hw_id,
        report.watchdog.proof,
        identityOf(report),
      );
    },
    async keep(row, { relay, proof, identity }, by) {
      const id = row.device_id;
      await database.commit(() => {
        withdrawn.get(id)?.store();
        table.keepWatchdogProof.run(id, relay, row.hw_id, proof, identity, clock.now(), by);
      }, 'urgent');
      withdrawn.delete(id);
    },
    refute: (row, relay) =>
      withdraw(row.device_id, () => void table.dropWatchdogProof.run(row.device_id, relay)),
  };
}

/** By device, until the disk knows it too. */
function openWithdrawals(database: Database, log: Log) {
  const withdrawn = new Map<string, Withdrawal>();

  /** Each report of the device, and each question for its proof, tries again. */
  async function tryToStore(id: string): Promise<void> {
    const withdrawal = withdrawn.get(id);
    if (!withdrawal || withdrawal.isUnderWay) return;
    withdrawal.isUnderWay = true;
    try {
      await database.commit(withdrawal.store, 'urgent');
      if (withdrawn.get(id) === withdrawal) withdrawn.delete(id);
    } catch (error) {
      if (!withdrawal.isReported)
        log.error({ device: id, err: error }, 'that a watchdog is not proved any more was not stored');
      withdrawal.isReported = true;
    } finally {
      withdrawal.isUnderWay = false;
    }
  }

  function withdraw(id: string, store: () => void): Promise<void> {
    const before = withdrawn.get(id)?.store;
    const both = () => {
      before?.();
      store();
    };
    withdrawn.set(id, { store: both, isUnderWay: false, isReported: false });
    return tryToStore(id);
  }

  return { withdrawn, tryToStore, withdraw };
}

/** The hwId is compared apart. */
export function identityOf({ type, profile = null, platform }: Rs485Report): string {
  return JSON.stringify([type, profile, platform?.version ?? null]);
}

/** Throws WATCHDOG_NOT_PROVEN where a relay could stay closed for ever. */
export function assertProven(
  proofs: Pick<WatchdogProofs, 'of'>,
  row: Rs485Row,
  report: Rs485Report | undefined,
  relay: number,
): void {
  if (!report?.watchdog || proofs.of(row, report, relay)) return;
  throw new GatehouseError(
    'WATCHDOG_NOT_PROVEN',
    `Nothing was fired: no test has proved yet that the watchdog of the device that is now ${row.device_id} opens relay ${relay} when the gateway dies. Disconnect what it opens, and run: gatehouse bus watchdog-test ${row.hw_id}`,
  );
}
