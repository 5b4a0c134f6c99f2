/**
 * Continuous backup of a store: a restore of any position has what a second store had there, a
 * target that fails costs commits nothing and is caught up, and a copy of the data file, an older
 * state or another file never writes to the target of this one.
 */
import './support/end-soon.ts'
import assert from 'node:assert/strict'
import { cpSync, existsSync, readdirSync, rmSync } from 'node:fs'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { folderTarget } from '../src/backups/folder-target.ts'
import type { BackupTarget } from '../src/backups/target.ts'
import { systemChance } from '../src/core/clock.ts'
import { changesOf } from '../src/store/changes/change-buffer.ts'
import { memoryTree } from '../src/store/memory-tree.ts'
import { openShipped, restored, type Shipped } from './support/backup-setup.ts'
import { is_slow } from './support/short-run.ts'
import { quickPaths } from './support/store-folder.ts'

const newPath = quickPaths('conveyor-backups-')
const rounds = is_slow ? 12 : 3
const positions = is_slow ? 200 : 8

async function until(is: () => boolean, what: string): Promise<void> {
  for (let n = 0; !is(); n++) {
    assert.ok(n < 1_000, what)
    await pause(10)
  }
}

const caughtUp = (store: Shipped): Promise<void> =>
  until(() => store.backup.state().seq === store.tree.seq(), 'all is shipped')

test('a restore of any position has all keys of a second store, and no others', async () => {
  const [path, to] = [newPath(), newPath()]
  const digests = new Map<number, string>()
  let below: Shipped['tree'] | undefined | Awaited<ReturnType<typeof openShipped>>['below']
  let last_seq = 0
  for (let round = 0; round < rounds; round++) {
    const store = await openShipped(path, to, below === undefined ? {} : { below })
    below = store.below
    for (let n = 0; n < 150; n++) {
      await store.put(round * 1_000 + n)
      if (n % 25 === 0) await pause(15)
    }
    const is_last = round === rounds - 1
    for (let n = 150; is_last && n < 1_000 && !store.events.includes('backup_snapshot'); n++) {
      await store.put(round * 1_000 + n)
      if (n % 20 === 0) await pause(20)
    }
    if (round === 0 || is_last)
      await until(() => store.events.includes('backup_snapshot'), 'a snapshot')
    await store.close()
    last_seq = store.tree.seq()
    for (const [seq, digest] of store.digests) digests.set(seq, digest)
    assert.deepEqual(
      store.events.filter((name) => /refused|gap|failed/.test(name)),
      [],
    )
  }
  const snapshots = readdirSync(to, { recursive: true, encoding: 'utf8' })
  const first = Math.min(
    ...snapshots.flatMap((name) => /snapshot-(\d{16})-\d+\/end$/.exec(name)?.[1] ?? []).map(Number),
  )
  assert.ok(snapshots.filter((name) => name.endsWith('/end')).length > 1, 'snapshots follow')
  const known = [...digests.keys()].filter((seq) => seq >= first)
  const step = Math.max(1, Math.floor(known.length / positions))
  for (const seq of known.filter((_, n) => n % step === 0)) {
    const found = await restored(to, { to: 'position', seq }, newPath())
    assert.equal(found.digest, digests.get(seq), `position ${seq}`)
  }
  const latest = await restored(to, { to: 'latest' }, newPath())
  assert.equal(latest.seq, last_seq)
  assert.equal(latest.digest, digests.get(Math.max(...digests.keys())))
})

interface Broken {
  readonly target: BackupTarget
  break(how: 'hangs' | 'rejects' | 'fine'): void
}

function breakable(to: string): Broken {
  const target = folderTarget(to, systemChance)
  let how = 'fine'
  let free = (): void => {}
  let freed = Promise.resolve()
  async function call<T>(work: () => Promise<T>): Promise<T> {
    if (how === 'rejects') throw Object.assign(new Error('full'), { code: 'ENOSPC' })
    await freed
    return work()
  }
  return {
    break(next) {
      how = next
      free()
      if (next !== 'hangs') return
      freed = new Promise((resolve) => {
        free = resolve
      })
    },
    target: {
      says: to,
      list: (prefix) => call(() => target.list(prefix)),
      read: (name) => call(() => target.read(name)),
      has: (name) => call(() => target.has(name)),
      create: (name, bytes) => call(() => target.create(name, bytes)),
      remove: (name) => call(() => target.remove(name)),
    },
  }
}

for (const how of ['hangs', 'rejects'] as const) {
  test(`a target that ${how} costs commits nothing, and is caught up with every position`, async () => {
    const [path, to] = [newPath(), newPath()]
    const broken = breakable(to)
    broken.break(how)
    const store = await openShipped(path, to, { target: broken.target })
    for (let n = 0; n < 60; n++) await store.put(n)
    await until(() => store.events.includes('backup_target_away'), 'the operator is told')
    assert.equal(store.backup.state().is_away, true)
    broken.break('fine')
    await until(() => store.events.includes('backup_snapshot'), 'a snapshot')
    broken.break(how)
    const away_seq = store.tree.seq()
    for (let n = 60; n < 200; n++) await store.put(n)
    await pause(60)
    broken.break('fine')
    await caughtUp(store)
    assert.ok(store.events.includes('backup_target_back'))
    await store.close()
    for (const seq of [away_seq, away_seq + 70, store.tree.seq()]) {
      const found = await restored(to, { to: 'position', seq }, newPath())
      assert.equal(found.digest, store.digests.get(seq))
    }
  })
}

test('what waits is bounded: the rest is dropped, and a snapshot leads past the gap', async () => {
  const [path, to] = [newPath(), newPath()]
  const broken = breakable(to)
  const options = { waiting_bytes_max: 30_000 }
  const store = await openShipped(path, to, { target: broken.target, options })
  for (let n = 0; n < 20; n++) await store.put(n)
  await until(() => store.events.includes('backup_snapshot'), 'a snapshot')
  await caughtUp(store)
  broken.break('rejects')
  const before_seq = store.tree.seq()
  for (let n = 20; n < 300; n++) {
    await store.put(n)
    if (n % 20 === 0) await pause(20)
    assert.ok(store.backup.state().waiting_bytes <= 100_000, 'memory is bounded')
  }
  broken.break('fine')
  await until(() => store.events.includes('backup_gap'), 'the gap is told')
  await until(
    () => store.events.lastIndexOf('backup_snapshot') > store.events.indexOf('backup_gap'),
    'a snapshot after it',
  )
  await store.put(1_000)
  await store.close()
  const latest = await restored(to, { to: 'latest' }, newPath())
  assert.equal(latest.digest, store.digests.get(store.tree.seq()))
  const before = await restored(to, { to: 'position', seq: before_seq }, newPath())
  assert.equal(before.digest, store.digests.get(before_seq))
  await assert.rejects(
    restored(to, { to: 'position', seq: before_seq + 1 }, newPath()),
    /cannot restore what is between position/,
  )
})

test('a hanging target does not hold a close', async () => {
  const [path, to] = [newPath(), newPath()]
  const broken = breakable(to)
  broken.break('hangs')
  const store = await openShipped(path, to, {
    target: broken.target,
    options: { close_ms_max: 50 },
  })
  await store.put(1)
  const began_ms = performance.now()
  await store.close()
  assert.ok(performance.now() - began_ms < 5_000)
  broken.break('fine')
})

const copyFiles = (from: string, to: string): void => {
  for (const end of ['', '-log-0', '-log-1']) {
    if (existsSync(from + end)) cpSync(from + end, to + end)
  }
}

/** [who writes, how its data file is made, the sentence] */
const others: readonly (readonly [string, (own: string, old: string) => string, RegExp])[] = [
  ['another file', () => newPath(), /has the backup of another data file; name an empty folder/],
  ['an older copy', (_, old) => old, /it is an older copy; restore the backup, or/],
]

for (const [who, fileOf, sentence] of others) {
  test(`${who} does not write to the target`, async () => {
    const [path, to, old] = [newPath(), newPath(), newPath()]
    const first = await openShipped(path, to)
    for (let n = 0; n < 5; n++) await first.put(n)
    await until(() => first.events.includes('backup_snapshot'), 'a snapshot')
    await first.tree.atRest(async () => copyFiles(path, old))
    for (let n = 5; n < 40; n++) await first.put(n)
    await first.close()
    const names = readdirSync(to, { recursive: true }).sort()
    const other = await openShipped(fileOf(path, old), to)
    await other.put(1)
    await until(() => other.backup.state().refused !== undefined, 'it is refused')
    assert.match(other.backup.state().refused ?? '', sentence)
    assert.deepEqual(other.events, ['backup_refused'])
    await other.put(2)
    await other.close()
    assert.deepEqual(readdirSync(to, { recursive: true }).sort(), names)
    const latest = await restored(to, { to: 'latest' }, newPath())
    assert.equal(latest.digest, first.digests.get(first.tree.seq()))
  })
}

test('of two copies of one file that run, the later one writes, and the other stops', async () => {
  const [path, to, copy] = [newPath(), newPath(), newPath()]
  const first = await openShipped(path, to)
  for (let n = 0; n < 5; n++) await first.put(n)
  await first.close()
  copyFiles(path, copy)
  const one = await openShipped(path, to, { below: first.below })
  await caughtUp(one)
  // The copy has the token of the first tenure alone.
  const two = await openShipped(copy, to)
  for (let n = 5; n < 60; n++) await two.put(n)
  await until(() => two.backup.state().refused !== undefined, 'the copy is refused')
  assert.match(two.backup.state().refused ?? '', /another copy of this data file has written to/)
  await two.close()
  await one.close()
})

test('a process that another has replaced adds nothing to what is restored', async () => {
  const [path, to, copy] = [newPath(), newPath(), newPath()]
  const one = await openShipped(path, to)
  for (let n = 0; n < 30; n++) await one.put(n)
  await until(() => one.events.includes('backup_snapshot'), 'a snapshot')
  await caughtUp(one)
  await one.tree.atRest(async () => copyFiles(path, copy))
  const below = memoryTree()
  const entries = [...one.below.range('', '\xff', false)]
  await below.commit(changesOf(entries.map(({ key, value }) => [key, value] as const)))
  const two = await openShipped(copy, to, { below })
  await until(() => two.backup.state().seq !== undefined, 'the copy takes over')
  await one.put(31)
  await until(() => one.backup.state().refused !== undefined, 'the first one stops')
  assert.match(one.backup.state().refused ?? '', /another process writes to the target/)
  await one.close()
  await two.put(32)
  await two.close()
  const latest = await restored(to, { to: 'latest' }, newPath())
  assert.equal(latest.seq, two.tree.seq())
  assert.equal(latest.digest, two.digests.get(two.tree.seq()))
})

test('a folder that disappears is not made again, and is caught up once it is back', async () => {
  const [path, to, aside] = [newPath(), newPath(), newPath()]
  const store = await openShipped(path, to)
  for (let n = 0; n < 30; n++) await store.put(n)
  await until(() => store.events.includes('backup_snapshot'), 'a snapshot')
  await caughtUp(store)
  cpSync(to, aside, { recursive: true })
  rmSync(to, { recursive: true })
  for (let n = 30; n < 60; n++) await store.put(n)
  await until(() => store.events.includes('backup_target_away'), 'it is told')
  assert.equal(existsSync(to), false)
  cpSync(aside, to, { recursive: true })
  await caughtUp(store)
  await store.close()
  const latest = await restored(to, { to: 'latest' }, newPath())
  assert.equal(latest.digest, store.digests.get(store.tree.seq()))
})
