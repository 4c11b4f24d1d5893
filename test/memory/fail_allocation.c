/* A library to preload: from the start of main on, lets the allocation of number FAIL_AT (from 0)
 * fail, and with FAIL_LASTING all later ones. With FAIL_COUNT the process says at its end how many
 * there were.
 *
 * Or the process itself chooses a piece of its work, by fail_allocation_begin and
 * fail_allocation_end: then those allocations count that this thread makes in Tenon's libraries, or
 * in the C++ library, except by `new` in code that fail_allocation_except leaves out. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The build hides symbols unless they say otherwise; these stand in for the C library's. */
#pragma GCC visibility push(default)

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void __libc_free(void*);

static _Atomic int started;
static _Atomic long seen, live;
static long fail_at = -1;
static int lasting;
static _Thread_local int is_chosen;

/* The memory of the libraries whose allocations count in a chosen piece of work. */
enum { kMostRanges = 64 };
static struct { uintptr_t begin, end; } ranges[kMostRanges];
static int range_count;

static int add_ranges(struct dl_phdr_info* info, size_t size, void* unused) {
  (void)size, (void)unused;
  const char* const slash = strrchr(info->dlpi_name, '/');
  const char* const name = slash ? slash + 1 : info->dlpi_name;
  if (!strstr(name, "tenon") && !strstr(name, "libstdc++")) return 0;
  for (int i = 0; i < info->dlpi_phnum && range_count < kMostRanges; ++i) {
    const ElfW(Phdr)* const segment = &info->dlpi_phdr[i];
    if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X)) continue;
    ranges[range_count].begin = info->dlpi_addr + segment->p_vaddr;
    ranges[range_count++].end = info->dlpi_addr + segment->p_vaddr + segment->p_memsz;
  }
  return 0;
}

/* Code whose allocations don't count. */
enum { kMostExceptions = 4096 };
static struct { uintptr_t begin, end; } exceptions[kMostExceptions];
static int exception_count;

int fail_allocation_except(uintptr_t begin, uintptr_t end) {
  if (exception_count == kMostExceptions) return -1;
  exceptions[exception_count].begin = begin;
  exceptions[exception_count++].end = end;
  return 0;
}

static int is_counted(const void* caller) {
  if (started) return 1;
  if (!is_chosen) return 0;
  for (int i = 0; i < range_count; ++i) {
    if ((uintptr_t)caller >= ranges[i].begin && (uintptr_t)caller < ranges[i].end) return 1;
  }
  return 0;
}

static int fails(const void* caller) {
  if (!is_counted(caller)) return 0;
  const long number = seen++;
  if (fail_at < 0 || (lasting ? number < fail_at : number != fail_at)) return 0;
  errno = ENOMEM;
  return 1;
}

static void* alive(void* memory) {
  if (memory) ++live;
  return memory;
}

/* Counts from here on, and lets the allocation of that number fail, or none if it is negative. */
void fail_allocation_begin(long at, int is_lasting) {
  range_count = 0;
  dl_iterate_phdr(add_ranges, NULL);
  seen = 0;
  fail_at = at;
  lasting = is_lasting;
  is_chosen = 1;
}
/* Ends that; returns how many allocations there were. */
long fail_allocation_end(void) {
  is_chosen = 0;
  return seen;
}
/* How many blocks the process has, less a constant. */
long fail_allocation_live(void) {
  return live;
}

void* malloc(size_t size) {
  return fails(__builtin_return_address(0)) ? NULL : alive(__libc_malloc(size));
}
void* calloc(size_t count, size_t size) {
  return fails(__builtin_return_address(0)) ? NULL : alive(__libc_calloc(count, size));
}
void* realloc(void* memory, size_t size) {
  if (fails(__builtin_return_address(0))) return NULL;
  return memory ? __libc_realloc(memory, size) : alive(__libc_malloc(size));
}
static void* aligned(size_t alignment, size_t size, const void* caller) {
  return fails(caller) ? NULL : alive(__libc_memalign(alignment, size));
}
void* memalign(size_t alignment, size_t size) {
  return aligned(alignment, size, __builtin_return_address(0));
}
void* aligned_alloc(size_t alignment, size_t size) {
  return aligned(alignment, size, __builtin_return_address(0));
}
int posix_memalign(void** out, size_t alignment, size_t size) {
  *out = aligned(alignment, size, __builtin_return_address(0));
  return *out ? 0 : ENOMEM;
}
void free(void* memory) {
  if (memory) --live;
  __libc_free(memory);
}

/* `new` of the C++ library: what code that is left out asks for doesn't count. Here, since malloc
 * sees only that library. */
typedef void* New(size_t size);
void* _Znwm(size_t size) {
  static New* real;
  if (!real) real = (New*)(uintptr_t)dlsym(RTLD_NEXT, "_Znwm");
  if (!is_chosen) return real(size);
  const uintptr_t caller = (uintptr_t)__builtin_return_address(0);
  int counts = 1;
  for (int i = 0; i < exception_count; ++i) {
    if (caller >= exceptions[i].begin && caller < exceptions[i].end) counts = 0;
  }
  is_chosen = counts;
  void* const memory =
      real(size); /* a failure leaves this function by an exception, and is_chosen as it was */
  is_chosen = 1;
  return memory;
}

static int (*real_main)(int, char**, char**);

static int counted_main(int argc, char** argv, char** environment) {
  started = fail_at >= 0 || getenv("FAIL_COUNT");
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
