/** The quick forms of the proofs of crashes: what is killed, cut off, damaged or ended keeps what it has said. */
import { testQuickly } from './support/quick-proofs.ts'

await testQuickly('crashes')
