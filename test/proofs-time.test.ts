/** The quick forms of the proofs of time: long runs, at random and by the clock. */
import { testQuickly } from './support/quick-proofs.ts'

await testQuickly('time')
