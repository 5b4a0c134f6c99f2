/** The script of the scan thread. The bundle replaces this module: its script is text. */
import { type ThreadStart, threadStart } from '../../core/thread-start.ts'

export function scanScript(): ThreadStart {
  return threadStart(import.meta.url, 'scan-worker')
}
