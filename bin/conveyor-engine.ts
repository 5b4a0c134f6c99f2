#!/usr/bin/env node
/**
 * The program `conveyor-engine`, as `npx conveyor-engine` starts it from nothing: without a verb the
 * demo with its page, else what `conveyor` does with the same words.
 */
if (process.argv.length === 2) process.argv.push('serve', '--demo')
await import('./conveyor.ts')

export {}
