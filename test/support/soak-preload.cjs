/**
 * Loaded into the server of the soak before it starts. It answers a message of the parent with what
 * Node holds in memory without garbage: collected now, or as it was after the last collection of
 * the whole heap that came by itself. For the control it makes the server worse, by what CONVEYOR_SOAK_WORSE
 * says: bytes that each request leaves in memory, a descriptor left by each of so many requests, and
 * microseconds that each request takes longer than the one before it.
 */
'use strict'
const { openSync } = require('node:fs')
const http = require('node:http')
const { constants, PerformanceObserver } = require('node:perf_hooks')
const { isMainThread } = require('node:worker_threads')

if (isMainThread && process.channel) {
  let after_collection
  new PerformanceObserver((list) => {
    const is_whole = ({ detail }) => detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR
    if (list.getEntries().some(is_whole)) after_collection = process.memoryUsage()
  }).observe({ entryTypes: ['gc'] })
  process.on('message', (is_collected) => {
    if (is_collected) {
      globalThis.gc?.()
      after_collection = undefined
    }
    process.send(after_collection ?? process.memoryUsage())
  })
  process.channel.unref()
}

const worse = JSON.parse(process.env.CONVEYOR_SOAK_WORSE ?? 'null')
if (isMainThread && worse !== null) {
  const left = []
  let requests = 0
  const emit = http.Server.prototype.emit
  http.Server.prototype.emit = function (event, ...args) {
    if (event === 'request') {
      requests++
      left.push(Buffer.alloc(worse.bytes))
      if (requests % worse.descriptor_every === 0) openSync('/dev/null')
      const until_ms =
        performance.now() + Math.min(worse.ms_max, (worse.us_more * requests) / 1_000)
      while (performance.now() < until_ms);
    }
    return emit.call(this, event, ...args)
  }
}
