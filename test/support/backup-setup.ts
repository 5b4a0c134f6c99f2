/**
 * A store whose frames are shipped to a target, beside a second store in memory that gets the same
 * changes: its digest of all keys at each position is what a restore of that position must have.
 */
import { createHash } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { type Backup, startBackup } from '../../src/backups/backup.ts'
import { materialise } from '../../src/backups/materialise.ts'
import { openPlan } from '../../src/backups/open-plan.ts'
import type { BackupOptions } from '../../src/backups/options.ts'
import type { Goal } from '../../src/backups/plan.ts'
import type { BackupTarget } from '../../src/backups/target.ts'
import { systemChance, systemClock } from '../../src/core/clock.ts'
import { type ChangeBuffer, changesOf } from '../../src/store/changes/change-buffer.ts'
import type { CommitLogBounds } from '../../src/store/commit-log/bounds.ts'
import { manifest_key } from '../../src/store/commit-log/manifest.ts'
import { openCommitLogTree } from '../../src/store/commit-log/open.ts'
import type { CommitLogTree } from '../../src/store/commit-log/tree.ts'
import { openDataFile } from '../../src/store/data-file.ts'
import { attachLmdbTree } from '../../src/store/lmdb/tree.ts'
import { memoryTree } from '../../src/store/memory-tree.ts'
import type { Tree } from '../../src/store/tree.ts'

export const quick: BackupOptions = {
  ...{ lag_ms: 20, retry_ms: 20, part_bytes: 20_000, close_ms_max: 2_000 },
  ...{ snapshot_bytes_min: 20_000, bytes_per_s_max: 1e9 },
}

/** A checkpoint every few commits, while they go on. */
const small_bounds: Partial<CommitLogBounds> = { checkpoint_bytes: 10_000, bytes_max: 60_000 }

export interface Shipped {
  readonly tree: CommitLogTree
  readonly backup: Backup
  readonly events: string[]
  /** By position. */
  readonly digests: Map<number, string>
  /** A commit of pseudo-random changes of the group `n`. */
  put(n: number): Promise<void>
  close(): Promise<void>
}

export interface ShippedOptions {
  readonly options?: BackupOptions
  readonly target?: BackupTarget
  readonly below?: Tree
}

export async function openShipped(path: string, to: string, more: ShippedOptions = {}) {
  mkdirSync(to, { recursive: true })
  const below = more.below ?? memoryTree()
  const file = await openDataFile(path)
  const id = systemChance.bytes(8)
  const inner = await openCommitLogTree(file, path, { id, bounds: small_bounds })
  const digests = new Map<number, string>()
  const events: string[] = []
  let turn: Promise<void> = Promise.resolve()
  const tree: CommitLogTree = {
    ...inner,
    commit(changes: ChangeBuffer) {
      const done = turn.then(async () => {
        await inner.commit(changes)
        await below.commit(changes)
        digests.set(inner.seq(), digestOf(below))
      })
      turn = done.catch(() => {})
      return done
    },
  }
  const backup = startBackup({
    ...{ tree, path, to, clock: systemClock, chance: systemChance },
    ...{ options: { ...quick, ...more.options }, emit: (name) => void events.push(name) },
    ...(more.target && { target: more.target }),
  })
  const shipped: Shipped & { readonly below: Tree } = {
    ...{ tree, backup, events, digests, below },
    put: (n) => tree.commit(groupOf(n)),
    async close() {
      await backup.close()
      await inner.close()
    },
  }
  return shipped
}

/** Puts, overwrites and deletes; now and then a large value. */
function groupOf(n: number): ChangeBuffer {
  const changes = new Map<string, Buffer | null>([['last', Buffer.from(String(n))]])
  for (let part = 0; part < 6; part++) {
    const chance = (n * 7919 + part * 104_729) % 10_007
    const bytes = chance % 97 === 0 ? 9_000 : chance % 300
    changes.set(`k${chance % 211}`, chance % 5 === 0 ? null : Buffer.alloc(bytes, `${n}.${part} `))
  }
  return changesOf(changes)
}

export function digestOf(tree: Pick<Tree, 'range'>): string {
  const hash = createHash('sha256')
  for (const { key, value } of tree.range('', '\xff', false)) {
    if (key === manifest_key) continue
    hash.update(`${key.length} ${value.length} `).update(key, 'latin1')
    hash.update(Buffer.from(value.buffer, value.byteOffset, value.length))
  }
  return hash.digest('hex')
}

/** Restores into `path`, which must not exist, and returns the position and the digest. */
export async function restored(to: string, goal: Goal, path: string) {
  const place = { now_ms: systemClock.now_ms(), chance: systemChance }
  const { source, plan } = await openPlan(to, goal, place)
  await materialise(source, plan, path)
  const tree = await attachLmdbTree(path)
  try {
    return { seq: plan.to_seq, digest: digestOf(tree), at_ms: plan.at_ms }
  } finally {
    await tree.close()
  }
}
