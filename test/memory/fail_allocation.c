/* A library to preload: from the start of main on, lets the allocation of number FAIL_AT (from 0) fail, and with
 * FAIL_LASTING all later ones. With FAIL_COUNT the process says at its end how many there were. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The build hides symbols unless they say otherwise; these stand in for the C library's. */
#pragma GCC visibility push(default)

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

static _Atomic int started;
static _Atomic long seen;
static long fail_at = -1;
static int lasting;

static int fails(void) {
  if (!started) return 0;
  const long number = seen++;
  if (fail_at < 0 || (lasting ? number < fail_at : number != fail_at)) return 0;
  errno = ENOMEM;
  return 1;
}

void* malloc(size_t size) {
  return fails() ? NULL : __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  return fails() ? NULL : __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) {
  return fails() ? NULL : __libc_realloc(memory, size);
}
void* memalign(size_t alignment, size_t size) {
  return fails() ? NULL : __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  return memalign(alignment, size);
}
int posix_memalign(void** out, size_t alignment, size_t size) {
  *out = memalign(alignment, size);
  return *out ? 0 : ENOMEM;
}

static int (*real_main)(int, char**, char**);

static int counted_main(int argc, char** argv, char** environment) {
  started = 1;
  const int code = real_main(argc, argv, environment);
  started = 0;
  if (getenv("FAIL_COUNT")) {
    char text[32];
    const int size = snprintf(text, sizeof text, "allocations %ld\n", (long)seen);
    if (write(2, text, (size_t)size) != size) return 70;
  }
  return code;
}

typedef int StartMain(int (*)(int, char**, char**), int, char**, void (*)(void), void (*)(void),
                      void (*)(void), void*);

int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(void),
                      void (*fini)(void), void (*end)(void), void* stack) {
  real_main = main;
  const char* at = getenv("FAIL_AT");
  if (at) fail_at = atol(at);
  lasting = getenv("FAIL_LASTING") != NULL;
  StartMain* start = (StartMain*)(uintptr_t)dlsym(RTLD_NEXT, "__libc_start_main");
  return start(counted_main, argc, argv, init, fini, end, stack);
}
