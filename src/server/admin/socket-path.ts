/**
 * The path of a data file's admin socket: a folder per user with mode 0700, and a name hashed from
 * the file's real path, because Node silently truncates long socket paths.
 *
 * The folder is used only if it is a directory of this user that no other user may enter; otherwise
 * a new one is created. Readers take the path from the owner record beside the data file.
 */
import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync, mkdtempSync } from 'node:fs'
import { lstat, readdir, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { systemClock } from '../../core/clock.ts'
import { fault } from '../../core/faults.ts'

/**
 * The folder (made if missing) and the socket path for the data file at `real_path`. `runtime_dir`
 * stands in for `/tmp/conveyor-<uid>`. Throws `not_possible` where the path would be too long. On
 * Windows it is a named pipe, which needs no folder and which only its user may write to.
 */
export function adminSocketPath(
  real_path: string,
  options: { readonly runtime_dir?: string | undefined; readonly platform?: string } = {},
): { readonly folder: string; readonly socket: string } {
  const name = createHash('sha256').update(real_path).digest('hex').slice(0, 16)
  if ((options.platform ?? process.platform) === 'win32') {
    return { folder: pipe_folder, socket: `${pipe_folder}conveyor-${name}` }
  }
  const uid = process.getuid?.() ?? 0
  const wanted = options.runtime_dir ?? `/tmp/conveyor-${uid}`
  const folder = isSafeFolder(wanted, uid) ? wanted : mkdtempSync('/tmp/conveyor-')
  const socket = join(folder, name)
  if (Buffer.byteLength(socket) >= socket_path_bytes_max) {
    throw fault('not_possible', `the folder ${folder} is too long for a socket: name a shorter one`)
  }
  return { folder, socket }
}

const pipe_folder = '\\\\.\\pipe\\'

/** Whether it is a pipe of Windows instead of a file. */
export function isPipe(socket: string): boolean {
  return socket.startsWith(pipe_folder)
}

const socket_path_bytes_max = 100
const socket_name = /^[0-9a-f]{16}$/
/** A younger socket may belong to a server that is about to listen. */
const removed_after_ms = 60_000

/** Removes sockets of killed servers: those on which nothing listens. */
export async function removeDeadSockets(folder: string): Promise<void> {
  for (const name of await readdir(folder).catch(() => [])) {
    const path = join(folder, name)
    const found = await lstat(path).catch(() => undefined)
    if (!socket_name.test(name) || found?.isSocket() !== true) continue
    if (systemClock.now_ms() - found.mtimeMs < removed_after_ms) continue
    if (await hasNoListener(path)) await rm(path, { force: true })
  }
}

function hasNoListener(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path, () => {
      socket.destroy()
      resolve(false)
    })
    socket.on('error', ({ code }: NodeJS.ErrnoException) => resolve(code === 'ECONNREFUSED'))
  })
}

function isSafeFolder(folder: string, uid: number): boolean {
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') return false
  }
  const found = lstatSync(folder)
  return found.isDirectory() && found.uid === uid && (found.mode & 0o777) === 0o700
}
