/** View overview. */
export function Overview() {
  return <h1>overview</h1>
}
