/**
 * One owner at a time: processes race for a file in waves, the winner is killed, the next wave
 * races.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { after, before, describe, it } from 'node:test'
import { lockFile } from '../src/store/disk/file-lock.ts'
import { openInProcess } from './support/in-process-tree.ts'
import { type BuiltChild, buildChild } from './support/store-child.ts'

const waves = process.env.CONVEYOR_SLOW === '1' ? 20 : 8
const openers = 10

let built: BuiltChild
before(async () => {
  built = await buildChild('./store-lock-child.ts')
})
after(() => built.remove())

interface Opener {
  readonly child: ChildProcess
  /** The child's next line, `ended` after its last. */
  line(): Promise<string>
}

function startOpener(path: string, mode = 'hold'): Opener {
  const child = spawn(process.execPath, [built.script, path, mode], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const lines = createInterface({ input: child.stdout as Readable })[Symbol.asyncIterator]()
  return { child, line: async () => (await lines.next()).value ?? 'ended' }
}

async function kill({ child }: Opener): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const closed = once(child, 'close')
  child.kill('SIGKILL')
  await closed
}

describe('lock', () => {
  it(`${waves} waves of ${openers} racing processes: one at a time, and the next after a kill`, async () => {
    const path = join(built.folder, 'raced.conveyor')
    const racers = Array.from({ length: openers }, () => startOpener(path))
    for (let wave = 0; wave < waves; wave++) {
      if (wave > 0) for (const { child } of racers) child.stdin?.write('\n')
      const said = await Promise.all(racers.map((racer) => racer.line()))
      assert.equal(said.filter((line) => line === 'held').length, 1, `wave ${wave}: ${said}`)
      const at = said.indexOf('held')
      const winner = racers[at] as Opener
      // While an owner lives, all others are refused, those that have just started too.
      racers[at] = startOpener(path)
      assert.equal(await racers[at]?.line(), 'refused', `the late opener of wave ${wave}`)
      for (const racer of racers) racer.child.stdin?.write('\n')
      const again = await Promise.all(racers.map((racer) => racer.line()))
      assert.deepEqual(
        again,
        racers.map(() => 'refused'),
        `wave ${wave}, while its winner lives`,
      )
      assert.equal(await lockFile(path), undefined, 'the winner lives')
      await kill(winner)
    }
    const lock = await lockFile(path)
    assert.ok(lock, 'free after the last kill')
    await lock.release()
    for (const racer of racers) await kill(racer)
  })

  it('a kill in the middle of a commit frees the file, which then opens', async () => {
    const path = join(built.folder, 'worked.conveyor')
    for (let round = 0; round < 3; round++) {
      const owner = startOpener(path, 'work')
      assert.deepEqual([await owner.line(), await owner.line()], ['held', 'working'])
      assert.equal(await lockFile(path), undefined)
      await kill(owner)
      const lock = await lockFile(path)
      assert.ok(lock, 'free at once')
      const tree = await openInProcess(path)
      assert.match(tree.get('n')?.toString() ?? '', /^\d+$/)
      await tree.close()
      await lock.release()
    }
  })

  it('an owner keeps the lock while it opens, writes and closes LMDB', async () => {
    const path = join(built.folder, 'kept.conveyor')
    const lock = await lockFile(path)
    assert.ok(lock)
    const others = async () => {
      const opener = startOpener(path)
      const said = [await lockFile(path), await opener.line()]
      await kill(opener)
      return said
    }
    const tree = await openInProcess(path)
    tree.commit((batch) => batch.put('a', Buffer.from('1')))
    assert.deepEqual(await others(), [undefined, 'refused'])
    await tree.close()
    assert.deepEqual(await others(), [undefined, 'refused'], 'closing the database lets nothing go')
    await lock.release()
    await lock.release()
    const again = await lockFile(path)
    assert.ok(again)
    await again.release()
  })

  it('an owner that exits releases the lock', async () => {
    const path = join(built.folder, 'ended.conveyor')
    const owner = startOpener(path)
    assert.equal(await owner.line(), 'held')
    const closed = once(owner.child, 'close')
    owner.child.stdin?.end()
    await closed
    const lock = await lockFile(path)
    assert.ok(lock)
    await lock.release()
  })

  it('creates a missing file with mode 0600, and locks the file that has the name', async () => {
    const path = join(built.folder, 'made.conveyor')
    const lock = await lockFile(path)
    assert.equal((await stat(path)).mode & 0o777, 0o600)
    await rename(path, `${path}.old`)
    const other = await lockFile(path)
    assert.ok(other, 'another file of that name is free')
    assert.equal(await lockFile(`${path}.old`), undefined)
    await lock?.release()
    await other.release()
    await rm(path)
  })

  const rows: [what: string, make: (path: string) => Promise<string>, says: RegExp][] = [
    ['a missing folder', async (path) => join(path, 'db'), /does not exist/],
    [
      'a folder',
      async (path) => {
        await mkdir(path)
        return path
      },
      /is a folder/,
    ],
    [
      'a path through a file',
      async (path) => {
        await writeFile(path, '')
        return join(path, 'db')
      },
      /no folder/,
    ],
  ]
  for (const [place, [what, make, says]] of rows.entries()) {
    it(`${what} is refused in one sentence`, async () => {
      const path = await make(join(built.folder, `refused${place}`))
      await assert.rejects(lockFile(path), (error: Error & { code: string }) => {
        assert.equal(error.code, 'not_possible')
        assert.match(error.message, says)
        return true
      })
    })
  }
})
