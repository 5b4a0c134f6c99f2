/**
 * Clients in other languages, made from the .proto and the certificates alone. A client whose
 * packages are missing on the machine is skipped, with the reason.
 */
import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { openGrpc } from './support/grpc-server.ts'
import { top } from './support/package-folder.ts'
import { tasksOf } from './support/tasks-of.ts'

const run = promisify(execFile)
const at = (path: string) => join(top, 'test', path)

const works = (command: string, ...args: string[]): boolean =>
  spawnSync(command, args, { stdio: 'ignore' }).status === 0

const folder = mkdtempSync(join(tmpdir(), 'conveyor-stubs-'))
after(() => rmSync(folder, { recursive: true }))

// Debian's packages are for Debian's Python, which may not be the first in the path.
const python = ['python3', '/usr/bin/python3'].find((one) =>
  works(one, '-c', 'import grpc, google.protobuf'),
)
const made = [['protoc'], [python ?? 'python3', '-m', 'grpc_tools.protoc']].some(
  ([command = '', ...args]) =>
    works(
      command,
      ...args,
      `--proto_path=${at('../proto')}`,
      `--python_out=${folder}`,
      'conveyor/v1/task_service.proto',
    ),
)
const skip =
  python === undefined
    ? 'no Python here has grpcio'
    : !made
      ? 'no protoc here knows `optional`'
      : false

test('Python with grpcio', { skip }, async () => {
  const server = await openGrpc()
  const script = at('support/clients/client-grpc.py')
  const { stdout } = await run(
    python as string,
    [script, server.grpc.address, server.folder, folder, 'ref of Python'],
    { timeout: 30_000 },
  )
  const [obj_id = '', ...output] = stdout.trim().split('\n')
  assert.deepEqual(output, [
    'ref of Python',
    'processed',
    'NOT_FOUND not_found_task: not found task',
    'True',
    'delayed processed',
    'True',
    "['ok']",
  ])
  const task = await server.engine.task({ conv_id: '1234', obj_id })
  assert.equal(task?.status, 'processed')
  assert.match(task?.data_text ?? '', /"amount":10\.0\b/)
  assert.deepEqual(task?.data, { name: 'Київ', amount: 10, paid: true })
  const ended = await tasksOf(server.engine, '1234', { status: 'processed' })
  assert.equal(ended.length, 51)
  await server.close()
  assert.deepEqual(server.bugs, [])
})
