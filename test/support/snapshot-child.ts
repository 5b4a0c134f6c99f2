/**
 * A process that writes a snapshot or loads one, for a test that kills it: prints a line at each
 * step. `ROLE URL PARTITION PATH`.
 */
import { once } from 'node:events'
import { connectionTo } from './database-cluster.ts'
import { entriesOf, load, newDraft, openTree, write } from './snapshot-setup.ts'

const [role, url = '', partition = '', path = ''] = process.argv.slice(2)
const connection = connectionTo(url)
/** Waits until the line is out, so that a kill at it comes before the next step or in it. */
const step = async (): Promise<void> => {
  if (!process.stdout.write('step\n')) await once(process.stdout, 'drain')
}

if (role === 'write') {
  await write(connection, newDraft(Number(partition), 9), entriesOf(2_000, 'killed'), step)
} else {
  const tree = await openTree(path)
  await load(tree, connection, Number(partition), { onBegin: step, onLoaded: () => void step() })
  await tree.close()
}
await step()
await connection.close()
