/**
 * Where the library keeps the backup of the coordinator. Its own file would hold the network key and every link key in
 * clear; it is given a store that seals them.
 */
import { backupFor, type CoordinatorMake } from '../coordinator-backup.ts';
import type { BackupStore } from '../state-files.ts';

/** Of the library: between open-coordinator-backup v1 and its own form. */
interface Forms {
  fromUnifiedBackup(unified: unknown): unknown;
  toUnifiedBackup(own: unknown): unknown;
}

/** Of the library's AdapterBackup, or its EmberAdapter. */
interface Reader {
  defaultPath?: string;
  backupPath?: string;
  getStoredBackup(): unknown;
}

/** Of the library's Controller. */
interface Owner {
  adapter: { backup(devices: string[]): Promise<unknown> };
  databaseSave(): void;
  getDeviceIeeeAddresses(): string[];
  backup(): Promise<void>;
}

/** Returns what gives a controller its store; a controller without one keeps the file of the library. */
export function storeBackups(make: CoordinatorMake, prototypeOfReader: object, library: object) {
  const reader = prototypeOfReader as Reader;
  const forms = library as Forms;
  const stores = new Map<string, { store: BackupStore; withoutKeys: boolean }>();
  const { getStoredBackup } = reader;
  reader.getStoredBackup = function (this: Reader) {
    const kept = stores.get(this.defaultPath ?? this.backupPath ?? '');
    if (!kept) return getStoredBackup.call(this);
    const text = kept.store.read();
    if (text === undefined) return undefined;
    return forms.fromUnifiedBackup(backupFor(make, text, kept.withoutKeys));
  };
  return (controller: object, store: BackupStore, withoutKeys: boolean): void => {
    const owner = controller as Owner;
    stores.set(store.file, { store, withoutKeys });
    owner.backup = async () => {
      owner.databaseSave();
      const own = await owner.adapter.backup(owner.getDeviceIeeeAddresses());
      store.write(JSON.stringify(forms.toUnifiedBackup(own)));
    };
  };
}
