/** View tasks. */
export function TasksView() {
  return <h1>tasks</h1>
}
