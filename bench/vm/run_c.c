// Prints the rows of the recursion and the loop in C, with the checks that compiled code of Tenon
// makes: fuel at each call and turn, the depth, and a word that other threads set to stop the call.
// JSON as run_tenon.cc.
#define _POSIX_C_SOURCE 200809L
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int64_t fuel = INT64_MAX;
static int64_t depth_left = 1 << 20;
static atomic_uint attention;

static _Noreturn void stop(void) {
  fprintf(stderr, "the call was stopped\n");
  exit(1);
}

static int64_t fib(int64_t n) {
  if (atomic_load_explicit(&attention, memory_order_relaxed)) stop();
  if (--fuel < 0 || --depth_left < 0) stop();
  const int64_t result = n < 2 ? n : fib(n - 1) + fib(n - 2);
  ++depth_left;
  return result;
}

static int64_t loop(int64_t n) {
  int64_t i = 0;
  while (i < n) {
    ++i;
    if (--fuel < 0 || atomic_load_explicit(&attention, memory_order_relaxed)) stop();
  }
  return i;
}

static int64_t sum(int64_t n) {
  int64_t i = 0, total = 0;
  while (i < n) {
    total += i++;
    if (--fuel < 0 || atomic_load_explicit(&attention, memory_order_relaxed)) stop();
  }
  return total;
}

static int64_t fib_calls(int64_t n) {
  return n < 2 ? 1 : 1 + fib_calls(n - 1) + fib_calls(n - 2);
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

// Through a volatile pointer, so that nothing is computed while compiling.
static double nanoseconds(int64_t (*volatile function)(int64_t), int64_t argument, int64_t count) {
  double times[9];
  for (int i = 0; i < 9; ++i) {
    struct timespec begin, end;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    volatile int64_t result = function(argument);
    (void)result;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    times[i] = (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
  }
  qsort(times, 9, sizeof *times, compare);
  return times[4] / (double)count;
}

int main(void) {
  printf("{\"version\": \"C\", \"rows\": {\"loop\": %.3f, \"sum\": %.3f, \"fib\": %.3f}}\n",
         nanoseconds(loop, 400000, 400000), nanoseconds(sum, 400000, 400000),
         nanoseconds(fib, 27, fib_calls(27)));
  return 0;
}
