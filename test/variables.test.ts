/**
 * Variables: what `{{env_var[@name]}}` gives, where a value comes from, that no description of a
 * failure shows one, and the file of `serve --variables`.
 */

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { plainBounds } from '../src/codec/plain-value.ts'
import { limitsWith } from '../src/core/limits.ts'
import type { JsonObject } from '../src/core/model.ts'
import type { Engine } from '../src/engine/api/engine-api.ts'
import { newVariables } from '../src/engine/transactions/variables.ts'
import { openEngine } from '../src/open.ts'
import { type Ran, rowsOf, run, tempFolder } from './support/cli-run.ts'
import { node } from './support/processes.ts'

const folder = tempFolder()
after(() => folder.remove())

function processOf(logic: JsonObject): JsonObject {
  const nodes: JsonObject[] = [
    node('start', 1, [logic, { type: 'go', to_node_id: 'end' }]),
    { id: 'end', obj_type: 2, options: '{"save_task":true}' },
    { id: 'failed', obj_type: 2, options: '{"save_task":true}' },
  ]
  return { obj_type: 1, obj_id: 1, title: 'Reads', scheme: { nodes } }
}

const sets = (text: string, type = 'string', more: JsonObject = {}): JsonObject => ({
  ...{ type: 'set_param', extra: { got: text }, extra_type: { got: type } },
  ...more,
})

async function runTask(engine: Engine, data: object = {}) {
  const { obj_id } = await engine.create({ conv_id: 1, data })
  const task = await engine.task({ conv_id: 1, obj_id: obj_id as string })
  return { data: task?.data as JsonObject, details: task?.status_details }
}

test('values are replaced for tasks under way too, and a missing one warns', async () => {
  await using engine = await openEngine(':memory:', { variables: { url: 'one', '@at': 'x' } })
  const put = await engine.processes.put(
    processOf(sets('{{env_var[@url]}} {{env_var[at]}} {{env_var[@no]}}')),
  )
  assert.deepEqual(put.waits_for.variables, ['no'])
  assert.deepEqual(put.warnings.slice(-1), ['variable @no has no value'])
  assert.equal((await runTask(engine)).data.got, 'one x ')
  engine.setVariables({ '@url': 'two', no: { a: [1] } })
  assert.equal((await runTask(engine)).data.got, 'two  {"a":[1]}')
  const wrong = { url: 'three', '@f': { a: [() => 1] } }
  assert.throws(() => engine.setVariables(wrong), /^TypeError: variable @f\.a\[0\] is a function$/)
  assert.equal((await runTask(engine)).data.got, 'two  {"a":[1]}')
})

const token = `sk_${'x'.repeat(300)}`
const variables = {
  token,
  deep: { list: ['hunter2 is mine', 123456789] },
  port: 8080,
  'a"b': 'quoted "text"\n',
}

// [text, masked]
const masks: [text: string, masked: string][] = [
  [`Value: ${token}, Try`, 'Value: ***, Try'],
  [token.slice(0, 128), '***'],
  [`a ${token.slice(0, 20)}… b`, 'a ***… b'],
  [token.slice(0, 15), token.slice(0, 15)],
  ['hunter2 is mine, 123456789', '***, ***'],
  ['port 8080', 'port 8080'],
  [`got ${JSON.stringify('quoted "text"\n')}`, 'got "***"'],
  [`${token}${token}`, '******'],
]

for (const [text, masked] of masks) {
  test(`masks ${text.slice(0, 40)}`, () => {
    assert.equal(newVariables(plainBounds(limitsWith()), variables).masked(text), masked)
  })
}

// [a logic whose failure names the value]
const failing: JsonObject[] = [
  sets('{{env_var[@token]}}', 'number'),
  sets('{{env_var[@token]}}', 'number', { err_node_id: 'failed' }),
  { type: 'api_copy', mode: 'create', conv_id: '{{env_var[@token]}}', data: {}, data_type: {} },
]

for (const logic of failing) {
  test(`a failure shows no value: ${JSON.stringify(logic)}`, async () => {
    await using engine = await openEngine(':memory:', { variables })
    const put = await engine.processes.put(processOf(logic))
    const ran = await runTask(engine)
    assert.ok(!JSON.stringify([put, ran]).includes(token.slice(0, 16)), JSON.stringify(ran))
    assert.match(JSON.stringify(ran), /\*\*\*/)
  })
}

test('serve --variables reads the file again when it changes', async () => {
  const file = join(folder.path, 'variables.json')
  const db = join(folder.path, 'serve.lmdb')
  const write = (text: string): void => {
    writeFileSync(`${file}.new`, text)
    renameSync(`${file}.new`, file)
  }
  const definition = join(folder.path, 'reads.conv.json')
  writeFileSync(definition, JSON.stringify(processOf(sets('{{env_var[@word]}}'))))
  assert.equal((await run(['process', 'import', definition, '--db', db])).exit, 0)
  write('{"word":"first"}')
  let stop = (): void => {}
  let served: Promise<Ran> | undefined
  let told = ''
  await new Promise<void>((resolve) => {
    const args = ['serve', '--json', '--http', 'off', '--grpc', 'off', '--db', db]
    served = run([...args, '--variables', file, '--variables-reload-ms', '5'], {
      onWait: (fn) => {
        stop = fn
      },
      onOut: () => resolve(),
      onErr: (text) => {
        told += text
      },
    })
  })
  const got = async (): Promise<unknown> => {
    const line = 'task create 1 --data {} --json'
    const [made] = rowsOf((await run([...line.split(' '), '--db', db])).out)
    const shown = await run(['task', 'show', '1', String(made?.obj_id), '--json', '--db', db])
    return rowsOf(shown.out)[0]?.data
  }
  const becomes = async (value: string): Promise<void> => {
    for (let tries = 0; JSON.stringify(await got()) !== `{"got":"${value}"}`; tries++)
      assert.ok(tries < 500, value)
  }
  await becomes('first')
  write('{"word":"second"}')
  await becomes('second')
  const isTold = async (message: RegExp): Promise<void> => {
    for (let tries = 0; !message.test(told); tries++) {
      assert.ok(tries < 2_000, `${message} in ${told}`)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }
  const stays = '.*; the values stay as they were'
  const broken: [text: string, message: RegExp][] = [
    ['{"word":"third secret"', new RegExp(`cannot use .*variables\\.json: .*expected, .*${stays}`)],
    ['["third secret"]', new RegExp(`a JSON object was expected${stays}`)],
    ['\xff', new RegExp(`a value was expected, .*${stays}`)],
  ]
  for (const [text, message] of broken) {
    write(text)
    await isTold(message)
    assert.deepEqual(await got(), { got: 'second' })
  }
  rmSync(file)
  await isTold(/cannot read .*variables\.json: there is no such file.*; the values stay/)
  execFileSync('mkfifo', [file])
  await isTold(/cannot read .*variables\.json: it is no file.*; the values stay/)
  write('{"word":"fourth"}')
  await becomes('fourth')
  stop()
  const { exit, err } = (await served) as Ran
  assert.equal(exit, 0, err)
  assert.ok(!err.includes('third secret'), err)
})

test('serve refuses a file of variables that cannot be used', async () => {
  const file = join(folder.path, 'broken.json')
  for (const text of ['{"a":"secret', '[]', '7']) {
    writeFileSync(file, text)
    const { exit, err } = await run(['serve', '--http', 'off', '--variables', file])
    assert.equal(exit, 2)
    assert.ok(!err.includes('secret'), err)
  }
  for (const no_file of [`${file}.none`, folder.path, '/dev/zero']) {
    assert.equal((await run(['serve', '--http', 'off', '--variables', no_file])).exit, 2)
  }
})
