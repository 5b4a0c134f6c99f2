/**
 * How a verb reaches the data file. Where nobody holds it, this process opens it (without timers:
 * it will be gone in a moment); where another process does, that one is asked over its admin
 * socket.
 *
 * The owner may come or go between two looks, and a short verb in another shell holds the file for
 * a moment only, so both ways are tried again for about a second before giving up.
 */
import { existsSync } from 'node:fs'
import { isFault } from '../core/faults.ts'
import { version } from '../core/version.ts'
import type { EngineOptions } from '../engine/api.ts'
import { openEngine, readOwner } from '../open.ts'
import { adminClient } from '../server/admin/client.ts'
import { type Admin, localAdmin } from '../server/admin/verbs.ts'
import { unreachable } from './exit-codes.ts'
import type { Env, Io } from './io.ts'
import { dbOf, type Given } from './verb.ts'

/**
 * Runs `use` with whoever answers for the file, and lets go of it after. Rejects with exit 3 where
 * the file is missing (and `creates` is not set), cannot be opened, or is held by a process without
 * a socket, which is named by its pid.
 */
export async function withAdmin<T>(
  given: Given,
  io: Io,
  use: (admin: Admin) => Promise<T>,
  options: { readonly creates?: true } = {},
): Promise<T> {
  const admin = await connectAdmin(given, io, options.creates === true)
  try {
    return await use(admin)
  } finally {
    await admin.close()
  }
}

const tries_max = 12
const pause_ms = 100

async function connectAdmin(given: Given, io: Io, creates: boolean): Promise<Admin> {
  const path = dbOf(given)
  if (!creates && !existsSync(path)) {
    throw unreachable(
      `there is no file ${path}: name it with --db, or start with \`conveyor serve\``,
    )
  }
  for (let tries = 1; ; tries++) {
    const admin = (await openHere(path, given)) ?? (await connectOwner(path))
    if (admin !== undefined) return admin
    if (tries === tries_max) throw await heldFault(path)
    await io.sleep_ms(pause_ms)
  }
}

/** Undefined where another process holds the file. */
async function openHere(path: string, given: Given): Promise<Admin | undefined> {
  try {
    const engine = await openEngine(path, {
      timers: false,
      ...engineOptionsFrom(given.env),
    })
    return localAdmin(engine)
  } catch (error) {
    if (!isFault(error)) throw error
    if (error.code === 'file_held') return undefined
    throw unreachable(error.message, error.code)
  }
}

/** What an engine is opened with that has no flag. */
export function engineOptionsFrom(env: Env): Pick<EngineOptions, 'secret_key' | 'runtime_dir'> {
  const { CONVEYOR_KEY: secret_key, CONVEYOR_RUNTIME_DIR: runtime_dir } = env
  return {
    ...(secret_key === undefined ? {} : { secret_key }),
    ...(runtime_dir === undefined ? {} : { runtime_dir }),
  }
}

/** Undefined where the owner has no socket, or has just gone. */
async function connectOwner(path: string): Promise<Admin | undefined> {
  const owner = await readOwner(path)
  if (owner === undefined || owner.socket === null) return undefined
  const admin = adminClient({
    socket: owner.socket,
    file_id: owner.file_id,
    version,
  })
  try {
    await admin.call('about', {})
    return admin
  } catch (error) {
    await admin.close()
    if (isFault(error) && error.code === 'file_held') throw error
    return undefined
  }
}

/** The refusal for a file held by a process that cannot be asked. */
export async function heldFault(path: string): Promise<Error> {
  const owner = await readOwner(path)
  const who = owner === undefined ? 'another process' : `process ${owner.pid}`
  return unreachable(`${path} is held by ${who}: stop it, or wait for it to end`, 'file_held')
}
