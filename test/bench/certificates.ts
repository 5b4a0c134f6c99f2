/**
 * The certificates of a run: a CA, a server of this machine, and one client whose name the engine
 * binds to the user of the workload. They are removed with the folder of the run.
 */
import { addClient, initFolder } from '../../src/certs/folder.ts'
import { clientUri } from '../../src/certs/issue.ts'
import { systemChance, systemClock } from '../../src/core/clock.ts'

export const caller_name = 'bench'

/** The client's name in a binding. */
export const caller_binding = `uri:${clientUri(caller_name)}`

/** Creates the folder if it is missing. */
export async function makeCertificates(folder: string): Promise<void> {
  const making = { now_ms: systemClock.now_ms(), chance: systemChance, days: 1 }
  await initFolder(folder, [], making)
  await addClient(folder, caller_name, making)
}
