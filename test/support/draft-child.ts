/** Takes so many steps of drafts, says so, takes the next one, says so: `draft-child PATH COUNT`. */
import { writeSync } from 'node:fs'
import { openEngine } from '../../src/open.ts'
import { beginDrafts, draft_steps } from './draft-steps.ts'

const [path = '', count = '0'] = process.argv.slice(2)
const engine = await openEngine(path)
await beginDrafts(engine)
for (const [, step] of draft_steps.slice(0, Number(count))) await step(engine)
writeSync(1, 'begin\n')
await draft_steps[Number(count)]?.[1](engine)
writeSync(1, 'done\n')
setInterval(() => {}, 1_000)
