/**
 * The suite of every commit log behind store/commit-log/commit-log.ts, through the writer in front
 * of it: what is written is read in its order, also by the next process, and what was refused is
 * not there. A new one calls `commitLogSuite` with a harness of its own.
 */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type ChangeBuffer, changesOf } from '../../src/store/changes/change-buffer.ts'
import type { Frame } from '../../src/store/commit-log/frame.ts'
import type { CommitLogWriter } from '../../src/store/commit-log/writer.ts'

export interface OpenCommitLog {
  readonly writer: CommitLogWriter
  /** The durable frames after a position, in order; at least one, if there is one. */
  read(after_seq: number): Promise<readonly Frame[]>
}

/** A place for one commit log. */
export interface CommitLogHarness {
  /** Opens it; after a close the same one again, which has its frames up to `seq`. */
  open(seq: number): Promise<OpenCommitLog>
  /** Makes writes fail for lack of space, or succeed again. Not there: another test does it. */
  setFull?(is_full: boolean): Promise<void>
  /** Another node takes the ownership. Not there where no other node can. */
  fence?(): Promise<void>
  remove(): Promise<void>
}

export function changesNamed(name: string, bytes = 100): ChangeBuffer {
  return changesOf(new Map([[name, Buffer.alloc(bytes, name)]]))
}

/** Writes a frame; a copy of its bytes. */
export async function written(writer: CommitLogWriter, changes: ChangeBuffer): Promise<Buffer> {
  const from = writer.active().bytes()
  await writer.write(changes)
  return Buffer.from(writer.active().arena().subarray(from, writer.active().bytes()))
}

export function commitLogSuite(name: string, newHarness: () => Promise<CommitLogHarness>): void {
  describe(`the commit log ${name}`, () => {
    let harness: CommitLogHarness
    let opened: OpenCommitLog
    let first_seq: number
    /** What has been written, in order. */
    const frames: Buffer[] = []

    async function write(...changes: ChangeBuffer[]): Promise<void> {
      for (const one of changes) frames.push(await written(opened.writer, one))
    }

    async function reopen(): Promise<void> {
      const seq = opened.writer.seq()
      await opened.writer.close()
      opened = await harness.open(seq)
      assert.equal(opened.writer.seq(), seq)
    }

    /** The frames from the n-th on, by their position and bytes. */
    async function assertFrames(n = 0): Promise<void> {
      let next = n
      for (;;) {
        const found = await opened.read(first_seq + next)
        if (found.length === 0) break
        for (const { seq, bytes } of found) {
          assert.equal(seq, first_seq + next + 1)
          assert.ok(frames[next]?.equals(bytes), `frame ${next} is not what was written`)
          next++
        }
      }
      assert.equal(next, frames.length)
    }

    before(async () => {
      harness = await newHarness()
      opened = await harness.open(0)
      first_seq = opened.writer.seq()
    })
    after(async () => {
      await opened.writer.close()
      await harness.remove()
    })

    it('has no frames at first, and is settled', async () => {
      await assertFrames()
      assert.equal(opened.writer.isSettled(), true)
    })

    it('has the frames in their order for the next process, from any position on', async () => {
      const sizes = [0, 1, 31, 32, 33, 4_000, 70_000]
      await write(...sizes.map((bytes) => changesNamed('a', bytes)))
      await reopen()
      for (const n of frames.keys()) await assertFrames(n)
      await assertFrames(frames.length)
    })

    it('has no frame that there was no room for, and the next one in its place', async (t) => {
      if (harness.setFull === undefined) return t.skip('small-disk.test.ts fills its disk')
      await harness.setFull(true)
      for (const refused of ['x', 'y']) {
        await assert.rejects(write(changesNamed(refused)), { code: 'no_space' })
      }
      await harness.setFull(false)
      await write(changesNamed('b'), changesNamed('c'))
      await reopen()
      await assertFrames()
    })

    it('has a frame of 64 MiB, and those of the next round', async () => {
      await write(changesNamed('large', 64 * 1024 * 1024))
      opened.writer.rotate()
      await write(changesNamed('after'))
      await assertFrames(frames.length - 2)
      await reopen()
      await assertFrames(frames.length - 1)
    })

    it('takes nothing of a node that another has followed', async (t) => {
      if (harness.fence === undefined) return t.skip('no other node can')
      await harness.fence()
      for (let n = 0; n < 2; n++) {
        await assert.rejects(write(changesNamed('late')), { code: 'store_failed' })
      }
      await assertFrames(frames.length - 1)
    })
  })
}
