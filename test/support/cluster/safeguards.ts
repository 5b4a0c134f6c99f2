/** Safeguards that a cluster can be started without, to show that the checker misses them. */
import type { LabOptions } from './lab.ts'

/** Neither asks for the epoch nor minds a frame that is there: a log like any file. */
const append = {
  file: 'cluster/ownership/postgres-log.ts',
  from: `
    SELECT 1 FROM conveyor.owner WHERE partition = $1 AND epoch = $3 FOR SHARE
  ) AS owned`,
  to: `
    SELECT 1
  ) AS owned
  ON CONFLICT (partition, seq) DO UPDATE SET epoch = excluded.epoch, frame = excluded.frame`,
}

const renewal = {
  file: 'cluster/ownership/owner-row.ts',
  from: `WHERE partition = $1 AND epoch = $2
      RETURNING`,
  to: `WHERE partition = $1 AND $2::int8 > 0
      RETURNING`,
}

export const safeguards: Readonly<Record<string, Omit<LabOptions, 'nodes' | 'lease_ms'>>> = {
  fencing: { edits: [append, renewal] },
  synchronous_commit: {
    database: { synchronous: false, settings: { synchronous_commit: 'off' } },
    flags: ['--unsafe-commit-log'],
  },
}
