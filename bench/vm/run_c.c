// Prints rows in C, with the checks that compiled code of Tenon makes: fuel at each call and turn,
// the depth, and a word that other threads set to stop the call; with a closure also that the value
// called is a closure with that many parameters, and that what a polymorphic function gets or gives
// is a number. Values are laid out as Tenon's, and the counts of cells are atomic. JSON as
// run_tenon.cc.
//
// The walks of list_fold and match8 own the cell that they are at, as Tenon's functions own their
// arguments: they retain the rest and release the cell. list_fold_borrowed and match8_borrowed
// count nothing, since the caller keeps the whole list.
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

// ---- Values ----

enum { kInt = 1, kClosure = 65, kCell = 66 };

typedef struct object {
  _Atomic uint64_t counts;
  int32_t type;
  uint32_t reserved;
  void (*deleter)(struct object*);
} object;

typedef struct value {
  int64_t type;
  union {
    int64_t i;
    object* o;
  };
} value;

typedef struct cell {
  object header;
  int64_t tag, size;
  value fields[2];
} cell;

typedef void (*any_code)(void);

typedef struct closure {
  object header;
  any_code code;
  int64_t parameters, captured;
} closure;

static value number(int64_t i) {
  return (value){kInt, {.i = i}};
}

static int64_t integer(value v) {
  if (v.type != kInt) stop();
  return v.i;
}

static cell* cell_of(value v) {
  if (v.type != kCell) stop();
  return (cell*)v.o;
}

static void retain(value v) {
  if (v.type >= kClosure) atomic_fetch_add_explicit(&v.o->counts, 1, memory_order_relaxed);
}

static void release(value v) {
  if (v.type < kClosure) return;
  if (atomic_fetch_sub_explicit(&v.o->counts, 1, memory_order_release) != 1) return;
  atomic_thread_fence(memory_order_acquire);
  v.o->deleter(v.o);
}

static void* allocate(size_t bytes) {
  void* memory = malloc(bytes);
  if (!memory) stop();
  return memory;
}

static void delete_cell(object* o) {
  cell* c = (cell*)o;
  for (int64_t i = 0; i < c->size; ++i) release(c->fields[i]);
  free(c);
}

static value make_cell(int64_t tag, int64_t size, value first, value rest) {
  cell* c = allocate(sizeof *c);
  *c = (cell){{1, kCell, 0, delete_cell}, tag, size, {first, rest}};
  return (value){kCell, {.o = &c->header}};
}

static closure* make_closure(any_code code, int64_t parameters, int64_t captured) {
  closure* c = allocate(sizeof *c);
  *c = (closure){{1, kClosure, 0, NULL}, code, parameters, captured};
  return c;
}

static any_code code_of(const closure* f, int64_t parameters) {
  if (f->header.type != kClosure || f->parameters != parameters) stop();
  return f->code;
}

// At the start and the end of a function.
static void enter(void) {
  if (atomic_load_explicit(&attention, memory_order_relaxed)) stop();
  if (--fuel < 0 || --depth_left < 0) stop();
}

static void leave(void) {
  ++depth_left;
}

static void turn(void) {
  if (--fuel < 0 || atomic_load_explicit(&attention, memory_order_relaxed)) stop();
}

// ---- The programs ----

typedef value (*binary)(const closure*, value, value);
typedef int64_t (*unary)(const closure*, int64_t);

enum { kNil, kCons };
enum { kCells = 1001 };

static value numbers(int64_t n) {
  value xs = make_cell(kNil, 0, number(0), number(0));
  for (int64_t i = n; i > 0; --i) xs = make_cell(kCons, 2, number(i), xs);
  return xs;
}

static value plus(const closure* self, value a, value b) {
  (void)self;
  enter();
  const value sum = number(integer(a) + integer(b));
  leave();
  return sum;
}

__attribute__((noinline)) static value fold_left(const closure* f, value start, value xs) {
  enter();
  for (;; turn()) {
    cell* const c = cell_of(xs);
    if (c->tag == kNil) break;
    const value first = c->fields[0], rest = c->fields[1];
    retain(first);
    retain(rest);
    release(xs);
    start = ((binary)code_of(f, 2))(f, start, first);
    xs = rest;
  }
  release(xs);
  leave();
  return start;
}

__attribute__((noinline)) static value fold_borrowed(const closure* f, value start, value xs) {
  enter();
  for (;; turn()) {
    const cell* const c = cell_of(xs);
    if (c->tag == kNil) break;
    retain(c->fields[0]);
    start = ((binary)code_of(f, 2))(f, start, c->fields[0]);
    xs = c->fields[1];
  }
  leave();
  return start;
}

static value list;
static closure* adds;
static int64_t list_fold(int64_t n) {
  value sum = number(0);
  for (int64_t i = 0; i < n; ++i, turn()) {
    retain(list);
    sum = fold_left(adds, sum, list);
  }
  return integer(sum);
}

static int64_t list_fold_borrowed(int64_t n) {
  value sum = number(0);
  for (int64_t i = 0; i < n; ++i, turn()) sum = fold_borrowed(adds, sum, list);
  return integer(sum);
}

static int64_t add_captured(const closure* self, int64_t x) {
  enter();
  const int64_t sum = x + self->captured;
  leave();
  return sum;
}

static closure* add3;
static int64_t call_of(const closure* f, int64_t x) {
  return ((unary)code_of(f, 1))(f, x);
}

static int64_t closure_calls(int64_t n) {
  const closure* const f = add3;
  int64_t x = 0;
  for (int64_t i = 0; i < n; i += 8, turn()) {
    x = call_of(f, x);
    x = call_of(f, x);
    x = call_of(f, x);
    x = call_of(f, x);
    x = call_of(f, x);
    x = call_of(f, x);
    x = call_of(f, x);
    x = call_of(f, x);
  }
  return x;
}

enum { kAdd, kSubtract, kFrom, kLeast, kMost, kAnd, kOr, kHalt };

static value code(int64_t n) {
  static const int64_t cycle[7][2] = {{kAdd, 5},  {kMost, -60}, {kOr, 9},   {kSubtract, 3},
                                      {kAnd, -5}, {kLeast, 70}, {kFrom, 20}};
  value c = make_cell(kHalt, 0, number(0), number(0));
  for (int64_t i = 0; i < n; ++i) c = make_cell(cycle[i % 7][0], 2, number(cycle[i % 7][1]), c);
  return c;
}

static int64_t apply(int64_t tag, int64_t x, int64_t k) {
  switch (tag) {
    case kAdd:
      return x + k;
    case kSubtract:
      return x - k;
    case kFrom:
      return k - x;
    case kLeast:
      return k < x ? k : x;
    case kMost:
      return k > x ? k : x;
    case kAnd:
      return x & k;
    case kOr:
      return x | k;
    default:
      stop();
  }
}

__attribute__((noinline)) static int64_t step(int64_t x, value program) {
  enter();
  for (;; turn()) {
    cell* const c = cell_of(program);
    if (c->tag == kHalt) break;
    x = apply(c->tag, x, integer(c->fields[0]));
    const value rest = c->fields[1];
    retain(rest);
    release(program);
    program = rest;
  }
  release(program);
  leave();
  return x;
}

__attribute__((noinline)) static int64_t step_borrowed(int64_t x, value program) {
  enter();
  for (;; turn()) {
    const cell* const c = cell_of(program);
    if (c->tag == kHalt) break;
    x = apply(c->tag, x, integer(c->fields[0]));
    program = c->fields[1];
  }
  leave();
  return x;
}

static value program;
static int64_t match8(int64_t n) {
  int64_t x = 0;
  for (int64_t i = 0; i < n; ++i, turn()) {
    retain(program);
    x = step(x, program);
  }
  return x;
}

static int64_t match8_borrowed(int64_t n) {
  int64_t x = 0;
  for (int64_t i = 0; i < n; ++i, turn()) x = step_borrowed(x, program);
  return x;
}

static volatile double re = -0.5, im = 0.25;
static int64_t f64_loop(int64_t most) {
  const double a = re, b = im;
  double x = 0, y = 0;
  int64_t i = 0;
  while (x * x + y * y <= 4.0 && i < most) {
    const double d = x * x - y * y, xy = x * y;
    x = d + a;
    y = xy + xy + b;
    ++i;
    turn();
  }
  return i;
}

// ---- Times ----

static int64_t fib_calls(int64_t n) {
  return n < 2 ? 1 : 1 + fib_calls(n - 1) + fib_calls(n - 2);
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

// Through a volatile pointer, so that nothing is computed while compiling.
static double nanoseconds(int64_t (*volatile function)(int64_t), int64_t argument, int64_t count,
                          int64_t expected) {
  double times[9];
  for (int i = 0; i < 9; ++i) {
    struct timespec begin, end;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    const int64_t result = function(argument);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    times[i] = (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
    if (result != expected) {
      fprintf(stderr, "a row's result is %lld instead of %lld\n", (long long)result,
              (long long)expected);
      exit(1);
    }
  }
  qsort(times, 9, sizeof *times, compare);
  return times[4] / (double)count;
}

int main(void) {
  const int64_t n = 400000, walks = 399, sum_of_list = kCells * (kCells + 1) / 2;
  list = numbers(kCells);
  adds = make_closure((any_code)plus, 2, 0);
  add3 = make_closure((any_code)add_captured, 1, 3);
  program = code(kCells);
  const struct {
    const char* key;
    int64_t (*function)(int64_t);
    int64_t argument, count, expected;
  } rows[] = {
      {"loop", loop, n, n, n},
      {"sum", sum, n, n, n * (n - 1) / 2},
      {"fib", fib, 27, fib_calls(27), 196418},
      {"list_fold", list_fold, walks, walks * kCells, walks * sum_of_list},
      {"list_fold_borrowed", list_fold_borrowed, walks, walks * kCells, walks * sum_of_list},
      {"closure", closure_calls, n, n, 3 * n},
      {"match8", match8, walks, walks * kCells, 18},
      {"match8_borrowed", match8_borrowed, walks, walks * kCells, 18},
      {"f64_loop", f64_loop, n, n, n},
  };
  printf("{\"version\": \"C\", \"rows\": {");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    printf("%s\"%s\": %.3f", i == 0 ? "" : ", ", rows[i].key,
           nanoseconds(rows[i].function, rows[i].argument, rows[i].count, rows[i].expected));
  }
  printf("}}\n");
  return 0;
}
