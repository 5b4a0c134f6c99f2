/** Safeguards that a cluster can be started without, to show that the checker misses them. */
import type { LabOptions } from './lab.ts'

export const safeguards: Readonly<Record<string, Omit<LabOptions, 'nodes' | 'lease_ms'>>> = {
  synchronous_commit: {
    database: { synchronous: false, settings: { synchronous_commit: 'off' } },
  },
}
