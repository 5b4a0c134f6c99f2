/** Runs races in an engine of edited sources: `race-child N SEED`. Prints what was wrong, as JSON. */
import { openRaces } from './race.ts'

const [n = '1', seed = '0'] = process.argv.slice(2)
const races = await openRaces()
const wrong: string[] = []
for (let at = 0; at < Number(n); at++) {
  const failure = await races.race(Number(seed) + at)
  if (failure !== undefined) wrong.push(failure)
}
await races.close()
console.log(JSON.stringify(wrong))
