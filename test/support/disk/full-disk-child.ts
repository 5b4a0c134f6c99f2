/**
 * Commits to a file on a small disk until it is full and for a while longer, then removes the file
 * `others` beside it, and goes on: `full-disk-child PATH COPY VALUE_BYTES`. COPY becomes what a
 * crash would leave of the full disk. Prints one line of JSON.
 */
import { copyFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { storeOf } from '../../../src/store/group-commit.ts'
import { openWithCommitLog } from '../commit-log-setup.ts'

export interface FullDisk {
  /** What each commit was answered with, in order: `ok` or a code. */
  readonly codes: string[]
  readonly events: string[]
  /** Commits that were acknowledged, in the copy and in the file, and of these how many are there. */
  readonly copied: readonly [acked: number, found: number]
  readonly closed: readonly [acked: number, found: number]
}

const [path = '', copy = '', value_bytes = '1'] = process.argv.slice(2)
const value = Buffer.alloc(Number(value_bytes), 1)
const codes: string[] = []
const events: string[] = []
const acked = new Set<string>()
const store = storeOf(await openWithCommitLog(path), { emit: (event) => void events.push(event) })

async function commit(): Promise<boolean> {
  const key = `k${String(codes.length).padStart(9, '0')}`
  const code = await store
    .update((tx) => tx.put(key, value))
    .then(
      () => 'ok',
      (error: { code?: string }) => error.code ?? String(error),
    )
  codes.push(code)
  if (code === 'ok') acked.add(key)
  return code === 'ok'
}

/** Every key that was acknowledged, and no other. */
async function foundIn(file: string): Promise<number> {
  const tree = await openWithCommitLog(file)
  let found = 0
  for (const { key } of tree.range('k', 'l', false)) found += acked.has(key) ? 1 : -1_000_000
  await tree.close()
  return found
}

while (await commit());
for (let more = 0; more < 5; more++) await commit()
for (const end of ['', '-log-0', '-log-1']) copyFileSync(path + end, copy + end)
const copied = [acked.size, await foundIn(copy)] as const
rmSync(join(dirname(path), 'others'))
while (!(await commit())) await new Promise((resolve) => setTimeout(resolve, 50))
for (let more = 0; more < 50; more++) await commit()
await store.close()
const closed = [acked.size, await foundIn(path)] as const
console.log(JSON.stringify({ codes, events, copied, closed } satisfies FullDisk))
