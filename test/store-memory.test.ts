/**
 * The tree in memory passes the suite of every tree, and has no file.
 */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { memoryTree } from '../src/store/memory-tree.ts'
import { storeSuite } from './support/store-suite.ts'

storeSuite('memory', async () => ({
  open: async () => memoryTree(),
  lasts: false,
  remove: async () => {},
}))

it('memory has no disk to fill and no file to copy', async () => {
  const tree = memoryTree()
  assert.equal(tree.freeBytes(), undefined)
  await assert.rejects(tree.backup('/tmp/nowhere'), { code: 'not_possible' })
})
