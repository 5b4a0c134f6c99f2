/** Makes the schema of a cluster in an empty database, as `conveyor cluster init` does. */
import { newConnection } from '../../../src/cluster/connection.ts'
import { initCluster } from '../../../src/cluster/schema.ts'
import { targetOf } from '../../../src/cluster/target.ts'
import { steadyClock, systemChance } from '../../../src/core/clock.ts'

const answer_ms_max = 10_000

export async function initForBench(url: string): Promise<void> {
  const target = targetOf(url, 'init')
  const purpose = 'init'
  const connection = newConnection({ target, purpose, clock: steadyClock, answer_ms_max })
  const [id, log_id] = [systemChance.bytes(16), systemChance.bytes(8)]
  await initCluster(connection, { id, log_id, partition: 0 })
  await connection.close()
}
