/**
 * Whether this is a short run of the tests, and how many cases one tries at random. `npm run
 * test:slow` tries all.
 */
export const is_slow = process.env.CONVEYOR_SLOW === '1'

/** The `numRuns` of fast-check: all, or a third of them in a short run. */
export const runs = (all: number): number => (is_slow ? all : Math.ceil(all / 3))
