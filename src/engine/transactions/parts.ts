/** What most parts of an engine share; `engine.ts` makes one. */
import type { Chance, Clock } from '../../core/clock.ts'
import type { Counters } from '../../core/counters.ts'
import type { Emit } from '../../core/events.ts'
import type { Limits } from '../../core/limits.ts'
import type { Store } from '../../store/store.ts'
import type { Admission } from './admission.ts'
import type { Catalog } from './catalog.ts'
import type { EngineContext } from './transaction.ts'
import type { TransactionQueue } from './transaction-queue.ts'

export interface Parts {
  readonly store: Store
  readonly clock: Clock
  readonly chance: Chance
  readonly limits: Limits
  readonly emit: Emit
  readonly counters: Counters
  readonly catalog: Catalog
  readonly engine: EngineContext
  readonly admission: Admission
  readonly transactions: TransactionQueue
  /** Background work may be due earlier than before. */
  wake(): void
  /** For an exception that is not a Fault. */
  onBug(error: unknown): void
}
