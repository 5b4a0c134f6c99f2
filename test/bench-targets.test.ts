/**
 * The targets of the benchmark name cells that it has, so that `npm run bench -- --targets` measures
 * each of them, and each part of such a run by its own `--only`; and `--cpu` finds the parts of an op.
 */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { cellName, cells } from './bench/cells.ts'
import type { CpuLine } from './bench/cpu.ts'
import { lives_names } from './bench/lives.ts'
import { server_lives_cell } from './bench/server-lives.ts'
import { stages } from './bench/stages.ts'
import { partOf, target_cells } from './bench/targets.ts'
import { opOf } from './bench/workload.ts'
import { run, top } from './support/package-folder.ts'

test('each target has its cell, in a part that `--only` selects', () => {
  const known = new Set([...cells.map(cellName), ...lives_names, server_lives_cell])
  for (const cell of target_cells) {
    assert.ok(known.has(cell), `no cell ${cell}`)
    assert.ok(partOf(cell) !== cell && cell.includes(partOf(cell)), `${cell} is in no part`)
  }
})

test('no two modifies are equal, for a repeated request is only answered again', () => {
  assert.notDeepEqual(opOf('modify', 1, 'random'), opOf('modify', 1, 'random'))
})

test('each stage of an op has its files', () => {
  for (const path of Object.values(stages).flat()) {
    assert.ok(
      [path, `${path}.ts`].some((one) => existsSync(join(top, one))),
      path,
    )
  }
})

const found = {
  threads: ['main thread', 'thread pool', 'GC threads'],
  stages: ['wait: idle', 'authentication', 'parsing', 'answer', 'memtables', 'commit log write'],
  bytes: ['log: blocks', 'log: task', 'log: replay', 'file: pages', 'file: task', 'file: ref'],
  allocations: ['authentication', 'parsing', 'answer', 'memtables', 'task records, keys'],
}

test('--cpu finds the threads, stages, keys and allocations of an op', {
  skip: process.platform !== 'linux',
}, () => {
  const args = '--import tsx --expose-gc test/bench/main.ts --cpu --quick --json --only'
  const json = run(top, process.execPath, [...args.split(' '), 'cpu/http/create/1x64'])
  const lines = json
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  const { spent } = lines.find(({ kind }) => kind === 'cpu') as CpuLine
  for (const [mode, names] of Object.entries(found)) {
    // Elsewhere the threads have no names.
    const of_node =
      mode === 'threads' && !process.version.startsWith('v24.') ? names.slice(0, 1) : names
    const rows = spent[mode as keyof typeof found]
    for (const name of of_node) assert.ok((rows[name] ?? 0) > 0, `${mode}: ${name}`)
  }
})
