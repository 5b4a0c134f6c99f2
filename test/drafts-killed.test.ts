/** A program that is killed at any step of a draft leaves the state before that step or after it. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, test } from 'node:test'
import { openEngine } from '../src/open.ts'
import { beginDrafts, draft_steps, draftsState } from './support/draft-steps.ts'
import { type BuiltChild, buildChild } from './support/store-child.ts'

let child: BuiltChild
/** After so many steps. */
const states: string[] = []

before(async () => {
  child = await buildChild('draft-child.ts')
  await using engine = await openEngine(':memory:')
  await beginDrafts(engine)
  states.push(await draftsState(engine))
  for (const [, step] of draft_steps) {
    await step(engine)
    states.push(await draftsState(engine))
  }
  assert.equal(new Set(states).size, states.length)
})
after(() => child.remove())

/** Kills the program so long after it says the word. */
async function killed(at: number, word: 'begin' | 'done', wait_ms: number): Promise<string> {
  const path = join(child.folder, `${at}-${word}-${wait_ms}.lmdb`)
  const running = spawn(process.execPath, [child.script, path, String(at)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines = createInterface({ input: running.stdout })
  for await (const line of lines) if (line === word) break
  if (wait_ms > 0) await new Promise((resolve) => setTimeout(resolve, wait_ms))
  const ended = once(running, 'exit')
  running.kill('SIGKILL')
  await ended
  await using engine = await openEngine(path)
  assert.deepEqual((await engine.check()).breaches, [])
  assert.equal((await engine.tasks.count({ conv_id: 77 })).total, 1)
  return await draftsState(engine)
}

for (const [at, [what]] of draft_steps.entries()) {
  test(`killed while it ${what}`, async () => {
    for (const wait_ms of [0, 1, 4]) {
      const found = await killed(at, 'begin', wait_ms)
      assert.ok([states[at], states[at + 1]].includes(found), found)
    }
    assert.equal(await killed(at, 'done', 0), states[at + 1])
  })
}
