/**
 * `conveyor-engine/testing`: what tests of programs that embed the engine need. No part of it runs
 * in production.
 */
export { type TestClock, testClock } from './core/test-clock.ts'
