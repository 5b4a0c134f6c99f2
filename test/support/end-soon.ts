/**
 * Ends the process of a test file that imports it soon behind the last test: a server that a failed
 * test left open would keep it until the time limit of the file. What a file without a failed test
 * leaves open makes it fail.
 */
import { after } from 'node:test'

const left_ms_max = 10_000

after(() => void setTimeout(() => process.exit(1), left_ms_max).unref())
