/**
 * Opens standard error as a stream for the lines of the log, which never blocks the event loop: a
 * reader that does not read must stop nothing.
 *
 * A pipe or a socket is written to without blocking, through a file description of its own where
 * the system gives one, so that others with the same pipe stay as they are. A write to a file or a
 * terminal takes a thread of the pool; where one of these hangs, the process cannot end by itself.
 */
import { constants, createWriteStream, fstatSync, openSync } from 'node:fs'
import { Socket } from 'node:net'
import type { Writable } from 'node:stream'

export interface LineStream {
  readonly stream: Writable
  /** Whether a write that hangs keeps the process from ending. */
  readonly holds_thread: boolean
}

/** Throws the system's error where the place of the lines is gone. */
export function openLineStream(fd: number): LineStream {
  const found = fstatSync(fd)
  if (!found.isFIFO() && !found.isSocket()) {
    return { stream: createWriteStream('', { fd, autoClose: false }), holds_thread: true }
  }
  const own_fd = found.isFIFO() ? openAgain(fd) : fd
  const socket = new Socket({ fd: own_fd, readable: false, writable: true })
  // Unread lines keep no process alive.
  socket.unref()
  return { stream: socket, holds_thread: false }
}

function openAgain(fd: number): number {
  try {
    return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK)
  } catch (error) {
    // No reader is left, and a write would say so too.
    if ((error as NodeJS.ErrnoException).code === 'ENXIO') throw error
    return fd
  }
}
