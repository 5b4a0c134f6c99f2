/**
 * Writes the files of test/golden in the present format: `node --import tsx
 * test/support/golden-files.ts`. One is closed; the other is left by a child that kills itself.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { openEngine } from '../../src/index.ts'
import { testClock } from '../../src/testing.ts'
import { tempFolder } from './package-folder.ts'

const script = fileURLToPath(import.meta.url)
const conv_id = 1234
const logic = { logics: [{ type: 'api_callback' }, { type: 'go', to_node_id: 'end' }] }
const nodes = [
  { id: 'start', obj_type: 1, condition: { logics: [{ type: 'go', to_node_id: 'wait' }] } },
  { id: 'wait', obj_type: 0, condition: logic },
  { id: 'end', obj_type: 2, options: { save_task: true } },
]

async function write(path: string, is_killed: boolean): Promise<void> {
  const clock = testClock(Date.parse('2026-11-22T03:00:00Z'))
  const engine = await openEngine(path, { secret_key: '11'.repeat(32), clock })
  await engine.processes.put({ obj_id: conv_id, title: 'Order', scheme: { nodes } })
  await engine.users.add({ id: '13000' })
  for (let n = 0; n < 20; n++) {
    await engine.create({ conv_id, ref: `order-${n}`, data: { n, text: 'é 1' } })
  }
  for (let n = 0; n < 10; n++) {
    await engine.modify({ conv_id, ref: `order-${n}`, data: { paid: true } })
  }
  await engine.tasks.cancel({ conv_id, ref: 'order-19' })
  if (is_killed) process.kill(process.pid, 'SIGKILL')
  await engine.close()
}

const [, , path, kind] = process.argv
if (path !== undefined) await write(path, kind === 'killed')
else {
  for (const [name, kind] of [
    ['plain', 'closed'],
    ['commit-log-killed', 'killed'],
  ] as const) {
    const folder = tempFolder()
    const made = join(folder.path, 'tasks.lmdb')
    spawnSync(process.execPath, ['--import', 'tsx', script, made, kind], { stdio: 'inherit' })
    for (const end of ['', '-log-0', '-log-1']) {
      const golden = new URL(`../golden/${name}${end}.gz`, import.meta.url)
      rmSync(golden, { force: true })
      if (existsSync(made + end)) writeFileSync(golden, gzipSync(readFileSync(made + end)))
    }
    folder.remove()
  }
}
