/** View sign-in. */
export function SignInView() {
  return <h1>sign-in</h1>
}
