/**
 * The targets of the benchmark name cells that it has, so that `npm run bench -- --targets` measures
 * each of them, and each part of such a run by its own `--only`.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cellName, cells } from './bench/cells.ts'
import { lives_names } from './bench/lives.ts'
import { server_lives_cell } from './bench/server-lives.ts'
import { partOf, target_cells } from './bench/targets.ts'

test('each target has its cell, in a part that `--only` selects', () => {
  const known = new Set([...cells.map(cellName), ...lives_names, server_lives_cell])
  for (const cell of target_cells) {
    assert.ok(known.has(cell), `no cell ${cell}`)
    assert.ok(partOf(cell) !== cell && cell.includes(partOf(cell)), `${cell} is in no part`)
  }
})
