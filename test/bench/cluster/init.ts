/** Makes the schema of a cluster in an empty database, as `conveyor cluster init` does. */

import { initCluster } from '../../../src/cluster/database/schema.ts'
import { operatorConnection } from '../../../src/cluster/operator/commands.ts'
import { systemChance } from '../../../src/core/clock.ts'

export async function initForBench(url: string): Promise<void> {
  const connection = operatorConnection(url, 'init')
  const [id, log_id] = [systemChance.bytes(16), systemChance.bytes(8)]
  await initCluster(connection, { id, log_id, partition: 0 })
  await connection.close()
}
