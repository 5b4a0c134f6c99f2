/** The valid secrets of a user, without the stand-ins that are compared in place of missing ones. */
import type { Engine } from '../../src/engine/api/engine-api.ts'
import { servedEngine } from '../../src/engine/served-engine.ts'

export function secretsOf(engine: Engine, user: string): string[] {
  const { users } = servedEngine(engine)
  const stand_ins = users.secrets('nobody')
  return users.secrets(user).filter((secret) => !stand_ins.includes(secret))
}
