/**
 * Writers that fill a small disk as fast as they can are refused in time. What was acknowledged is
 * there; reads, cancel and sweep go on; the file opens again, even if others took the last byte;
 * and writes go on once there is space.
 *
 * A short run fills one disk; `CONVEYOR_SLOW=1` twenty of each kind.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { closeSync, openSync, rmSync, statfsSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import type { Engine } from '../src/engine/api.ts'
import { isFault, openEngine } from '../src/index.ts'
import { callback_process } from './support/cli-process.ts'
import type { FullDisk } from './support/full-disk-child.ts'
import { mountDisk, type SmallDisk } from './support/small-disk.ts'
import { buildChild, type Edit } from './support/store-child.ts'
import { tasksOf } from './support/tasks-of.ts'

const is_slow = process.env.CONVEYOR_SLOW === '1'
const runs = is_slow ? 20 : 1

/** Writers at once, each with batches until nothing is taken any more; answers what was said. */
async function fill(engine: Engine, bytes: number, round: number): Promise<Set<string>> {
  const codes = new Set<string>()
  const write = async (writer: number): Promise<void> => {
    let refused = 0
    for (let n = 0; refused < 20; n++) {
      const ops = Array.from({ length: 50 }, (_, at) => ({
        ...{ type: 'create', obj: 'task', conv_id: 1234, ref: `${round}-${writer}-${n}-${at}` },
        data: { text: 'x'.repeat(bytes) },
      }))
      try {
        await engine.apply(ops)
        refused = 0
      } catch (error) {
        refused++
        codes.add(isFault(error) ? error.code : String(error))
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    }
  }
  await Promise.all(Array.from({ length: 8 }, (_, writer) => write(writer)))
  return codes
}

/** Takes all that is left, as others on the disk may; the answer gives it back. */
function takeTheRest(folder: string): () => void {
  const path = join(folder, 'others')
  const file = openSync(path, 'w')
  for (const bytes of [1 << 20, 4096]) {
    const block = Buffer.alloc(bytes, 1)
    try {
      while (writeSync(file, block) === bytes);
    } catch {}
  }
  closeSync(file)
  return () => rmSync(path)
}

async function count(engine: Engine): Promise<number> {
  const [info] = await engine.processes.list()
  return info?.tasks ?? 0
}

async function cancelAll(engine: Engine, until: number): Promise<void> {
  for (let left = await count(engine); left > until; left = await count(engine)) {
    const tasks = await tasksOf(engine, 1234, { limit: Math.min(1_000, left - until) })
    await Promise.all(
      tasks.map(async ({ obj_id }) => {
        assert.equal((await engine.tasks.cancel({ conv_id: 1234, obj_id })).proc, 'ok')
      }),
    )
  }
}

async function becomes(what: () => boolean | Promise<boolean>): Promise<void> {
  const began_ms = performance.now()
  while (!(await what())) {
    assert.ok(performance.now() - began_ms < 20_000, what.toString())
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

const rows = [
  ['tmpfs', 500, 20_000],
  ['tmpfs', 500, 200],
  ['ext4', 160, 2_000],
  ['ext4', 160, 100],
] as const

for (const [kind, megabytes, bytes] of is_slow ? rows : rows.slice(2, 3)) {
  it(`${kind} of ${megabytes} MB, tasks of ${bytes} bytes`, { timeout: 1_200_000 }, async (t) => {
    let tasks = 0
    for (let run = 0; run < runs; run++) {
      const disk = mountDisk(kind, megabytes)
      if (disk === undefined) return t.skip('this user may not mount a small disk here')
      try {
        tasks += await trial(disk, bytes)
      } finally {
        disk.remove()
      }
    }
    t.diagnostic(`${runs} disks, ${tasks} tasks before they were full`)
  })
}

async function trial({ path: folder }: SmallDisk, bytes: number): Promise<number> {
  const path = join(folder, 'tasks.lmdb')
  const failures: unknown[] = []
  /** What is told of the disk, where each refusal is followed by room. */
  const space: string[] = []
  const line = (fields: object): void => {
    const { event = '' } = fields as { event?: string }
    if (event.includes('space')) space.push(event)
  }
  const open = (): Promise<Engine> =>
    openEngine(path, {
      limits: { ended_kept_ms: 0 },
      logger: { debug: line, info: line, warn: line, error: line },
      onFailure: (failure) => failures.push(failure),
      onBug: (bug) => failures.push(bug),
    })
  let engine = await open()
  await engine.putProcess(callback_process)
  const codes = await fill(engine, bytes, 1)
  codes.delete('overloaded')
  assert.deepEqual([...codes], ['no_space'])
  assert.equal(space[0], 'no_space')
  const { bavail, bsize } = statfsSync(folder)
  assert.ok(bavail * bsize > 16 * 1024 * 1024, `${bavail * bsize} bytes are left`)
  const tasks = await count(engine)
  assert.ok(tasks > 0)
  assert.equal((await tasksOf(engine, 1234, { limit: 10 })).length, 10)

  // Others take what is left: reading goes on, and cancelling as far as there is room.
  let giveBack = takeTheRest(folder)
  const [one] = await tasksOf(engine, 1234, { limit: 1 })
  assert.ok(await engine.task({ conv_id: 1234, obj_id: one?.obj_id ?? '' }))
  await engine.tasks.cancel({ conv_id: 1234, obj_id: one?.obj_id ?? '' })
  await engine.close()
  engine = await open()
  assert.equal(await count(engine), tasks - 1)
  const [other] = await tasksOf(engine, 1234, { limit: 1 })
  const target = { conv_id: 1234, obj_id: other?.obj_id ?? '' }
  assert.ok(may_be.includes(await codeOf(engine.tasks.cancel(target))))
  assert.ok(may_be.includes(await codeOf(createOne(engine))))
  giveBack()

  // Room is made by ending tasks.
  await cancelAll(engine, Math.floor(tasks / 4))
  await becomes(() => engine.health() === 'ok')
  assert.equal(await codeOf(createOne(engine)), 'ok')
  await becomes(() => space.at(-1) === 'space_back')
  assert.deepEqual((await engine.check()).breaches, [])
  await engine.close()

  // And by others.
  giveBack = takeTheRest(folder)
  engine = await open()
  // Where the file itself has room it goes on.
  assert.ok(may_be.includes(await codeOf(createOne(engine))))
  giveBack()
  await becomes(() => engine.health() === 'ok')
  assert.equal(await codeOf(createOne(engine)), 'ok')
  await engine.close()
  assert.deepEqual(failures, [])
  assert.ok(space.length <= 6, space.join())
  return tasks
}

// Nobody looks how much is free, as if others took it in the moment after each look.
const never_looks: readonly Edit[] = [
  {
    file: 'store/lmdb/disk-space.ts',
    from: 'const left = tree.freeBytes() - 2 * load.large_bytes',
    to: 'const left = 1e15',
  },
  { file: 'store/commit-log/tree.ts', from: 'return tree.freeBytes() >=', to: 'return 1e15 >=' },
  { file: 'store/commit-log/tree.ts', from: 'Math.max(left, debt_min_bytes)', to: '1e15' },
]

/** Writes of frames that are on disk and yet answered with a full disk, as a late sync may be. */
const written_and_full: Edit = {
  file: 'store/commit-log/segment.ts',
  from: 'const write_ms =',
  to: `const nth = to > from + 1 ? (globalThis.nth = (globalThis.nth ?? 0) + 1) : 0
      if (nth > 9 && nth < 19) throw Object.assign(new Error('full'), { code: 'ENOSPC' })
      const write_ms =`,
}

/** [what, is the disk small, edits, bytes of a commit] */
const full_disks: [string, boolean, readonly Edit[], number][] = [
  ['that fills between two looks, with small commits', true, never_looks, 4_000],
  ['that fills between two looks, with large commits', true, never_looks, 100_000],
  ['that takes a commit and says it is full', false, [written_and_full], 4_000],
]
for (const [what, is_small, edits, value_bytes] of full_disks) {
  it(`a disk ${what}`, { timeout: 120_000 }, async (t) => {
    const child = await buildChild('full-disk-child.ts', edits)
    const disk = is_small ? mountDisk('tmpfs', 24) : { path: child.folder, remove: () => {} }
    try {
      if (disk === undefined) return t.skip('this user may not mount a small disk here')
      writeFileSync(join(disk.path, 'others'), Buffer.alloc(8 << 20, 1))
      const paths = [join(disk.path, 'tasks.lmdb'), join(child.folder, 'copy.lmdb')]
      const args = [child.script, ...paths, String(value_bytes)]
      const run = spawnSync(process.execPath, args, { encoding: 'utf8' })
      assert.equal(run.status, 0, run.stderr)
      const { codes, events, copied, closed } = JSON.parse(run.stdout) as FullDisk
      assert.deepEqual([...new Set(codes)], ['ok', 'no_space'])
      assert.deepEqual(codes.slice(-51), Array(51).fill('ok'))
      assert.equal(events.filter((event) => event === 'no_space').length, 1)
      assert.ok(!events.includes('store_failed'))
      assert.equal(copied[1], copied[0])
      assert.equal(closed[1], closed[0])
    } finally {
      disk?.remove()
      await child.remove()
    }
  })
}

const may_be = ['ok', 'no_space']

function codeOf(result: Promise<{ readonly proc: string }>): Promise<string> {
  return result.then(
    ({ proc }) => proc,
    ({ code }) => code,
  )
}

let made = 0
const createOne = (engine: Engine) =>
  engine.create({ conv_id: 1234, ref: `one ${made++}`, data: {} })
