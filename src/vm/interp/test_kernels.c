// A kernel object for tests, built as a closed shared object: no imports, no constructors.
#include <stdint.h>

#include "tenon/c_api.h"

typedef tenon_any any;

enum kernel_error {
#define TENON_KERNEL_ERROR(number, identifier, ...) identifier = number,
#include "vm/executable/kernel_errors.def"
};

typedef struct runtime runtime;
struct runtime {
  uint32_t abi_version, size;
  int32_t (*raise)(const runtime*, const char*, int32_t, int32_t, int32_t, int64_t, int64_t);
  int32_t (*parallel_for)(const runtime*, int32_t (*)(void*, int64_t, int64_t), void*, int64_t,
                          int64_t);
  void* (*allocate)(const runtime*, const char*, uint64_t);
  void (*release)(const runtime*, void*);
};

// The DLTensor behind a tensor object's header.
static const DLTensor* tensor_of(const any* a) {
  return (const DLTensor*)(a->v.object + 1);
}
static void* data_of(const any* a) {
  return tensor_of(a)->data;
}
static int64_t count_of(const any* a) {
  const DLTensor* tensor = tensor_of(a);
  int64_t n = 1;
  for (int32_t i = 0; i < tensor->ndim; ++i) n *= tensor->shape[i];
  return n;
}

struct doubling {
  const float* from;
  float* to;
};
static int32_t double_some(void* context, int64_t begin, int64_t end) {
  struct doubling* d = context;
  for (int64_t i = begin; i < end; ++i) d->to[i] = 2 * d->from[i];
  return 0;
}

static int32_t doubled(void* self, const any* args, int32_t n, any* result) {
  const runtime* r = self;
  (void)result;
  if (n != 2) return r->raise(r, "doubled", ArgumentCount, -1, -1, n, 2);
  for (int32_t i = 0; i < 2; ++i) {
    if (args[i].type_index != TENON_TENSOR) {
      return r->raise(r, "doubled", NotATensor, i, -1, args[i].type_index, 0);
    }
  }
  if (count_of(args) != count_of(args + 1)) {
    return r->raise(r, "doubled", Dimension, 1, 0, count_of(args + 1), count_of(args));
  }
  struct doubling d = {data_of(args), data_of(args + 1)};
  return r->parallel_for(r, double_some, &d, count_of(args), 16);
}

// Allocates args[0] bytes of workspace and releases them.
static int32_t workspace(void* self, const any* args, int32_t n, any* result) {
  const runtime* r = self;
  if (n != 1) return r->raise(r, "workspace", ArgumentCount, -1, -1, n, 1);
  char* memory = r->allocate(r, "workspace", (uint64_t)args[0].v.i);
  if (!memory) return -1;
  memory[0] = 1;
  memory[args[0].v.i - 1] = 1;
  result->type_index = TENON_INT;
  result->v.i = (int64_t)((uintptr_t)memory % 64);
  r->release(r, memory);
  return 0;
}

struct sharing {
  const runtime* r;
  uint64_t bytes;
};
static int32_t take_and_spin(void* context, int64_t begin, int64_t end) {
  struct sharing* s = context;
  for (int64_t i = begin; i < end; ++i) {
    char* memory = s->r->allocate(s->r, "workspaces", s->bytes);
    if (!memory) return -1;
    memory[0] = 1;
    for (volatile int spin = 0; spin < 10000; ++spin) {
    }
    s->r->release(s->r, memory);
  }
  return 0;
}

// The same in every iteration of a parallel loop.
static int32_t workspaces(void* self, const any* args, int32_t n, any* result) {
  const runtime* r = self;
  (void)result;
  if (n != 1) return r->raise(r, "workspaces", ArgumentCount, -1, -1, n, 1);
  struct sharing s = {r, (uint64_t)args[0].v.i};
  return r->parallel_for(r, take_and_spin, &s, 1000, 1);
}

typedef struct {
  const char* name;
  int32_t (*function)(void*, const any*, int32_t, any*);
} entry;
static const entry entries[] = {
    {"doubled", doubled}, {"workspace", workspace}, {"workspaces", workspaces}};

typedef struct {
  uint32_t abi_version, count;
  uint64_t cpu_features[2];
  const entry* entries;
} table;
__attribute__((visibility("default"))) const table tenon_kernel_table = {1, 3, {0, 0}, entries};
