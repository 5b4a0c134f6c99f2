/**
 * A data file for the callers of sequences: its processes, a user who signs, a certificate that acts as
 * that user, and addresses that need no signature. All of it is in one folder.
 */
import { join } from 'node:path'
import { addClient, initFolder } from '../../src/certs/folder.ts'
import { systemChance, systemClock } from '../../src/core/clock.ts'
import type { Engine } from '../../src/engine/api/engine-api.ts'
import { servedEngine } from '../../src/engine/served-engine.ts'
import { openEngine } from '../../src/open.ts'
import { ledger, orders, paced, plain, wait_node, workload_processes } from './workload.ts'
import type { Target } from './workload-callers.ts'

export interface WorkloadFile {
  readonly path: string
  /** Of the certificate that acts as the user. */
  readonly certificate_name: string
  readonly access: Omit<Target, 'url' | 'address' | 'sync_url'>
}

/** The data file in its folder. */
export const pathIn = (folder: string): string => join(folder, 'tasks.lmdb')

export async function makeWorkloadFile(folder: string): Promise<WorkloadFile> {
  const path = pathIn(folder)
  const tls = join(folder, 'tls')
  const making = { now_ms: systemClock.now_ms(), chance: systemChance }
  await initFolder(tls, [], making)
  const { names } = await addClient(tls, 'load', making)
  const [certificate_name = ''] = names
  const engine = await openEngine(path)
  const access = await setUpWorkload(engine, certificate_name)
  await engine.close()
  return { path, certificate_name, access: { ...access, folder: tls } }
}

/** Gives an engine the processes of the sequences, and a user whose certificate has this name. */
export async function setUpWorkload(
  engine: Engine,
  name: string,
): Promise<Omit<WorkloadFile['access'], 'folder'>> {
  for (const definition of workload_processes) await engine.processes.put(definition)
  const { id: user, secret } = await engine.users.add()
  for (const conv_id of [orders, ledger, paced, plain]) await engine.processes.share(conv_id, user)
  await engine.users.bind(user, name)
  const { address } = await engine.processes.webhook(ledger, { address: 'new' })
  const callback = servedEngine(engine).addresses.callbackPath(orders, wait_node)
  return { user, secret, webhook: String(address), callback }
}
