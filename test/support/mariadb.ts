/**
 * A MariaDB server of a test's own, of Debian's package mariadb-server: in a new folder, on a free
 * port, with a certificate, and a user and a database `shop`. The empty database is made once on a machine and copied
 * for each server. Its program ends with the process that started it.
 */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after } from 'node:test'
import { initFolder } from '../../src/certs/folder.ts'
import { systemChance, systemClock } from '../../src/core/clock.ts'
import { freePort } from './free-port.ts'
import { signalTree } from './postgres.ts'

export interface Mariadb {
  readonly port: number
  /** The file of the authority that has signed its certificate. */
  readonly ca: string
  /** What its own client prints for a statement of root, without a head. */
  sql(text: string): string
  signal(name: NodeJS.Signals): void
}

const program = '/usr/sbin/mariadbd'

/** Why there is no server here; undefined where there is one. */
export const no_mariadb = existsSync(program)
  ? undefined
  : 'MariaDB is not on this machine (Debian: mariadb-server)'

/** One for a whole test file, removed after it; undefined where there is none: `no_mariadb`. */
export async function mariadbOrSkip(password: string): Promise<Mariadb | undefined> {
  if (no_mariadb !== undefined) return undefined
  const home = mkdtempSync(join(tmpdir(), 'conveyor-mariadb-'))
  const [data, socket] = [join(home, 'data'), join(home, 'socket')]
  execFileSync('cp', ['-a', template(), data])
  const start = join(home, 'start.sql')
  const statements = [
    // Else these would be who comes from this machine.
    ...["delete from mysql.global_priv where user = ''", 'flush privileges'],
    ...['create database shop', `create user shop identified by '${password}'`],
    'grant all on shop.* to shop',
  ]
  writeFileSync(start, statements.map((one) => `${one};\n`).join(''))
  const tls = join(home, 'tls')
  await initFolder(tls, [], { now_ms: systemClock.now_ms(), chance: systemChance })
  own(home)
  const port = await freePort()
  const command = [...asUser('INT'), program, '--no-defaults', `--datadir=${data}`]
  const args = [`--socket=${socket}`, `--port=${port}`, '--bind-address=127.0.0.1']
  const certificate = [`--ssl-cert=${tls}/server.crt`, `--ssl-key=${tls}/server.key`]
  const child = spawn(
    command[0] as string,
    [
      ...command.slice(1),
      ...args,
      ...certificate,
      `--init-file=${start}`,
      '--innodb-flush-log-at-trx-commit=0',
    ],
    { cwd: home, stdio: ['ignore', 'ignore', 'pipe'] },
  )
  let said = ''
  await new Promise<void>((resolve, reject) => {
    createInterface({ input: child.stderr }).on('line', (line) => {
      said += `${line}\n`
      if (line.includes('ready for connections')) resolve()
    })
    child.on('close', () => reject(new Error(`MariaDB ended:\n${said}`)))
  })
  after(async () => {
    const closed = once(child, 'close')
    signalTree(child.pid as number, 'SIGKILL')
    await closed
    rmSync(home, { recursive: true, force: true })
  })
  return {
    port,
    ca: join(tls, 'ca.crt'),
    sql: (text) =>
      execFileSync('mariadb', ['-S', socket, '-u', 'root', '-N', '-e', text], { encoding: 'utf8' }),
    signal: (name) => signalTree(child.pid as number, name),
  }
}

function template(): string {
  const version = execFileSync(program, ['--version'], { encoding: 'utf8' })
  const name = `conveyor-mariadb-${/Ver (\S+)/.exec(version)?.[1]}-${userInfo().username}`
  const path = join(tmpdir(), name)
  if (existsSync(path)) return path
  const home = mkdtempSync(join(tmpdir(), 'conveyor-mariadb-'))
  own(home)
  const made = join(home, 'data')
  const [command = '', ...args] = [
    ...[...asUser(), 'mariadb-install-db', '--no-defaults', `--datadir=${made}`],
    ...['--auth-root-authentication-method=normal', '--skip-test-db'],
  ]
  execFileSync(command, args, { cwd: home, stdio: ['ignore', 'ignore', 'pipe'] })
  try {
    renameSync(made, path)
  } catch {
    // Another test file was quicker.
  }
  rmSync(home, { recursive: true, force: true })
  return path
}

/** The server refuses root. */
function asUser(death_signal?: string): string[] {
  const user = userInfo().uid === 0 ? ['--reuid=mysql', '--regid=mysql', '--clear-groups'] : []
  return ['setpriv', ...user, ...(death_signal ? [`--pdeathsig=${death_signal}`] : [])]
}

function own(folder: string): void {
  if (userInfo().uid === 0) execFileSync('chown', ['-R', 'mysql:mysql', folder])
}
