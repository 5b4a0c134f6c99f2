/**
 * A process is killed under load, again and again on one file. Each time every acknowledged batch
 * is there, no batch in part, and `check` finds nothing. SIGKILL proves nothing about power cuts,
 * since the kernel has what the process wrote; sync-order and power-cut cover those.
 *
 * `CONVEYOR_SLOW=1` runs a hundred rounds of each form and prints what was found.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { it } from 'node:test'
import { openEngine } from '../src/open.ts'
import { commitLogLeft, crash_forms } from './support/commit-log-crash.ts'
import { clear, judge } from './support/crash-judge.ts'
import type { Ack } from './support/crash-work.ts'
import { buildChild } from './support/store-child.ts'

const is_slow = process.env.CONVEYOR_SLOW === '1'
const rounds = is_slow ? 100 : 3
/** So many rounds add to the same tasks before they are cleared away. */
const rounds_kept = 10

for (const { form, edits } of crash_forms) {
  it(`${form}: ${rounds} kills`, { timeout: 1_200_000 }, async (t) => {
    const child = await buildChild('crash-child.ts', edits)
    const path = join(child.folder, 'tasks.lmdb')
    const forgotten = new Set<string>()
    let acks: Ack[] = []
    let [ops, batches, empty] = [0, 0, 0]
    let [unmerged, in_merge] = [0, 0]
    const began_ms = performance.now()
    try {
      for (let round = 0; round < rounds; round++) {
        const told = await runAndKill([child.script, path, String(round)], round)
        acks.push(...told)
        batches += told.length
        ops += told.reduce((sum, ack) => sum + ack.ops, 0)
        if (told.length === 0) empty++
        const left = await commitLogLeft(path)
        unmerged += left.unmerged
        if (left.in_checkpoint) in_merge++
        // Now and then the next child takes up what the last one left, and what that took up.
        if (round % 3 === 1) continue
        const engine = await openEngine(path, { timers: false })
        const verdict = await judge(engine, acks, forgotten)
        assert.deepEqual(verdict, { breaches: [], lost: [], half: [] }, `round ${round}`)
        await engine.close()
        if (round % rounds_kept !== rounds_kept - 1) continue
        acks = []
        for (const batch of await clearAway(path)) forgotten.add(batch)
      }
    } finally {
      await child.remove()
    }
    assert.ok(batches > 0, 'no batch was ever acknowledged')
    assert.ok(unmerged > 0, 'no kill left anything to the commit log')
    const seconds = Math.round((performance.now() - began_ms) / 1000)
    t.diagnostic(
      `${rounds} kills in ${seconds} s: ${batches} batches of ${ops} ops acknowledged, ` +
        `0 lost, 0 half, 0 breaches; ${empty} kills before the first acknowledgement; ` +
        `${unmerged} groups left to the commit log, ${in_merge} kills in a merge`,
    )
  })
}

/** What the child acknowledged until it was killed, at a moment of chance. */
async function runAndKill(args: readonly string[], round: number): Promise<Ack[]> {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  const kill = (after_ms: number) => setTimeout(() => child.kill('SIGKILL'), after_ms)
  const is_early = round % 8 === 3
  let timer = is_early ? kill(300 * Math.random()) : undefined
  const told: Ack[] = []
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text) => {
    said += text
  })
  // A line that the kill has cut off comes without its end, and does not parse.
  const lines = createInterface({ input: child.stdout })
  lines.on('line', (line) => {
    timer ??= kill(350 * Math.random())
    const ack = ackOf(line)
    if (ack !== undefined) told.push(ack)
  })
  const [signal] = await Promise.all([
    new Promise((resolve) => child.once('exit', (_code, signal) => resolve(signal))),
    new Promise((resolve) => lines.once('close', resolve)),
  ])
  clearTimeout(timer)
  assert.equal(signal, 'SIGKILL', `the child ended by itself: ${said}`)
  return told
}

function ackOf(line: string): Ack | undefined {
  try {
    return JSON.parse(line) as Ack
  } catch {
    return undefined
  }
}

/** Cancels and sweeps what is there; answers the batches that it was of. */
async function clearAway(path: string): Promise<string[]> {
  const engine = await openEngine(path, { limits: { ended_kept_ms: 0 } })
  try {
    const batches = await clear(engine)
    for (;;) {
      const { breaches, counts } = await engine.check()
      assert.deepEqual(breaches, [])
      if (counts.ended === 0) return batches
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  } finally {
    await engine.close()
  }
}
