/**
 * The files of deploy: systemd accepts the unit, its limits fit those of the engine, the
 * Containerfile takes what the checkout has, and the command lines of both run as they stand, with
 * their environment, in folders of this test.
 *
 * deploy-roots.test.ts runs both as they are meant, in unpacked roots.
 */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, test } from 'node:test'
import { limitsWith } from '../src/core/limits.ts'
import { run, tempFolder } from './support/cli-run.ts'
import { node_args } from './support/cli-serve.ts'
import { copyOf, envOf, parseContainerFile, wordsOf } from './support/container-file.ts'
import { top } from './support/package-folder.ts'
import { movedEnv, unit_env, unit_text, unit_words, unitSettings } from './support/unit.ts'

const folder = tempFolder()
after(() => folder.remove())
const stages = parseContainerFile(readFileSync(join(top, 'deploy/Containerfile'), 'utf8'))
const [build, image] = stages as [(typeof stages)[0], (typeof stages)[0]]
const limits = limitsWith({})

const has_analyze = spawnSync('systemd-analyze', ['--version']).error === undefined

test('systemd accepts the units, and finds little exposed', {
  skip: has_analyze ? false : 'systemd-analyze not on this machine',
}, () => {
  const root = join(folder.path, 'root')
  const place = join(root, 'etc/systemd/system/conveyor.service')
  const program = join(root, unit_words[0] as string)
  for (const path of [place, program]) mkdirSync(dirname(path), { recursive: true })
  cpSync('/usr/lib/systemd/system', join(root, 'usr/lib/systemd/system'), { recursive: true })
  writeFileSync(place, unit_text)
  cpSync(join(top, 'deploy/conveyor.socket'), join(dirname(place), 'conveyor.socket'))
  writeFileSync(program, '')
  chmodSync(program, 0o755)
  const analyze = (words: readonly string[]) => {
    const args = [...words, `--root=${root}`]
    const { status, stdout, stderr } = spawnSync('systemd-analyze', args, { encoding: 'utf8' })
    return { status, told: (stdout + stderr).trim() }
  }
  assert.deepEqual(analyze(['verify', 'conveyor.service', 'conveyor.socket']), {
    status: 0,
    told: '',
  })
  // In tenths: at most 1.5 of 10.
  const security = ['security', '--offline=yes', '--threshold=15', '--no-pager', 'conveyor.service']
  const { status, told } = analyze(security)
  assert.equal(status, 0, told)
})

test('the unit leaves the engine its time and its files', () => {
  const [stop_s, files] = [unitSettings('TimeoutStopSec'), unitSettings('LimitNOFILE')].map(Number)
  assert.ok((stop_s as number) * 1000 > 7 * limits.drain_ms_max)
  assert.ok((files as number) > 2 * limits.connections_max)
})

test('the Containerfile takes what the checkout has, from stages that are there', () => {
  for (const [at, stage] of stages.entries()) {
    const earlier = stages.slice(0, at).map(({ name }) => name)
    const copies = stage.steps.filter(({ kind }) => kind === 'COPY').map(copyOf)
    for (const { stage: name, from } of copies) {
      if (name !== undefined) assert.ok(earlier.includes(name), name)
      else
        assert.deepEqual(
          from.filter((one) => !existsSync(join(top, one))),
          [],
        )
    }
  }
  const { scripts } = JSON.parse(readFileSync(join(top, 'package.json'), 'utf8'))
  const runs = build.steps.map(({ text }) => text).join('\n')
  for (const [, name = ''] of runs.matchAll(/npm run (\S+)/g)) assert.ok(name in scripts, name)
})

/** [whose, its words behind the program, its environment] */
const commands: readonly (readonly [string, readonly string[], Record<string, string>])[] = [
  ['unit', unit_words.slice(1), unit_env],
  ['Containerfile', wordsOf(image, 'CMD'), envOf(image)],
]

for (const [whose, words, env] of commands) {
  test(`the command line of the ${whose} serves, with its folders`, async () => {
    const place = join(folder.path, whose)
    mkdirSync(join(place, 'var/lib/conveyor'), { recursive: true })
    mkdirSync(join(place, 'run'))
    const child = spawn(process.execPath, [...node_args, ...words], {
      env: movedEnv(env, place),
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const ended = once(child, 'exit')
    const [line] = await once(createInterface({ input: child.stdout }), 'line')
    const { http, operator, db } = JSON.parse(line) as Record<string, string>
    assert.equal(db, join(place, env.CONVEYOR_DB as string))
    for (const url of [http, operator]) assert.equal((await fetch(`${url}/healthz`)).status, 200)
    assert.equal((await run(['user', 'list', '--db', String(db)])).exit, 0)
    child.kill('SIGTERM')
    assert.deepEqual(await ended, [0, null])
  })
}
