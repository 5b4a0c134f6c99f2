/**
 * The unit and the Containerfile as they are meant to run, in unpacked roots of Debian: systemd boots
 * and keeps the service; the image is built step by step and runs as process 1 on a root that is
 * read-only, as a user without rights.
 *
 * Takes some minutes, root, mmdebstrap and systemd-nspawn: `CONVEYOR_SLOW=1 npm test -- deploy-roots`.
 */
import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { tempFolder } from './support/cli-run.ts'
import { parseContainerFile, wordsOf } from './support/container-file.ts'
import {
  addNode,
  inRoot,
  makeDebian,
  playSteps,
  runContainer,
  whyNoRoots,
} from './support/container-root.ts'
import { run, top } from './support/package-folder.ts'

/**
 * Boots the systemd of an unpacked root in a container of systemd-nspawn, on a network of its
 * own, and runs commands inside. Needs root.
 */
interface Machine {
  /** Runs a command to its end and answers what it printed; throws where it fails. */
  exec(words: readonly string[]): string
  end(): Promise<void>
}

async function bootRoot(root: string): Promise<Machine> {
  const flags = ['--quiet', '--register=no', '--keep-unit', '--private-network', '--boot']
  const child = spawn('systemd-nspawn', [...flags, `--directory=${root}`], { stdio: 'ignore' })
  const ended = once(child, 'exit')
  const command = (words: readonly string[]): string[] => {
    const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8')
    const path = 'PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
    return ['-t', children.trim().split(' ')[0] as string, '-a', 'env', '-i', path, ...words]
  }
  let state = ''
  for (let n = 0; n < 300 && !/running|degraded/.test(state); n++) {
    await sleep(100)
    try {
      const asked = command(['systemctl', 'is-system-running'])
      state = spawnSync('nsenter', asked, { encoding: 'utf8' }).stdout
    } catch {
      // The first process of the container is not there yet.
    }
  }
  assert.match(state, /running|degraded/, 'the root does not boot')
  return {
    exec: (words) => execFileSync('nsenter', command(words), { encoding: 'utf8' }),
    async end() {
      child.kill('SIGTERM')
      await ended
    },
  }
}

const is_slow = process.env.CONVEYOR_SLOW === '1'
const why_not = is_slow ? whyNoRoots() : 'takes some minutes, and CONVEYOR_SLOW=1'
const node_major = '24'

test('the image is built by its steps, and runs', { skip: why_not ?? false }, async (t) => {
  const folder = tempFolder()
  const root = (name: string): string => join(folder.path, name)
  try {
    timed(t, 'Debian with Node', () => {
      makeDebian(root('base'))
      addNode(root('base'), node_major)
    })
    const roots = new Map<string, string>()
    const stages = parseContainerFile(readFileSync(join(top, 'deploy/Containerfile'), 'utf8'))
    for (const stage of stages) {
      assert.equal(stage.base, `docker.io/library/node:${node_major}-bookworm-slim`)
      const name = stage.name ?? 'image'
      run('/', 'cp', ['-a', root('base'), root(name)])
      timed(t, `stage ${name}`, () => playSteps(stage, root(name), { context: top, roots }))
      roots.set(name, root(name))
    }
    const image = stages.at(-1) as (typeof stages)[0]
    const volume = root('volume')
    mkdirSync(volume, { mode: 0o700 })
    chownSync(volume, 1000, 1000)
    const words = [...wordsOf(image, 'ENTRYPOINT'), ...wordsOf(image, 'CMD')]
    const start = () => runContainer(image, root('image'), { words, volume })

    const container = start()
    const lines = createInterface({ input: container.child.stdout as NodeJS.ReadableStream })
    for await (const line of lines) if (line.startsWith('db ')) break
    const inside = (line: string) => container.exec(line.split(' '))
    assert.match(inside('id -u').out, /^1000\n$/)
    assert.match(inside('touch /opt/x').out, /Read-only file system/)
    assert.match(inside('grep CapBnd /proc/1/status').out, /\t0{16}\n/)
    assert.deepEqual(container.exec(wordsOf(image, 'HEALTHCHECK')), { status: 0, out: '' })
    assert.match(inside('conveyor user add --name shop').out, /^user {4}13000\n/)
    assert.match(inside('cat /proc/1/comm').out, /^tini\n$/)
    // What a shell leaves behind is process 1's, which takes its end.
    container.exec(['sh', '-c', 'sleep 0.1 & exit'])
    await sleep(500)
    assert.equal(container.exec(['sh', '-c', 'grep -l "State:.Z" /proc/[0-9]*/status']).out, '')
    process.kill(container.pid(), 'SIGTERM')
    assert.deepEqual(await once(container.child, 'exit'), [0, null])
    assert.ok(
      existsSync(join(volume, 'tasks.lmdb')) && !existsSync(join(volume, 'tasks.lmdb-log-0')),
    )

    // A signal that comes before node has its handlers is not lost.
    const early = start()
    for (let comm = ''; comm !== 'tini\n'; ) {
      comm = early.pid() === 0 ? '' : early.exec(['cat', '/proc/1/comm']).out
    }
    process.kill(early.pid(), 'SIGTERM')
    const [code] = await once(early.child, 'exit')
    assert.ok([0, 143].includes(code), `${code}`)
  } finally {
    folder.remove()
  }
})

const why_no_boot =
  why_not ?? whyNoRoots(['mmdebstrap', 'systemd-nspawn', 'nsenter', 'systemd-analyze'])

test('systemd runs the unit', { skip: why_no_boot ?? false }, async (t) => {
  const folder = tempFolder()
  const root = join(folder.path, 'debian')
  let machine: Machine | undefined
  try {
    timed(t, 'Debian with systemd', () => makeDebian(root, ['systemd', 'systemd-sysv', 'dbus']))
    addNode(root, node_major)
    run(top, 'npm', ['pack', '--silent', '--pack-destination', root])
    const runbook = readFileSync(join(top, 'deploy/README.md'), 'utf8')
    const [, commands = ''] = /<!-- install -->\n```sh\n([\s\S]*?)```/.exec(runbook) ?? []
    const [install = '', ...others] = commands.trim().split('\n')
    // Only before the boot is there a network.
    inRoot(root, ['sh', '-ec', install])
    machine = await bootRoot(root)
    machine.exec(['sh', '-ec', others.join('\n')])
    await keepService(machine)
  } finally {
    await machine?.end()
    folder.remove()
  }
})

async function keepService(machine: Machine): Promise<void> {
  const show = (name: string): string =>
    machine.exec(['systemctl', 'show', '--value', '-p', name, 'conveyor']).trim()
  const until = async (name: string, wanted: RegExp): Promise<void> => {
    for (let n = 0; n < 300 && !wanted.test(show(name)); n++) await sleep(100)
    assert.match(show(name), wanted, machine.exec(['journalctl', '--no-pager', '-u', 'conveyor']))
  }
  const answers = async (port = 8081): Promise<void> => {
    const health = `http://127.0.0.1:${port}/healthz`
    const ask = `fetch('${health}').then((r) => console.log(r.status), () => console.log(0))`
    for (let n = 0; n < 300; n++) if (machine.exec(['node', '-e', ask]) === '200\n') return
    assert.fail(machine.exec(['journalctl', '--no-pager', '-u', 'conveyor']))
  }
  const verb = (line: string): string =>
    machine.exec([
      ...['runuser', '-u', 'conveyor', '--', 'env', 'CONVEYOR_DB=/var/lib/conveyor/tasks.lmdb'],
      ...['/opt/conveyor/bin/conveyor', ...line.split(' ')],
    ])
  await answers()
  assert.match(verb('user add --name shop'), /^user {4}13000\n/)
  assert.match(verb('backup /var/backups/conveyor/tasks.lmdb'), /tasks.lmdb: \d+ bytes/)
  const status = machine.exec(['cat', `/proc/${show('MainPID')}/status`])
  for (const line of [/^NoNewPrivs:\t1$/m, /^CapBnd:\t0{16}$/m, /^Seccomp:\t2$/m]) {
    assert.match(status, line)
  }
  machine.exec(['systemctl', 'kill', '--signal=KILL', 'conveyor'])
  await until('NRestarts', /^1$/)
  await answers()
  machine.exec(['systemctl', 'stop', 'conveyor'])
  assert.deepEqual([show('Result'), show('ExecMainStatus')], ['success', '0'])
  verb('check')
  machine.exec(['sh', '-c', 'echo CONVEYOR_HTTP=nowhere > /etc/conveyor/serve.env'])
  machine.exec(['systemctl', 'start', 'conveyor'])
  await until('ActiveState', /^failed$/)
  assert.deepEqual([show('ExecMainStatus'), show('NRestarts')], ['2', '0'])

  const shipped = '/opt/conveyor/lib/node_modules/conveyor-engine/deploy/conveyor.socket'
  machine.exec(['cp', shipped, '/etc/systemd/system/'])
  machine.exec(['sh', '-c', 'echo CONVEYOR_HTTP=fd:3 > /etc/conveyor/serve.env'])
  machine.exec(['systemctl', 'daemon-reload'])
  machine.exec(['systemctl', 'enable', '--now', 'conveyor.socket'])
  // Nobody runs: who connects waits in the socket until the service, which that starts, answers.
  assert.equal(show('ActiveState'), 'failed')
  await answers(8080)
  machine.exec(['systemctl', 'stop', 'conveyor'])
  await answers(8080)
}

function timed(t: TestContext, what: string, work: () => void): void {
  const began_ms = performance.now()
  work()
  t.diagnostic(`${what}: ${Math.round((performance.now() - began_ms) / 1000)} s`)
}
