/**
 * How fast the machine itself is meanwhile, as a thread of its own: every 20 ms it computes for about
 * a millisecond, and writes and syncs a page beside the data file. Posts how long after its time that
 * is done.
 */
'use strict'
const { closeSync, fdatasyncSync, openSync, rmSync, writeSync } = require('node:fs')
const { createHash } = require('node:crypto')
const { parentPort, workerData } = require('node:worker_threads')

const every_ms = 20
const text = Buffer.alloc(500_000, 1)
const page = Buffer.alloc(4_096, 1)
const file = openSync(workerData, 'w')
let due_ms = performance.now() + every_ms
let timer = setTimeout(beat, every_ms)

function beat() {
  createHash('sha1').update(text).digest()
  writeSync(file, page, 0, page.length, 0)
  fdatasyncSync(file)
  const now_ms = performance.now()
  parentPort.postMessage(now_ms - due_ms)
  due_ms = now_ms + every_ms
  timer = setTimeout(beat, every_ms)
}

parentPort.once('message', () => {
  clearTimeout(timer)
  closeSync(file)
  rmSync(workerData)
})
