/**
 * The nodes of a cluster, a row per name: the instance that has the name, its `beat`, and the
 * position of its data file, after which truncation keeps the commit log. A name belongs to the
 * instance whose beat grows. Another instance takes the name once its own clock has seen no beat
 * for `unchanged_ms_max`; a clean end frees it at once, and so does a restart with the same file,
 * which only one process can have.
 */
import { type Clock, pause, within } from '../../core/clock.ts'
import { type Fault, fault } from '../../core/faults.ts'
import { version } from '../../core/version.ts'
import { type Connection, isAway, type Query } from '../database/connection.ts'
import { untilAnswered, type Waiting, waitEnded } from '../database/waiting.ts'

export interface NodeRow {
  readonly node: string
  /** Position of the data file; the node needs the commit log after it. */
  readonly seq: number
  /** Position of the last frame, also in memory; a takeover continues there. */
  readonly reached: number
  readonly beat: string
  /** False after a clean end. */
  readonly is_registered: boolean
  readonly address: string
  readonly version: string
  /** Why it cannot become the owner; empty if it can. */
  readonly unfit: string
  /** Since the last beat, by the database's clock. */
  readonly seen_s: number
}

export async function readNodes(connection: Connection, partition: number): Promise<NodeRow[]> {
  // The column is missing until `cluster init` of this version, and 0 for older nodes.
  const { rows } = await connection.query<NodeRow & { seq: string; reached: string }>({
    text: `SELECT node, seq::text, coalesce(to_jsonb(known)->>'reached', '0') AS reached,
      beat::text, instance <> '' AS is_registered, address, version, unfit,
      greatest(0, extract(epoch FROM now() - seen_at))::float8 AS seen_s
      FROM conveyor.replica AS known WHERE partition = $1 ORDER BY node`,
    values: [partition],
  })
  return rows.map((row) => {
    const seq = Number(row.seq)
    return { ...row, seq, reached: Math.max(seq, Number(row.reached)) }
  })
}

/** The first of these nodes with a recent beat. */
export async function firstAlive(
  connection: Connection,
  partition: number,
  nodes: readonly NodeRow[],
  clock: Clock,
): Promise<NodeRow | undefined> {
  const until_ms = clock.now_ms() + alive_ms
  for (;;) {
    const now = await readNodes(connection, partition)
    const alive = now.find(({ node, beat }) =>
      nodes.some((one) => one.node === node && one.beat !== beat),
    )
    if (alive !== undefined || clock.now_ms() >= until_ms) return alive
    await pause(clock, look_ms)
  }
}

/** False if there is none. A running node registers again at its next beat. */
export async function removeNodeRow(
  connection: Connection,
  partition: number,
  node: string,
): Promise<boolean> {
  const { rowCount } = await connection.query({
    text: 'DELETE FROM conveyor.replica WHERE partition = $1 AND node = $2',
    values: [partition, node],
  })
  return rowCount === 1
}

export interface Registration {
  /** The next beat writes this position. */
  report(seq: number): void
  beat(): void
  /** Frees the name; takes a beat at most. */
  leave(): Promise<void>
}

export interface RegistrationOptions extends Waiting {
  readonly connection: Connection
  readonly partition: number
  readonly node: string
  readonly address: string
  /** Same for each process with this file since the system started, or empty. */
  readonly holder: string
  readonly start_id: string
  readonly seq: number
  /** As `NodeRow.reached`. */
  reached(): number
  /** As `NodeRow.unfit`; written at each beat. */
  unfit(): string
  /** Another instance has taken the name. Called once. */
  onTaken(reason: Fault): void
}

const beat_ms = 1_000
/** A row unchanged for this long has no instance, even with late and lost beats. */
export const unchanged_ms_max = 4 * beat_ms
const look_ms = 250
const alive_ms = 2.5 * beat_ms

interface Row {
  readonly instance: string
  readonly beat: string
  readonly address: string
}

/** Resolves once this instance has the name. Rejects with `not_possible`. */
export async function register(options: RegistrationOptions): Promise<Registration> {
  const { connection, clock, partition, node, address, left, holder } = options
  const instance = `${holder}/${options.start_id}`
  const key = [partition, node]
  let { seq } = options
  let cancel = (): void => {}
  let has_ended = false

  async function read(): Promise<Row | undefined> {
    const { rows } = await connection.query<Row>({
      text: `SELECT instance, beat::text, address FROM conveyor.replica
        WHERE partition = $1 AND node = $2`,
      values: key,
    })
    return rows[0]
  }

  /** Whether a statement has changed a row. */
  const changes = async (query: Query): Promise<boolean> =>
    (await connection.query(query)).rowCount === 1

  const insert = (): Promise<boolean> =>
    changes({
      text: `INSERT INTO conveyor.replica (partition, node, instance, address, version, seq, unfit)
        VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (partition, node) DO NOTHING`,
      values: [...key, instance, address, version, seq, options.unfit()],
    })

  const take = (seen: Row): Promise<boolean> =>
    changes({
      text: `UPDATE conveyor.replica SET instance = $3, address = $4, version = $5, seq = $6,
        unfit = $9, beat = beat + 1, seen_at = now()
        WHERE partition = $1 AND node = $2 AND instance = $7 AND beat = $8`,
      values: [...key, instance, address, version, seq, seen.instance, seen.beat, options.unfit()],
    })

  function isFree(row: Row): boolean {
    if (row.instance === '' || row.instance === instance) return true
    return holder !== '' && row.instance.startsWith(`${holder}/`)
  }

  async function untilTaken(): Promise<void> {
    let seen: Row | undefined
    let seen_ms = 0
    while (!options.hasLeft()) {
      try {
        const row = await read()
        options.onBack()
        if (row === undefined) {
          if (await insert()) return
          continue
        }
        seen ??= row
        if (seen === row) seen_ms = clock.now_ms()
        if (seen.instance !== row.instance || seen.beat !== row.beat) throw nameTaken(node, row)
        const is_unchanged = clock.now_ms() - seen_ms >= unchanged_ms_max
        if ((isFree(row) || is_unchanged) && (await take(row))) return
      } catch (error) {
        if (!isAway(error)) throw error
        options.onAway(error)
        seen = undefined
      }
      await pause(clock, look_ms, left)
    }
    throw waitEnded()
  }

  async function beat(): Promise<void> {
    cancel()
    try {
      const says = has_reached ? ', reached = $6' : ''
      const has_row = await changes({
        name: 'beat',
        text: `UPDATE conveyor.replica SET seq = $4, unfit = $5, beat = beat + 1, seen_at = now()
          ${says} WHERE partition = $1 AND node = $2 AND instance = $3`,
        values: [
          ...key,
          instance,
          seq,
          options.unfit(),
          ...(has_reached ? [options.reached()] : []),
        ],
      })
      const row = has_row || (await insert()) ? undefined : await read()
      if (row !== undefined && row.instance !== instance) {
        has_ended = true
        options.onTaken(nameTaken(node, row))
      }
    } catch {
      // Other queries report the outage; the next beat tries again.
    }
    arm()
  }

  function arm(): void {
    cancel()
    if (!has_ended) cancel = clock.wake_at(clock.now_ms() + beat_ms, () => void beat())
  }

  await untilTaken()
  const has_reached = await untilAnswered(options, () => hasReached(connection))
  arm()
  return {
    beat: () => void beat(),
    report(next_seq) {
      seq = next_seq
    },
    async leave() {
      if (has_ended) return
      has_ended = true
      cancel()
      const freeing = connection.query({
        text: `UPDATE conveyor.replica SET instance = '', seq = $4, unfit = '', beat = beat + 1
          WHERE partition = $1 AND node = $2 AND instance = $3`,
        values: [...key, instance, seq],
      })
      const freed = freeing.catch(() => {})
      await within(clock, beat_ms, freed)
    },
  }
}

/** An older schema lacks the column until `cluster init`. */
async function hasReached(connection: Connection): Promise<boolean> {
  const { rows } = await connection.query<{ has_reached: boolean }>({
    text: `SELECT EXISTS (SELECT FROM pg_attribute WHERE attname = 'reached'
      AND attrelid = 'conveyor.replica'::regclass) AS has_reached`,
  })
  return rows[0]?.has_reached === true
}

function nameTaken(node: string, { address }: Row): Fault {
  const where = address === '' ? '' : ` at ${address}`
  const says = `another node is named ${node} and runs${where}`
  return fault('not_possible', `${says}: give each node a name and a data file of its own`)
}
