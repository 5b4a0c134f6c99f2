/**
 * Thirty virtual days of timers, callbacks and schedules under a clock that is set forward and back
 * by a day: no timer is early, none fires twice, none is forgotten, each due time of a schedule
 * makes one task, and ids ascend.
 */

import { runMonth } from '../support/model/month.ts'
import { time_controls } from '../support/model/mutants.ts'
import { type Proof, tryEach } from './proof.ts'

export const proof: Proof = {
  name: 'time',
  says: 'in thirty days under a clock that jumps, what is due is done once and not early',
  unit: 'months',
  quick: 1,
  long: 200,
  run: (given) => tryEach(given, async (seed) => ({ faults: await runMonth(seed) })),
  controls: time_controls,
}
