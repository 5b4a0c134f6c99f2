/**
 * `npm run bench -- --cpu`: where an op spends time, bytes and memory. A cell sends a fixed number of
 * requests to one engine process, first to warm it up and then once for each mode of probe.ts, each
 * time to a copy of the same file. The close belongs to it, and with it all deferred work.
 */
import { type KeyType, key_types, keysOfType } from '../../src/codec/keys.ts'
import { openReadOnly } from '../../src/store/read-only.ts'
import { startChild } from './child.ts'
import type { HttpClientCalls } from './client-http.ts'
import type { EngineCalls } from './engine-child.ts'
import type { BenchFolder } from './folder.ts'
import { makeFile } from './lives.ts'
import type { LivesCalls } from './lives-child.ts'
import { mapRows, type ProbeMode, probe_modes, type Rows, sumOf } from './probe.ts'
import { removeFiles } from './resource-usage.ts'
import { isWait } from './stages.ts'
import type { Templates } from './templates.ts'

export interface CpuLine {
  readonly kind: 'cpu'
  readonly cell: string
  /** Of an op: µs of `threads` and `stages`, bytes of the others. */
  readonly spent: Readonly<Record<ProbeMode, Rows>>
}

const many = { ops: 1, callers: 64, requests: 100_000 }
const cells = [
  { name: 'lives/1x64', order: 'random', ...many },
  { name: 'lives/1x64/in-order', order: 'in-order', ...many },
  { name: 'lives/1x1', order: 'random', ...many, callers: 1, requests: 10_000 },
  { name: 'http/create/1x64', verb: 'create', ...many },
  { name: 'http/modify/1x64', verb: 'modify', ...many },
  { name: 'http/create/100x64', verb: 'create', ...many, ops: 100, requests: 3_000 },
] as const
type CpuCell = (typeof cells)[number]

interface CpuRun {
  readonly folder: BenchFolder
  readonly templates: Templates
  readonly isChosen: (name: string) => boolean
  readonly is_quick: boolean
}

interface CpuSide {
  readonly file: string
  /** Resolves, once the file is closed, with what the engine's process measured. */
  run(path: string, requests: number, probe?: ProbeMode): Promise<Rows>
  stop(): Promise<unknown>
}

export async function* cpuCells(run: CpuRun): AsyncGenerator<CpuLine> {
  for (const one of cells) {
    const cell = `cpu/${one.name}`
    if (!run.isChosen(cell)) continue
    const requests = run.is_quick ? one.requests / 100 : one.requests
    const side = await ('verb' in one ? startHttp(run, one) : startLives(run, one))
    const before = await keyBytes(side.file)
    const spent: Partial<Record<ProbeMode, Rows>> = {}
    await side.run(await run.folder.copy(side.file), requests / 4)
    for (const probe of probe_modes) {
      const path = await run.folder.copy(side.file)
      const measured = await side.run(path, requests, probe)
      const grown = mapRows(await keyBytes(path), (bytes, type) => bytes - (before[type] ?? 0))
      const sums = probe === 'bytes' ? { ...measured, ...grown } : measured
      spent[probe] = mapRows(sums, (sum) => sum / (requests * one.ops))
      await removeFiles(path)
    }
    await side.stop()
    yield { kind: 'cpu', cell, spent: spent as CpuLine['spent'] }
  }
}

const refs = 'random'
const slot_s = Number.POSITIVE_INFINITY

async function startLives(
  { folder }: CpuRun,
  { order, ops, callers }: Extract<CpuCell, { readonly order: unknown }>,
): Promise<CpuSide> {
  const tasks = 20_000
  const child = startChild<LivesCalls>(folder.script('lives-child'))
  return {
    file: (await makeFile(folder, 'ours', tasks, refs)).path,
    async run(path, requests, probe) {
      const load = { order, ops, callers, slot_s, lives_max: (requests * ops) / 2, probe }
      await child.call('run', { side: 'ours', path, tasks, ...load })
      return child.call('stopProbe')
    },
    stop: child.stop,
  }
}

async function startHttp(
  { folder, templates }: CpuRun,
  { verb, ops, callers }: Extract<CpuCell, { readonly verb: unknown }>,
): Promise<CpuSide> {
  const of = { tasks: 10_000, refs } as const
  const engine = startChild<EngineCalls>(folder.script('engine-child'))
  const client = startChild<HttpClientCalls>(folder.script('client-http'))
  const { tls_folder } = folder
  return {
    file: await templates.engine(of.tasks, refs),
    async run(path, requests, probe) {
      const options = { ...of, path, is_new: false, server: 'http', tls_folder } as const
      const { port, secret } = await engine.call('open', options)
      await client.call('prepare', { ...of, verb, ops, requests, secret })
      await engine.call('startProbe', probe)
      await client.call('run', { port, callers, ops, warmup_s: 0, slot_s })
      await engine.call('close', { remove: false })
      return engine.call('stopProbe')
    },
    stop: () => Promise.all([engine.stop(), client.stop()]),
  }
}

/** Of the keys and values in a closed file, by type of key. */
async function keyBytes(path: string): Promise<Rows> {
  const file = await openReadOnly(path)
  const limit = Number.POSITIVE_INFINITY
  const sums = (Object.keys(key_types) as KeyType[]).map((type) => {
    const entries = file.scan({ ...keysOfType(type), limit })
    const bytes = entries.reduce((sum, { key, value }) => sum + key.length + value.length, 0)
    return [`file: ${type}`, bytes]
  })
  await file.close()
  return Object.fromEntries(sums)
}

/** `shown_min`: a name with less in every cell has no row. */
const tables: Readonly<Record<ProbeMode, { readonly what: string; readonly shown_min: number }>> = {
  threads: { what: 'CPU µs', shown_min: 0.05 },
  stages: { what: 'main thread µs', shown_min: 0.05 },
  bytes: { what: 'bytes written', shown_min: 0.5 },
  allocations: { what: 'bytes allocated', shown_min: 5 },
}

/** The cells of a table: rows by mode, each with its largest first, and a column for each line. */
export function cpuTable(lines: readonly CpuLine[]): { heads: string[]; rows: string[][] } {
  const rows = probe_modes.flatMap((mode) => {
    const { what, shown_min } = tables[mode]
    const names = new Set(lines.flatMap(({ spent }) => Object.keys(spent[mode])))
    const named = [...names].map((name) => [name, lines.map(({ spent }) => spent[mode][name] ?? 0)])
    const all =
      mode === 'bytes'
        ? []
        : [['all', lines.map(({ spent }) => sumOf(spent[mode], (name) => !isWait(name)))]]
    return ([...all, ...named] as [string, number[]][])
      .filter(([, values]) => Math.max(...values) >= shown_min)
      .sort(([, some], [, others]) => Math.max(...others) - Math.max(...some))
      .map(([name, values]) => [
        what,
        name,
        ...values.map((one) => one.toFixed(+(shown_min < 0.1))),
      ])
  })
  return { heads: ['of an op', '', ...lines.map(({ cell }) => cell.replace('cpu/', ''))], rows }
}
