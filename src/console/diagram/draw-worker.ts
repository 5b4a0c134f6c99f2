/**
 * The script of a thread that draws: one job, one answer, and the thread ends. A rejection ends it
 * too, and drawings.ts then hears of it.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { type DrawJob, draw } from './draw.ts'

parentPort?.postMessage(await draw(workerData as DrawJob))
