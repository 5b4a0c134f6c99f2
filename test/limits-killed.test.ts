/**
 * A program is killed at any time while its tasks call a server, two at once for each customer: the
 * server never sees more, and after the last start all tasks end and no slot is left. The control
 * is a program that holds no task up. CONVEYOR_LIMIT_KILLS kills more often.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, test } from 'node:test'
import { type BuiltChild, buildChild, type Edit } from './support/store-child.ts'

const kills = Number(process.env.CONVEYOR_LIMIT_KILLS ?? 6)
const at_once = 2
const children: BuiltChild[] = []
after(async () => {
  for (const child of children) await child.remove()
})

/** The most calls at once of one customer, and what the last program printed. */
async function run(
  kills: number,
  edits: readonly Edit[] = [],
): Promise<{ most: number; said: string }> {
  const child = await buildChild('limit-child.ts', edits)
  children.push(child)
  const path = join(child.folder, 'tasks.lmdb')
  let most = 0
  const calls = new Map<string, number>()
  const server = createServer(({ url = '' }, response) => {
    const now = (calls.get(url) ?? 0) + 1
    calls.set(url, now)
    most = Math.max(most, now)
    // Also where the caller is killed.
    response.once('close', () => calls.set(url, (calls.get(url) ?? 0) - 1))
    setTimeout(() => response.end('{}'), 2)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  let said = ''
  for (let round = 0; round <= kills; round++) {
    const is_last = round === kills
    const args = [child.script, path, String(port), is_last ? '0' : '200']
    const running = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    const ended = once(running, 'exit')
    for await (const line of createInterface({ input: running.stdout })) {
      if (line !== 'begun') said = line
      else if (!is_last) break
    }
    if (!is_last) {
      // On a busy machine the first calls take longer than the time until the kill.
      while (most === 0) await new Promise((resolve) => setTimeout(resolve, 1))
      await new Promise((resolve) => setTimeout(resolve, 20 + ((round * 37) % 150)))
      running.kill('SIGKILL')
    }
    await ended
    // The server learns of the closed connections before the next program calls it.
    while ([...calls.values()].some((now) => now > 0)) {
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
  }
  server.close()
  return { most, said }
}

test(`${kills} kills leak no slot and give none twice`, async () => {
  const { most, said } = await run(kills)
  assert.equal(said, '[[],0,0,0]')
  assert.equal(most, at_once)
})

test('a program that grants a slot too many is found', async () => {
  const { most } = await run(1, [
    {
      file: 'engine/limits/slots.ts',
      from: 'numbers.held >= limit.at_once',
      to: 'numbers.held > limit.at_once',
    },
  ])
  assert.equal(most, at_once + 1)
})
