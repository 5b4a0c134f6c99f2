/**
 * Connects a verb to the data file: opens the file here if no process holds it (without timers,
 * because this process ends soon), else calls the holder over its admin socket. The holder may come
 * or go in between, and short verbs hold the file for a moment, so it retries for about a second.
 */
import { existsSync } from 'node:fs'
import { defined } from '../core/defined.ts'
import { isFault } from '../core/faults.ts'
import { version } from '../core/version.ts'
import type { EngineOptions } from '../engine/api/engine-api.ts'
import { openEngine } from '../open.ts'
import { adminClient } from '../server/admin/client.ts'
import { type Admin, localAdmin } from '../server/admin/verbs.ts'
import { isNodeFileFault } from '../store/commit-log/node-mark.ts'
import { readOwner } from '../store/disk/owner-file.ts'
import { unreachableError } from './exit-codes.ts'
import type { Env, Io } from './io.ts'
import { stoppedNode } from './stopped-node.ts'
import { dbOf, type Given } from './verb.ts'

type IfMissing = 'refuse' | 'create' | 'in_memory'

/**
 * Runs `use` with a connection to the file and closes it. Rejects with exit 3 for a missing file
 * (unless `if_missing`), one that does not open, and one whose holder has no socket.
 */
export async function withAdmin<T>(
  given: Given,
  io: Io,
  use: (admin: Admin) => Promise<T>,
  options: { readonly if_missing?: IfMissing } = {},
): Promise<T> {
  const admin = await connectAdmin(given, io, options.if_missing ?? 'refuse')
  try {
    return await use(admin)
  } finally {
    await admin.close()
  }
}

const tries_max = 12
const pause_ms = 100

async function connectAdmin(given: Given, io: Io, if_missing: IfMissing): Promise<Admin> {
  const path = dbOf(given)
  const is_missing = if_missing !== 'create' && !existsSync(path)
  if (is_missing && if_missing === 'in_memory') {
    return localAdmin(await openEngine(':memory:', { background: false }))
  }
  if (is_missing) {
    throw unreachableError(
      `there is no file ${path}: name it with --db, or start with \`npx conveyor serve\``,
    )
  }
  for (let tries = 1; ; tries++) {
    const admin = (await openHere(path, given)) ?? (await connectOwner(path))
    if (admin !== undefined) return admin
    if (tries === tries_max) throw await heldFault(path)
    await io.sleep_ms(pause_ms)
  }
}

/** Undefined if another process holds the file. */
async function openHere(path: string, given: Given): Promise<Admin | undefined> {
  try {
    const engine = await openEngine(path, {
      background: false,
      ...engineOptionsFrom(given.env),
    })
    return localAdmin(engine)
  } catch (error) {
    if (!isFault(error)) throw error
    if (error.code === 'file_held') return undefined
    if (isNodeFileFault(error)) return stoppedNode(path, given.env.CONVEYOR_KEY)
    throw unreachableError(error.message, error.code)
  }
}

export function engineOptionsFrom(env: Env): Pick<EngineOptions, 'secret_key' | 'runtime_dir'> {
  const { CONVEYOR_KEY: secret_key, CONVEYOR_RUNTIME_DIR: runtime_dir } = env
  return { ...defined({ secret_key, runtime_dir }) }
}

/** Undefined if the holder has no socket or has just ended. */
export async function connectOwner(path: string): Promise<Admin | undefined> {
  const owner = await readOwner(path)
  if (owner === undefined || owner.socket === null) return undefined
  const { socket, file_id } = owner
  const admin = adminClient({ socket, file_id, version })
  try {
    await admin.call('about', {})
    return admin
  } catch (error) {
    await admin.close()
    if (isFault(error) && error.code === 'file_held') throw error
    return undefined
  }
}

const default_help =
  'stop it, or have it open the file with `admin: true`, as `npx conveyor serve` does'

/** The fault for a file whose holder does not answer. */
export async function heldFault(path: string, helps = default_help): Promise<Error> {
  const owner = await readOwner(path)
  const who = owner === undefined ? 'another process' : `process ${owner.pid}`
  return unreachableError(`${path} is held by ${who}: ${helps}`, 'file_held')
}
