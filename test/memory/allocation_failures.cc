// Lets the Nth allocation of a process fail, for every N, while it loads a program and calls it
// through the C interface: only that one (`once`), or also all later ones (`lasting`). Each failure
// must give an error with a text and leak nothing, and the same work must succeed afterwards, both
// in a process that does it for the first time (cold) and in one that has done it before (warm).
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "tenon/c_api.h"
#include "vm/asm/assemble.h"
#include "vm/executable/write_file.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
int main() {
  std::puts("skipped: a sanitizer has an allocator of its own");
  return 77;
}
#else

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);
}

namespace {

// Whether allocations of this thread count; those of other threads always succeed.
constinit thread_local bool counting = false;
constinit long seen = 0, fail_at = -1, failures = 0;
constinit bool lasting = false;
constinit std::atomic<long> live{0};

bool fails() {
  if (!counting) return false;
  const long number = seen++;
  return fail_at >= 0 && (lasting ? number >= fail_at : number == fail_at);
}

void* counted(void* memory) {
  if (memory) live.fetch_add(1, std::memory_order_relaxed);
  return memory;
}

}  // namespace

extern "C" {
void* malloc(size_t size) {
  if (!fails()) return counted(__libc_malloc(size));
  errno = ENOMEM;
  return nullptr;
}
void* calloc(size_t count, size_t size) {
  if (!fails()) return counted(__libc_calloc(count, size));
  errno = ENOMEM;
  return nullptr;
}
void* realloc(void* memory, size_t size) {
  if (!fails()) return memory ? __libc_realloc(memory, size) : counted(__libc_malloc(size));
  errno = ENOMEM;
  return nullptr;
}
void* memalign(size_t alignment, size_t size) {
  if (!fails()) return counted(__libc_memalign(alignment, size));
  errno = ENOMEM;
  return nullptr;
}
void* aligned_alloc(size_t alignment, size_t size) {
  return memalign(alignment, size);
}
int posix_memalign(void** out, size_t alignment, size_t size) {
  *out = memalign(alignment, size);
  return *out ? 0 : ENOMEM;
}
void free(void* memory) {
  if (memory) live.fetch_sub(1, std::memory_order_relaxed);
  __libc_free(memory);
}
}

namespace {

constexpr char kProgram[] = R"(
packed $vm.tensor_copy
packed $tenon.shape.slice
packed $tenon.append
packed $host.fails
span "main.tn" 3 7
const = tensor[2; f32] hex "0000803f00000040"
const = tensor[1; i64] {2}
func @main(x: tensor[n; f32], n: i64) -> (tensor[n; f32], any, any) {
  at 0
  match_tensor %0, f32, ->%2
  %3 = call_packed $vm.tensor_copy, %0
  %4 = call_packed $tenon.shape.slice, #1, #1, #1, _, _
  %5 = make_tensor f32, 0, 1
  %3 = call_packed $tenon.append, %3!, %5
  %6 = alloc_adt 1, %4, %1
  %6 = alloc_closure @deep, %6!
  %7 = call @nest, %1
  %3 = alloc_tuple %3!, %6!, %7!
  ret %3!
}
local func @nest(n: i64) -> any {
  if %0, bottom
  %1 = sub %0, 1
  %1 = call @nest, %1
  %1 = alloc_tuple %1!, #0
  ret %1!
bottom:
  ret _
}
local func @deep(cell: any, n: i64) -> any {
  %0 = get_field %0, 0
  %0 = get_field %0, 0
  ret %0!
}
func @call(x: any, n: any, f: any) -> any {
  %0 = call_closure %2, %0, %1
  ret %0!
}
func @fails(x: any) -> any {
  _ = call_packed $host.fails, %0
  ret _
}
)";

struct Value {
  tenon_any any = TENON_NONE_VALUE;
  ~Value() { tenon_any_release(&any); }
  tenon_any* operator&() { return &any; }
};

int host_fails(void*, const tenon_any*, int32_t, tenon_any*) {
  tenon_error_set(TENON_ERROR_RUNTIME, "the host's function failed as it was asked to");
  return -1;
}

// Does the work; returns the line where it failed, or 0.
int work(const std::string& bytes) {
#define TRY(call) \
  if ((call) != 0) return __LINE__
  Value program, machine, x, result, closure, tensor, function, text, host, shape;
  TRY(tenon_function_create(host_fails, nullptr, nullptr, &host));
  TRY(tenon_function_register("host.fails", &host, TENON_FOR_FILES | TENON_REPLACE));
  tenon_load_options untrusted = TENON_LOAD_DEFAULTS;
  untrusted.flags = TENON_UNTRUSTED;
  TRY(tenon_program_from_bytes(bytes.data(), bytes.size(), &untrusted, &program));
  TRY(tenon_machine_create(&program, &machine));
  tenon_limits limits = TENON_NO_LIMITS;
  limits.fuel = 100000;
  limits.deadline_ns = INT64_C(60000000000);
  limits.memory = 10 << 20;
  TRY(tenon_machine_set_limits(&machine, &limits));
  const int64_t dims[] = {4};
  TRY(tenon_tensor_create(dims, 1, DLDataType{kDLFloat, 32, 1}, DLDevice{kDLCPU, 0}, &x));
  std::memset(tenon_tensor_view(&x)->data, 0, 4 * sizeof(float));
  tenon_any args[2] = {x.any, {TENON_INT, 0, {50}}};
  TRY(tenon_machine_call(&machine, "main", args, 2, &result));
  TRY(tenon_array_get(&result, 0, &tensor));
  TRY(tenon_array_get(&result, 1, &closure));
  TRY(tenon_function_call(&closure, &args[1], 1, &tensor));
  DLManagedTensorVersioned* managed = nullptr;
  TRY(tenon_tensor_to_dlpack_versioned(&tensor, &managed));
  managed->deleter(managed);
  TRY(tenon_program_function(&program, "main", &limits, &function));
  TRY(tenon_function_call(&function, args, 2, &result));
  const tenon_any of_call[3] = {args[0], args[1], function.any};
  TRY(tenon_machine_call(&machine, "call", of_call, 3, &result));
  TRY(tenon_any_repr(&result, &text));
  TRY(tenon_shape_create(dims, 1, &shape));
  TRY(tenon_array_create(args, 2, &result));
  // An expected failure of the program: the text of the error must be complete.
  if (tenon_machine_call(&machine, "fails", &x.any, 1, &result) == 0) return __LINE__;
  const char* error = tenon_last_error();
  if (!error || !std::strstr(error, "as it was asked to")) {
    tenon_error_set(TENON_ERROR_RUNTIME, error ? error : "no error");
    return __LINE__;
  }
  return 0;
#undef TRY
}

struct Outcome {
  bool reached = false;  // whether the failing allocation was reached
  int line = 0;
};

Outcome work_with_failure(const std::string& bytes, long number) {
  seen = 0;
  fail_at = number;
  counting = true;
  Outcome o;
  o.line = work(bytes);
  counting = false;
  o.reached = seen > number;
  fail_at = -1;
  return o;
}

// The text of the pending error, or "".
std::string error_text() {
  const char* text = tenon_last_error();
  return text ? text : "";
}

int complain(const char* state, long number, const char* what, int line, const std::string& error) {
  std::fprintf(stderr, "%s, allocation %ld: %s (line %d): %s\n", state, number, what, line,
               error.c_str());
  return 1;
}

// Does the work with the failure, then without. Returns 0 or 1, or 2 if there was no such
// allocation.
int try_one(const char* state, const std::string& bytes, long number) {
  const Outcome failed = work_with_failure(bytes, number);
  const std::string error = error_text();
  if (!failed.reached) {
    return failed.line == 0 ? 2 : complain(state, number, "failed by itself", failed.line, error);
  }
  if (failed.line != 0 && error.empty()) {
    return complain(state, number, "failed without an error", failed.line, error);
  }
  if (failed.line != 0) ++failures;
  if (const int line = work(bytes)) {
    return complain(state, number, "then the same work failed", line, error_text());
  }
  return 0;
}

int warm(const std::string& bytes) {
  for (int i = 0; i < 3; ++i) {
    if (const int line = work(bytes)) return complain("warm", -1, "fails", line, error_text());
  }
  for (long number = 0;; ++number) {
    const long before = live;
    const int code = try_one("warm", bytes, number);
    if (code == 1) return 1;
    // The text of an error is kept until the next one.
    if (live > before + 2) {
      return complain("warm", number,
                      std::to_string(live - before).append(" blocks leaked").c_str(), 0, "");
    }
    if (code == 2) {
      std::printf("warm: %ld allocations, %ld of which the work can't do without\n", number,
                  failures);
      return 0;
    }
  }
}

int cold(const std::string& bytes) {
  for (long number = 0;; ++number) {
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      alarm(30);
      _exit(try_one("cold", bytes, number));
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return 1;
    if (!WIFEXITED(status)) return complain("cold", number, "the process died", status, "");
    if (WEXITSTATUS(status) == 1) return 1;
    if (WEXITSTATUS(status) == 2) {
      std::printf("cold: %ld allocations\n", number);
      return 0;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  lasting = argc == 2 && std::strcmp(argv[1], "lasting") == 0;
  const std::string bytes = tenon::vm::write_to_bytes(tenon::vm::assemble(kProgram));
  const int first = cold(bytes);  // in child processes, so that this one stays cold
  return first ? first : warm(bytes);
}

#endif
