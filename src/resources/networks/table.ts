/** The only SQL over networks. */
import type { Prepare } from '../../platform/database/database.ts';

export interface NetworkRow {
  id: string;
  description: string | null;
  cert: string | null;
  revision: number;
}

export type NetworkTable = ReturnType<typeof openNetworkTable>;

export function openNetworkTable({ prepare }: Prepare) {
  return {
    network: prepare<[string], NetworkRow>(
      'SELECT id, description, cert, revision FROM network WHERE id = ?',
    ),
    /** After a cursor (exclusive); '' is part of every description. */
    page: prepare<[string, string, number], NetworkRow>(
      `SELECT id, description, cert, revision FROM network
       WHERE id > ? AND instr(fold(id || char(10) || coalesce(description, '')), fold(?)) > 0
       ORDER BY id LIMIT ?`,
    ),
    insert: prepare<[string, string | null, number, number, string]>(
      'INSERT INTO network (id, description, created_at, updated_at, updated_by) VALUES (?, ?, ?, ?, ?)',
    ),
    update: prepare<[string | null, string | null, number, string, string]>(
      `UPDATE network SET description = ?, cert = ?, revision = revision + 1, updated_at = ?, updated_by = ?
       WHERE id = ?`,
    ),
  };
}
