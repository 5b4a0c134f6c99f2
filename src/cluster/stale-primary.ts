/**
 * The place of a node in the log of a database that has several hosts. A primary that a failover
 * has left behind says for a moment, until it learns of it, that the log ends before what this node
 * has; so a database counts as set back only once that has been so for a while. Until then it is as
 * one that does not answer.
 */
import type { Clock } from '../core/clock.ts'
import { fault, isFault } from '../core/faults.ts'
import { type PlaceInLog, placeInLog } from './node-file.ts'
import type { NodeSettings } from './node-settings.ts'

/** What Patroni takes to make a primary that has stood still a standby, and more. */
const left_behind_ms_max = 20_000

export function newPlaceFinder({ clock, target }: NodeSettings): PlaceInLog {
  const isTold = newPatience(clock)
  return async (connection, partition, last, path) => {
    try {
      return await placeInLog(connection, partition, last, path)
    } catch (error) {
      if (!isFault(error) || error.code !== 'not_possible') throw error
      if (target.hosts.length === 1 || isTold()) throw error
      throw fault('overloaded', error.message, { cause: error })
    }
  }
}

/** Answers true once it has been asked again and again for so long. */
function newPatience(clock: Clock): () => boolean {
  let first_ms = Number.NEGATIVE_INFINITY
  let last_ms = Number.NEGATIVE_INFINITY
  return () => {
    const now_ms = clock.now_ms()
    if (now_ms - last_ms > left_behind_ms_max) first_ms = now_ms
    last_ms = now_ms
    return now_ms - first_ms >= left_behind_ms_max
  }
}
