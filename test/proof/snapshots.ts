/**
 * What snapshots cost, by `npm run proof:snapshots -- MEGABYTES SECONDS`: an owner of so large a
 * state under load writes one, another node joins meanwhile, and the tables stay as large as they
 * are for so long. Prints the rate of 64 callers in each part, and the sizes. Judges nothing.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pause, steadyClock, systemChance, systemClock } from '../../src/core/clock.ts'
import { openEngine } from '../../src/open.ts'
import { type NodeStatus, postgresLog } from '../../src/postgres.ts'
import { list_id as conv_id, list_process } from '../support/cluster/list-process.ts'
import { startPostgres } from '../support/postgres.ts'
import { initPartition } from '../support/postgres-open.ts'

const callers = 64
const fill_bytes = 1_000
/** Of calls a second, while a node joins and follows. */
const join_rate = 5_000
const [role = '1024', ...args] = process.argv.slice(2)

if (role === 'standby') await beStandby(args[0] as string, args[1] as string)
else await prove(Number(role) * 1024 * 1024, Number(args[0] ?? 60))

async function beStandby(url: string, folder: string): Promise<void> {
  const commit_log = postgresLog({ url, node: 'b' })
  process.on('message', () => process.send?.(commit_log.status()))
  await openEngine(join(folder, 'b.lmdb'), { commit_log }).catch(() => {})
}

async function prove(state_bytes: number, long_s: number): Promise<void> {
  const postgres = await startPostgres({ settings: { max_wal_size: '4GB' } })
  const folder = mkdtempSync(join(tmpdir(), 'conveyor-snapshots-'))
  const url = postgres.url()
  await initPartition(url, 0)
  const commit_log = postgresLog({ url, node: 'a' })
  const events: Record<string, number> = {}
  const onEvent = (fields: object, text: string): void => {
    const { event } = fields as { event: string }
    events[event] = (events[event] ?? 0) + 1
    if (event.startsWith('snapshot')) console.log(JSON.stringify(fields), text)
  }
  const logger = { debug() {}, info: onEvent, warn: onEvent, error: onEvent }
  const engine = await openEngine(join(folder, 'a.lmdb'), { commit_log, logger })
  await engine.processes.put(list_process)

  let count = 0
  const filler = 'f'.repeat(fill_bytes)
  const create = () => engine.create({ conv_id, ref: `r${count++}`, data: { filler } })
  /** The log gets a whole task, the state nothing. */
  const modify = () => {
    const ref = `r${Math.floor(systemChance.fraction() * count)}`
    return engine.modify({ conv_id, ref, data: { value: '' } })
  }

  /** Makes calls until `is_over`, and prints their rate. */
  async function load(
    name: string,
    call: typeof create,
    is_over: () => boolean,
    rate_max = Number.POSITIVE_INFINITY,
  ): Promise<void> {
    const began_ms = systemClock.now_ms()
    let calls = 0
    const caller = async (): Promise<void> => {
      while (!is_over()) {
        const early_ms = (1000 * calls) / rate_max - (systemClock.now_ms() - began_ms)
        if (early_ms > 1) await pause(steadyClock, early_ms)
        const { proc } = await call()
        if (proc !== 'ok') throw new Error(`a call was answered ${proc}`)
        calls++
      }
    }
    await Promise.all(Array.from({ length: callers }, caller))
    const rate = (1000 * calls) / (systemClock.now_ms() - began_ms)
    console.log(`${name}: ${Math.round(rate)} calls a second`)
  }
  const after = (ms: number): (() => boolean) => {
    const end_ms = systemClock.now_ms() + ms
    return () => systemClock.now_ms() > end_ms
  }
  const until = (event: string, times = 1): (() => boolean) => {
    const seen = (events[event] ?? 0) + times
    return () => (events[event] ?? 0) >= seen
  }
  const size = async (): Promise<string> => {
    const [row] = await postgres.sql<Record<string, string>>(`SELECT
      pg_size_pretty(pg_total_relation_size('conveyor.log')) AS log,
      pg_size_pretty(pg_total_relation_size('conveyor.snapshot_chunk')) AS snapshot`)
    return `log ${row?.log}, snapshots ${row?.snapshot}`
  }

  const isBegun = async (): Promise<boolean> => {
    const rows = await postgres.sql('SELECT FROM conveyor.snapshot WHERE chunks IS NULL')
    return rows.length > 0
  }

  await load('fill', create, () => count * fill_bytes > state_bytes)
  console.log(await size())
  let is_begun = false
  const begun = (async () => {
    while (!(await isBegun())) await pause(steadyClock, 200)
    is_begun = true
  })()
  await load('until a snapshot is due', modify, () => is_begun)
  await begun
  await load('while it is written', create, until('snapshot'))
  await load('afterwards', create, after(20_000))

  const standby = fork(import.meta.filename, ['standby', url, folder])
  const ask = async (): Promise<NodeStatus> => {
    standby.send('status')
    const [status] = (await once(standby, 'message')) as [NodeStatus]
    return status
  }
  const began_ms = systemClock.now_ms()
  let joined_ms: number | undefined
  let worst = 0
  let is_done = false
  const watch = (async () => {
    while (standby.connected && !is_done) {
      const status = await ask()
      const lag = commit_log.status().seq - status.seq
      if (status.role === 'standby' && lag < 50) joined_ms ??= systemClock.now_ms()
      if (joined_ms !== undefined) worst = Math.max(worst, lag)
      if (joined_ms === undefined) console.log(status.role, lag, status.loading)
      await pause(steadyClock, joined_ms === undefined ? 1_000 : 50)
    }
  })()
  await load('during the join', create, () => joined_ms !== undefined, join_rate)
  console.log(`join: ${((joined_ms as number) - began_ms) / 1000} s`)
  await load('with the standby', create, after(10_000), join_rate)
  console.log(`worst lag: ${worst} commits`)

  for (let left_s = long_s; left_s > 0; left_s -= 20) {
    await load(`${left_s} s left`, modify, after(20_000))
    console.log(await size())
  }
  is_done = true
  await watch
  standby.kill()
  await engine.close()
  await postgres.remove()
  rmSync(folder, { recursive: true, force: true })
}
