/**
 * The power is cut while an engine works. At whatever moment, it opens again, every acknowledged
 * batch is there, none in part, and `check` finds nothing. support/power-disk states what the disk
 * may hold.
 *
 * A short run tries few images; `CONVEYOR_SLOW=1` thousands.
 */
import assert from 'node:assert/strict'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { openEngine } from '../src/open.ts'
import { crash_forms } from './support/commit-log-crash.ts'
import { judge } from './support/crash-judge.ts'
import { type Ack, makeReady } from './support/crash-work.ts'
import { cutsOf, type Folder, fatesOf, folderAfter, newChance } from './support/power-disk.ts'
import { type DiskEvent, traceDisk } from './support/power-trace.ts'
import { buildChild } from './support/store-child.ts'
import { quickFolder } from './support/store-folder.ts'
import { canTrace } from './support/store-strace.ts'

const is_slow = process.env.CONVEYOR_SLOW === '1'
const images_max = is_slow ? 1_500 : 16
const by_chance = is_slow ? 4 : 1
const skip = !canTrace() && 'strace is missing or may not trace here'
const is_whole = { breaches: [], lost: [], half: [] }

const acksUpTo = (events: readonly DiskEvent[], line: number): Ack[] =>
  events.flatMap((event) =>
    event.what === 'said' && event.began <= line ? [JSON.parse(event.text) as Ack] : [],
  )

async function assertImage(folder: string, image: Folder, acks: Ack[]) {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder)
  for (const [name, bytes] of image) writeFileSync(join(folder, name), bytes, { mode: 0o600 })
  const engine = await openEngine(join(folder, 'db'), { timers: false })
  try {
    // The power may have gone before they were there.
    await makeReady(engine)
    assert.deepEqual(await judge(engine, acks, new Set()), is_whole)
  } finally {
    await engine.close()
  }
}

describe('a power cut under an engine', { skip, timeout: 1_200_000 }, () => {
  for (const { form, edits } of crash_forms) {
    it(form, async (t) => {
      const child = await buildChild('power-engine-child.ts', edits)
      const folder = await quickFolder('conveyor-power-')
      try {
        const path = join(child.folder, 'disk', 'db')
        mkdirSync(join(child.folder, 'disk'))
        const events = await traceDisk([child.script, path], path)
        const seed = Date.now() | 0
        const chance = newChance(seed)
        const cuts = cutsOf(events)
        const all = cuts.flatMap((cut) =>
          [...fatesOf(cut, by_chance, chance)].map((fates) => ({ cut, fates })),
        )
        const step = Math.max(1, all.length / images_max)
        let images = 0
        for (let at = step * chance(); at < all.length; at += step) {
          const { cut, fates } = all[Math.floor(at)] as (typeof all)[number]
          const acks = acksUpTo(events, cut.line)
          const what = `seed ${seed}, line ${cut.line}, ${acks.length} acknowledged`
          images++
          await assertImage(folder, folderAfter(cut, fates), acks).catch((error: Error) =>
            assert.fail(`${what}: ${error.message}`),
          )
        }
        t.diagnostic(`${cuts.length} cuts, ${images} images`)
      } finally {
        await child.remove()
        rmSync(folder, { recursive: true, force: true })
      }
    })
  }
})
