/*
 * Loads the native file of the lock as Node would, and calls its tryLock: enough of Node-API and
 * libuv for that one function. Built with musl-gcc, it shows that the file for glibc works there.
 *
 *     musl-gcc -rdynamic -o host musl-host.c && ./host lock.node data
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef void *(*callback)(void *env, void *info);

static callback try_lock;
static const char *thrown;
static int64_t numbers[3];

int napi_create_function(void *env, const char *name, size_t length, callback fn, void *data, void **result) {
  if (name != NULL && strncmp(name, "tryLock", 7) == 0) try_lock = fn;
  *result = (void *) 1;
  return 0;
}

int napi_get_cb_info(void *env, void *info, size_t *count, void **args, void **self, void **data) {
  for (size_t i = 0; i < *count; i++) args[i] = (void *) (i + 1);
  return 0;
}

int napi_get_value_int64(void *env, void *value, int64_t *result) {
  *result = numbers[(size_t) value - 1];
  return 0;
}

int napi_get_value_bool(void *env, void *value, _Bool *result) {
  *result = 1;
  return 0;
}

int napi_set_named_property(void *env, void *object, const char *name, void *value) { return 0; }

int napi_throw_error(void *env, const char *code, const char *message) {
  thrown = code;
  return 0;
}

int uv_get_osfhandle(int fd) { return fd; }
int uv_translate_sys_error(int error) { return -error; }
const char *uv_strerror(int error) { return strerror(-error); }
const char *uv_err_name(int error) {
  return error == -EAGAIN || error == -EACCES ? "EAGAIN" : strerror(-error);
}

/* What the file names and this program does not call. */
#define STUB(name) void name(void) { abort(); }
STUB(napi_create_arraybuffer) STUB(napi_get_uv_event_loop) STUB(napi_create_reference)
STUB(napi_add_async_cleanup_hook) STUB(napi_get_value_string_utf8) STUB(uv_buf_init)
STUB(napi_get_null) STUB(napi_get_arraybuffer_info) STUB(napi_create_array_with_length)
STUB(napi_create_string_utf8) STUB(napi_set_element) STUB(napi_open_handle_scope)
STUB(napi_get_reference_value) STUB(napi_delete_reference) STUB(napi_create_error)
STUB(napi_make_callback) STUB(napi_get_and_clear_last_exception) STUB(napi_fatal_exception)
STUB(napi_close_handle_scope) STUB(napi_remove_async_cleanup_hook) STUB(uv_async_init)
STUB(uv_thread_create) STUB(uv_thread_join) STUB(uv_close) STUB(uv_async_send) STUB(uv_queue_work)

static const char *lock(const char *path) {
  numbers[0] = open(path, O_RDWR | O_CREAT, 0600);
  thrown = NULL;
  try_lock(NULL, NULL);
  return thrown == NULL ? "locked" : thrown;
}

int main(int argc, char **argv) {
  setvbuf(stdout, NULL, _IONBF, 0);
  void *file = dlopen(argv[1], RTLD_LAZY);
  if (file == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
  void *(*begin)(void *, void *) = (void *(*) (void *, void *)) dlsym(file, "napi_register_module_v1");
  if (begin == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
  begin(NULL, (void *) 1);
  puts("loaded");
  int ready[2];
  if (pipe(ready) != 0) return 1;
  pid_t owner = fork();
  if (owner == 0) {
    printf("first: %s\n", lock(argv[2]));
    printf("second: %s\n", lock(argv[2]));
    write(ready[1], "", 1);
    pause();
  }
  char byte;
  read(ready[0], &byte, 1);
  printf("another process: %s\n", lock(argv[2]));
  kill(owner, SIGKILL);
  waitpid(owner, NULL, 0);
  printf("after its end: %s\n", lock(argv[2]));
  return 0;
}
