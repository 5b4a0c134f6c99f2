/** Whether an engine takes ops, as its servers ask for it. */
import { servedEngine } from '../../src/engine/served-engine.ts'
import type { Engine } from '../../src/index.ts'

export const healthOf = (engine: Engine) => servedEngine(engine).health()
