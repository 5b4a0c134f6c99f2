/**
 * Loaded into each process of a test run (bin/test.ts): appends every event of every engine there to
 * a file of that process, for the search after the run. Works through the channel that an engine
 * tells its events on, so no test has to know of it.
 */
'use strict'
const { appendFileSync } = require('node:fs')
const { subscribe } = require('node:diagnostics_channel')
const { join } = require('node:path')
const { isMainThread, threadId } = require('node:worker_threads')

const folder = process.env.CONVEYOR_KEPT_LINES
const name = isMainThread ? `${process.pid}.jsonl` : `${process.pid}-${threadId}.jsonl`

if (folder !== undefined) {
  subscribe('conveyor:event', (fields) => {
    try {
      appendFileSync(join(folder, name), `${JSON.stringify(fields)}\n`)
    } catch {
      // A test has limited the size of files.
    }
  })
}
