/** The quick forms of the proofs of callers: what callers send, hold or repeat. */
import { testQuickly } from './support/quick-proofs.ts'

await testQuickly('callers')
