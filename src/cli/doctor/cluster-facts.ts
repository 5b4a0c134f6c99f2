/** Collects what `doctor` judges of a cluster, by its database. Nothing is changed. */
import { type ClusterStatus, clusterStatus } from '../../cluster/operator/cluster-status.ts'
import { operatorConnection } from '../../cluster/operator/commands.ts'
import { steadyClock } from '../../core/clock.ts'
import { isFault } from '../../core/faults.ts'
import type { Io } from '../io.ts'

export interface ClusterFacts {
  readonly status?: ClusterStatus
  readonly fault?: string
  readonly answer_ms: number
  /** By how much the clock of the database is ahead of this machine's. */
  readonly ahead_ms: number
}

export async function clusterFacts(url: string, partition: number, io: Io): Promise<ClusterFacts> {
  const began_ms = steadyClock.now_ms()
  try {
    const connection = operatorConnection(url, 'doctor')
    try {
      await connection.connect()
      const answer_ms = Math.round(steadyClock.now_ms() - began_ms)
      const status = await clusterStatus(connection, partition, steadyClock)
      const ahead_ms = Date.parse(status.database.now) - io.clock.now_ms()
      return { status, answer_ms, ahead_ms }
    } finally {
      await connection.close()
    }
  } catch (error) {
    if (!isFault(error)) throw error
    return { fault: error.message, answer_ms: 0, ahead_ms: 0 }
  }
}
