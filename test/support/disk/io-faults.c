/*
 * Makes one system call of a process on its data files fail, or all from one on. Loaded before the
 * C library (LD_PRELOAD), built by test/support/disk/harness.ts.
 *
 * IO_BASE is the path of the data file: files whose path begins with it count, and its folder. A
 * point is a call, the end of a path and a number: the n-th such call of the process, in whatever
 * thread. IO_LOG gets a line for each call that counts, or if IO_FAULT names a point, one when it
 * is reached, and for each call that fails: `fault NANOSECONDS`, of the time of day.
 *
 * The processes that it starts have points of their own: calls of the one that first opens a data
 * file begin with `probe.`, those of the checkpoint process with `child.`. A checkpoint process that is
 * replaced fails no second time, unless it is to fail for ever.
 *
 * IO_FAULT is `CALL END N ERROR HOW`, with ERROR an errno or `short`, and HOW `once` or `ever`:
 * every later call of the kind fails on any of the files. EINTR and short for ever are those of a
 * call and not of its repetition, which would never end.
 *
 * IO_HOLD is the path of two files that a test makes and removes: while `IO_HOLD-log` is there, each
 * write and sync of a commit log waits, and while `IO_HOLD-data` is, each of the others. With a
 * number in it each takes so many milliseconds, of the others each sync. IO_LOG gets `held NANOSECONDS log` or `data` for
 * each, and no points.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define real(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define max_points 512
#define short_unit 512

enum kind { reads, writes, other };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *base, *folder, *fault_call, *fault_end, *hold;
static long fault_n;
static const char *prefix = "";
static int fault_errno, is_short, is_ever, is_reached, log_fd = -1;
static enum kind fault_kind;
static struct { char name[64]; long n; } points[max_points];
static __thread int was_interrupted;

static int is_of(const char *call, const char *calls) {
  const char *found = strstr(calls, call);
  size_t length = strlen(call);
  return found && (found == calls || found[-1] == ' ') && (found[length] == ' ' || !found[length]);
}

static enum kind kind_of(const char *call) {
  if (is_of(call, "open read pread preadv mmap")) return reads;
  return is_of(call, "lseek close statfs fstatfs stat") ? other : writes;
}

/* The prefix of the calls of this process; NULL: they do not count. */
static const char *role(void) {
  if (getenv("IO_FIRST") == NULL) return setenv("IO_FIRST", "1", 1), "";
  char line[4096];
  int fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  ssize_t length = syscall(SYS_read, fd, line, sizeof line);
  syscall(SYS_close, fd);
  if (length <= 0) return NULL;
  if (memmem(line, length, "checkpoint-child", 16)) return "child.";
  return memmem(line, length, "overlappingSync", 15) ? "probe." : NULL;
}

/* Whether a process before this one has met the fault. */
static int was_reached(const char *log) {
  char text[65536];
  int fd = syscall(SYS_openat, AT_FDCWD, log, O_RDONLY | O_CLOEXEC);
  ssize_t length = fd < 0 ? 0 : syscall(SYS_read, fd, text, sizeof text);
  if (fd >= 0) syscall(SYS_close, fd);
  return length > 0 && memmem(text, length, "fault ", 6) != NULL;
}

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("IO_BASE"), *fault = getenv("IO_FAULT"), *log = getenv("IO_LOG");
  if (path == NULL || log == NULL) return;
  if ((prefix = role()) == NULL) return;
  char *copy = strdup(path);
  *strrchr(copy, '/') = 0;
  folder = copy;
  log_fd = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fault != NULL) {
    static char call[32], end[32], error[16], how[16];
    if (sscanf(fault, "%31s %31s %ld %15s %15s", call, end, &fault_n, error, how) != 5) abort();
    fault_call = call;
    fault_end = end;
    is_short = strcmp(error, "short") == 0;
    fault_errno = atoi(error);
    is_ever = strcmp(how, "ever") == 0;
    if (*prefix && was_reached(log)) {
      char *dot = strchr(call, '.');
      if (is_ever) {
        is_reached = 1;
        fault_kind = kind_of(dot ? dot + 1 : call);
      } else fault_call = "none";
    }
  }
  hold = getenv("IO_HOLD");
  base = path;
}

static void say(const char *text) {
  syscall(SYS_write, log_fd, text, strlen(text));
}

static void say_time(const char *what, const char *of) {
  char line[64];
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  snprintf(line, sizeof line, "%s %ld%09ld%s\n", what, now.tv_sec, now.tv_nsec, of);
  say(line);
}

/* Until the file is gone, or for as long as it says. */
static void wait_while_held(const char *call, const char *end) {
  int is_log = strncmp(end, "-log-", 5) == 0, was_held = 0;
  char path[PATH_MAX], text[16];
  snprintf(path, sizeof path, "%s%s", hold, is_log ? "-log" : "-data");
  for (;;) {
    int fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    ssize_t length = syscall(SYS_read, fd, text, sizeof text - 1);
    syscall(SYS_close, fd);
    text[length < 0 ? 0 : length] = 0;
    long ms = atol(text);
    if (ms > 0 && !is_log && !strstr(call, "sync")) return;
    if (!was_held) say_time("held", is_log ? " log" : " data");
    was_held = 1;
    struct timespec pause = { ms / 1000, (ms > 0 ? ms % 1000 : 2) * 1000000 };
    nanosleep(&pause, NULL);
    if (ms > 0) return;
  }
}

/* What a path is called in a point; NULL for all that does not count. */
static const char *end_of(const char *path) {
  if (base == NULL || path == NULL) return NULL;
  if (strcmp(path, folder) == 0) return "folder";
  size_t length = strlen(base);
  if (strncmp(path, base, length) != 0) return NULL;
  const char *end = path + length;
  return *end == 0 ? "file" : *end == '-' || *end == '.' ? end : NULL;
}

static const char *end_of_fd(int fd, char *path) {
  if (base == NULL || fd < 3) return NULL;
  char link[32];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1);
  if (length <= 0) return NULL;
  path[length] = 0;
  char *gone = strstr(path, " (deleted)");
  if (gone != NULL) *gone = 0;
  return end_of(path);
}

/* 0: go on; -1: fail with errno; 1: take a part. */
static int at(const char *call, const char *end, enum kind kind) {
  if (end == NULL) return 0;
  if (hold != NULL) {
    if (kind == writes) wait_while_held(call, end);
    return 0;
  }
  char name[64], line[128];
  char of[32];
  snprintf(of, sizeof of, "%s%s", prefix, call);
  snprintf(name, sizeof name, "%s %s", of, end);
  pthread_mutex_lock(&lock);
  int place = 0;
  while (place < max_points - 1 && points[place].name[0] && strcmp(points[place].name, name)) place++;
  strcpy(points[place].name, name);
  long n = ++points[place].n;
  int is_it = fault_call && !is_reached && n == fault_n && !strcmp(of, fault_call) && !strcmp(end, fault_end);
  if (is_it) {
    is_reached = 1;
    fault_kind = kind;
  } else if (fault_call == NULL) {
    snprintf(line, sizeof line, "%s %ld %d %s\n", name, n, kind, getpid() == (pid_t)syscall(SYS_gettid) ? "main" : "other");
    say(line);
  }
  int is_later = is_reached && is_ever && kind == fault_kind;
  pthread_mutex_unlock(&lock);
  if (!is_it && !is_later) return 0;
  if (is_short) {
    if (!strstr(call, "write")) return 0;
    say_time("fault", "");
    return 1;
  }
  if (fault_errno == EINTR) {
    was_interrupted = !was_interrupted;
    if (!was_interrupted) return 0;
  }
  /* A full disk still syncs what it has taken, and removes names. */
  if (fault_errno == ENOSPC && !is_it && (strstr(call, "sync") || !strcmp(call, "unlink"))) return 0;
  say_time("fault", "");
  errno = fault_errno;
  return -1;
}

static size_t part(size_t bytes) {
  return bytes < 2 * short_unit ? (bytes + 1) / 2 : bytes / 2 / short_unit * short_unit;
}

#define on_fd(call, kind) char path[PATH_MAX]; int found = at(call, end_of_fd(fd, path), kind); if (found < 0) return -1

static int opened(const char *path, int flags, mode_t mode) {
  const char *end = end_of(path);
  int is_write = (flags & O_CREAT) != 0;
  if (at(is_write ? "create" : "open", end, is_write ? writes : reads) < 0) return -1;
  return syscall(SYS_openat, AT_FDCWD, path, flags | O_LARGEFILE, mode);
}

#define mode_of(flags) mode_t mode = 0; if (flags & (O_CREAT | O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); }
int open(const char *path, int flags, ...) { mode_of(flags) return opened(path, flags, mode); }
int open64(const char *path, int flags, ...) { mode_of(flags) return opened(path, flags, mode); }

ssize_t read(int fd, void *to, size_t bytes) { on_fd("read", reads); return real(read)(fd, to, bytes); }
ssize_t pread64(int fd, void *to, size_t bytes, off64_t from) { on_fd("pread", reads); return real(pread64)(fd, to, bytes, from); }
ssize_t preadv64(int fd, const struct iovec *to, int count, off64_t from) { on_fd("preadv", reads); return real(preadv64)(fd, to, count, from); }

ssize_t write(int fd, const void *from, size_t bytes) {
  on_fd("write", writes);
  return real(write)(fd, from, found ? part(bytes) : bytes);
}
ssize_t pwrite64(int fd, const void *from, size_t bytes, off64_t to) {
  on_fd("pwrite", writes);
  return real(pwrite64)(fd, from, found ? part(bytes) : bytes, to);
}
/* In part: the first of the buffers, in part if it is the only one. */
static int first_of(const struct iovec *from, int count, struct iovec *first) {
  *first = *from;
  if (count == 1) first->iov_len = part(first->iov_len);
  return 1;
}
ssize_t writev(int fd, const struct iovec *from, int count) {
  on_fd("writev", writes);
  struct iovec first;
  if (found && first_of(from, count, &first)) return real(writev)(fd, &first, 1);
  return real(writev)(fd, from, count);
}
ssize_t pwritev64(int fd, const struct iovec *from, int count, off64_t to) {
  on_fd("pwritev", writes);
  struct iovec first;
  if (found && first_of(from, count, &first)) return real(pwritev64)(fd, &first, 1, to);
  return real(pwritev64)(fd, from, count, to);
}

int fsync(int fd) { on_fd("fsync", writes); return real(fsync)(fd); }
int fdatasync(int fd) { on_fd("fdatasync", writes); return real(fdatasync)(fd); }
int ftruncate64(int fd, off64_t bytes) { on_fd("ftruncate", writes); return real(ftruncate64)(fd, bytes); }
off64_t lseek64(int fd, off64_t to, int whence) { on_fd("lseek", other); return real(lseek64)(fd, to, whence); }
int close(int fd) { char path[PATH_MAX]; int found = at("close", end_of_fd(fd, path), other); int error = errno; int closed = real(close)(fd); if (found < 0) { errno = error; return -1; } return closed; }

void *mmap64(void *to, size_t bytes, int allowed, int flags, int fd, off64_t from) {
  char path[PATH_MAX];
  if (fd >= 0 && at("mmap", end_of_fd(fd, path), reads) < 0) return MAP_FAILED;
  return real(mmap64)(to, bytes, allowed, flags, fd, from);
}
int msync(void *from, size_t bytes, int flags) { return real(msync)(from, bytes, flags); }

int rename(const char *from, const char *to) { if (at("rename", end_of(from), writes) < 0) return -1; return real(rename)(from, to); }
int unlink(const char *path) { if (at("unlink", end_of(path), writes) < 0) return -1; return real(unlink)(path); }
int statfs64(const char *path, struct statfs64 *to) { if (at("statfs", end_of(path), other) < 0) return -1; return real(statfs64)(path, to); }
int fstatfs64(int fd, struct statfs64 *to) { on_fd("fstatfs", other); return real(fstatfs64)(fd, to); }

/* libuv asks for the state of files by number. */
long syscall(long number, ...) {
  long given[6];
  va_list rest;
  va_start(rest, number);
  for (int n = 0; n < 6; n++) given[n] = va_arg(rest, long);
  va_end(rest);
  if (number == SYS_statx && base != NULL) {
    const char *path = (const char *)given[1];
    char of_fd[PATH_MAX];
    const char *end = path != NULL && *path ? end_of(path) : end_of_fd((int)given[0], of_fd);
    if (at("stat", end, other) < 0) return -1;
  }
  static long (*next)(long, ...);
  if (next == NULL) next = dlsym(RTLD_NEXT, "syscall");
  return next(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}
