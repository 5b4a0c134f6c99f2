/**
 * The row of a partition's owner. The epoch grows by one with each takeover, and each append checks
 * it, so a former owner cannot append (postgres-log.ts). `renewal` grows while the owner lives. A
 * `released` row may be taken at once. No statement compares times of day: a reader measures on its
 * own clock for how long the row is unchanged.
 */
import { type Fault, fault } from '../../core/faults.ts'
import type { Connection } from '../database/connection.ts'
import type { Identity } from '../node/file.ts'

export interface OwnerRow {
  readonly log_id: Buffer
  readonly epoch: number
  readonly renewal: number
  readonly node: string
  readonly address: string
  readonly lease_ms: number
  readonly released: boolean
  /** The requested next owner; `*` for any other node. */
  readonly hand_over_to: string
  readonly file_id: string
  readonly boot_id: string
}

export interface Claimant extends Identity {
  readonly partition: number
  readonly node: string
  readonly address: string
  readonly lease_ms: number
  readonly version: string
}

const columns =
  'log_id, epoch::int8::text AS epoch, renewal::text AS renewal, node, address, lease_ms, ' +
  'released, hand_over_to, file_id, boot_id'

type Found = Omit<OwnerRow, 'epoch' | 'renewal'> & {
  readonly epoch: string
  readonly renewal: string
}

/** Rejects with `not_possible` for an unknown partition. */
export async function readOwnerRow(
  connection: Pick<Connection, 'query'>,
  partition: number,
): Promise<OwnerRow> {
  const { rows } = await connection.query<Found>({
    name: 'owner',
    text: `SELECT ${columns} FROM conveyor.owner WHERE partition = $1`,
    values: [partition],
  })
  const [row] = rows
  if (row === undefined) {
    const says = `the cluster has no partition ${partition}`
    const helps = `run \`npx conveyor cluster init --partition ${partition}\``
    throw fault('not_possible', `${says}: ${helps}`)
  }
  return { ...row, epoch: Number(row.epoch), renewal: Number(row.renewal) }
}

/**
 * Makes the claimant the owner if the row is unchanged since `seen`. Resolves with the new epoch,
 * or undefined if another node was faster. After a lost answer `isOwn` says who has the row.
 */
export async function takeOwnerRow(
  connection: Connection,
  claimant: Claimant,
  seen: OwnerRow,
): Promise<number | undefined> {
  const { partition, node, address, lease_ms, file_id, boot_id, version } = claimant
  const { rowCount } = await connection.query({
    text: `UPDATE conveyor.owner SET epoch = epoch + 1, renewal = renewal + 1, node = $4,
      address = $5, lease_ms = $6, file_id = $7, boot_id = $8, version = $9, released = false,
      since = now(), hand_over_to = '' WHERE partition = $1 AND epoch = $2 AND renewal = $3`,
    values: [
      partition,
      seen.epoch,
      seen.renewal,
      node,
      address,
      lease_ms,
      file_id,
      boot_id,
      version,
    ],
  })
  return rowCount === 1 ? seen.epoch + 1 : undefined
}

/** Whether an earlier process of this node has the row; it has ended, as this one has its file. */
export function isOwn(row: OwnerRow, { node, file_id, boot_id }: Claimant): boolean {
  return boot_id !== '' && row.node === node && row.file_id === file_id && row.boot_id === boot_id
}

/** False in another epoch. `hand_over_to` is the requested next owner. */
export async function renewOwnerRow(
  connection: Connection,
  partition: number,
  epoch: number,
): Promise<{ readonly hand_over_to: string } | false> {
  const { rows } = await connection.query<{ hand_over_to: string }>({
    name: 'renew',
    text: `UPDATE conveyor.owner SET renewal = renewal + 1 WHERE partition = $1 AND epoch = $2
      RETURNING hand_over_to`,
    values: [partition, epoch],
  })
  return rows[0] ?? false
}

export async function releaseOwnerRow(
  connection: Connection,
  partition: number,
  epoch: number,
): Promise<void> {
  await connection.query({
    text: `UPDATE conveyor.owner SET released = true, renewal = renewal + 1
      WHERE partition = $1 AND epoch = $2`,
    values: [partition, epoch],
  })
}

const lost = new WeakSet<object>()

/**
 * The failure of an engine that is no longer the owner. Unlike after other failures, its program
 * may reopen it at once, as a standby.
 */
export function ownershipLost(): Fault {
  const made = fault('store_failed', 'another node owns the data now')
  lost.add(made)
  return made
}

/** Whether a failure, as `onFailure` gets it, or one of its causes is `ownershipLost`. */
export function isOwnershipLost(failure: unknown): boolean {
  for (let one = failure; typeof one === 'object' && one !== null; ) {
    if (lost.has(one)) return true
    one = (one as { cause?: unknown }).cause
  }
  return false
}
