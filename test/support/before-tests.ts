/**
 * Work that is done before the file has its first test. From then on node:test follows each promise
 * that is made, which takes as long as the engine itself where there are millions of them.
 */

/** Does the work now. What it returns is the body of its test: it throws what the work threw. */
export async function doneBefore(work: () => Promise<unknown>): Promise<() => void> {
  try {
    await work()
    return () => {}
  } catch (error) {
    return () => {
      throw error
    }
  }
}
