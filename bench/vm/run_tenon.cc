// Prints Tenon's rows as JSON: nanoseconds of CPU time per operation, the median of several, of the
// assembly below ("rows") and of programs.tn ("compiled"). With "depth": the memory of a recursion
// of depth 1,000,000.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

#include "codegen/llvm/emit.h"
#include "loop/schedule.h"
#include "object/function.h"
#include "object/tensor.h"
#include "vm/asm/assemble.h"
#include "vm/executable/kernel_object.h"
#include "vm/executable/kernel_runtime.h"
#include "vm/interp/machine.h"

namespace {

using namespace tenon;
// CPU time of this thread, since the machine may be shared.
double now() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

constexpr char kProgram[] = R"(
packed $empty
packed $kernel
func @empty(n: i64, x: any, y: any, z: any) {
again:
  %4 = lt %0, 1
  if %4, more
  ret _
more:
  _ = call_packed $empty, %1, %2, %3
  _ = call_packed $empty, %1, %2, %3
  _ = call_packed $empty, %1, %2, %3
  _ = call_packed $empty, %1, %2, %3
  _ = call_packed $empty, %1, %2, %3
  _ = call_packed $empty, %1, %2, %3
  _ = call_packed $empty, %1, %2, %3
  _ = call_packed $empty, %1, %2, %3
  %0 = sub %0, 8
  goto again
}
func @kernel(n: i64, x: any, y: any) {
  %3 = alloc_storage 0, 64, cpu:0
  %3 = alloc_tensor %3!, 0, f32, 0, 4, 4, 4
again:
  %4 = lt %0, 1
  if %4, more
  ret _
more:
  _ = call_packed $kernel, %1, %2, %3
  _ = call_packed $kernel, %1, %2, %3
  _ = call_packed $kernel, %1, %2, %3
  _ = call_packed $kernel, %1, %2, %3
  _ = call_packed $kernel, %1, %2, %3
  _ = call_packed $kernel, %1, %2, %3
  _ = call_packed $kernel, %1, %2, %3
  _ = call_packed $kernel, %1, %2, %3
  %0 = sub %0, 8
  goto again
}
func @callee(x: any) {
  ret %0!
}
func @calls(n: i64, x: any) {
again:
  %2 = lt %0, 1
  if %2, more
  ret _
more:
  %1 = call @callee, %1!
  %1 = call @callee, %1!
  %1 = call @callee, %1!
  %1 = call @callee, %1!
  %1 = call @callee, %1!
  %1 = call @callee, %1!
  %1 = call @callee, %1!
  %1 = call @callee, %1!
  %0 = sub %0, 8
  goto again
}
func @allocate(n: i64) {
again:
  %1 = lt %0, 1
  if %1, more
  ret _
more:
  %2 = alloc_storage 4096, 64, cpu:0
  %3 = alloc_tensor %2!, 0, f32, 32, 32
  kill %3
  %0 = sub %0, 1
  goto again
}
func @new_tensor(n: i64) {
again:
  %1 = lt %0, 1
  if %1, more
  ret _
more:
  %3 = new_tensor cpu:0, f32, 32, 32
  kill %3
  %0 = sub %0, 1
  goto again
}
func @shapes(n: i64, x: any) {
again:
  %2 = lt %0, 1
  if %2, more
  ret _
more:
  match_tensor %1, f32, ->%3, ->%4
  %5 = make_shape %3, %4
  %0 = sub %0, 1
  goto again
}
func @loop(n: i64) {
  %1 = load_int 0
again:
  %1 = add %1, 1
  %2 = ge %1, %0
  if %2, again
  ret %1
}
func @sum(n: i64) {
  %1 = load_int 0
  %2 = load_int 0
  goto test
again:
  %2 = add %2, %1
  %1 = add %1, 1
test:
  %3 = ge %1, %0
  if %3, again
  ret %2
}
func @fib(n: i64) -> i64 {
  %1 = lt %0, 2
  if %1, big
  ret %0
big:
  %1 = sub %0, 1
  %2 = sub %0, 2
  %1 = call @fib, %1
  %2 = call @fib, %2
  %0 = add %1, %2
  ret %0
}
)";

// z[n, c, h, w] = x + y
vm::KernelEntryFunction kernel_entry(Ref<vm::KernelObject>& keep) {
  using namespace loop;  // NOLINT: the vocabulary of the kernel
  std::vector<Dim> d;
  for (const char* symbol : {"n", "c", "h", "w"}) d.push_back(Dim::symbol(symbol));
  auto x = buffer("x", f32, d), y = buffer("y", f32, d), z = buffer("z", f32, d);
  auto stage = map_stage(z, [&](const std::vector<ExprRef>& i) {
    return binary(BinaryOp::kAdd, load(x, Array<ExprRef>(i)), load(y, Array<ExprRef>(i)));
  });
  const ComputeRef sum = whole_kernel({x, y}, {stage}, {z}, /*in_bounds=*/true);
  codegen::Target target = codegen::host_target();
  ScheduleOptions options;
  options.target = target.facts();
  std::vector<uint8_t> object = codegen::compile_kernels({lower(*sum, "add", options)}, target);
  keep = vm::KernelObject::open({reinterpret_cast<const char*>(object.data()), object.size()},
                                "kernel");
  return keep->find("add");
}

// The native functions that the programs call.
vm::ProgramOptions options(Ref<vm::KernelObject>& keep) {
  Function empty =
      Function::from_c([](void*, const AnyView*, int32_t, Any*) { return 0; }, nullptr, nullptr);
  auto* runtime = const_cast<vm::KernelRuntime*>(&vm::kernel_runtime());
  Function kernel = Function::from_c(kernel_entry(keep), runtime, nullptr);
  vm::ProgramOptions options;
  options.modules = {Module("bench", "bench", [empty, kernel](std::string_view name) {
    return name == "empty" ? empty : kernel;
  })};
  return options;
}

struct Bench {
  Ref<vm::KernelObject> kernels;  // of both programs: it must outlive them
  vm::ProgramOptions linking = options(kernels);
  vm::Machine assembled{vm::Program::from_unit(vm::assemble(kProgram), linking)};
  vm::Machine compiled{vm::Program::load(TENON_BENCH_PROGRAMS, linking)};
};

template <class... Args>
double nanoseconds(vm::Machine& machine, int64_t count, const char* function, const Args&... args) {
  constexpr size_t kRepeat = 9;
  double times[kRepeat];
  for (double& t : times) {
    double begin = now();
    machine.call(function, args...);
    t = now() - begin;
  }
  std::nth_element(times, times + kRepeat / 2, times + kRepeat);
  return times[kRepeat / 2] / static_cast<double>(count);
}

int64_t fib_calls(int64_t n) {
  return n < 2 ? 1 : 1 + fib_calls(n - 1) + fib_calls(n - 2);
}

constexpr int64_t kN = 400'000, kFib = 27;

void print_assembled(vm::Machine& m) {
  // Without elements, a kernel only checks its arguments.
  Tensor x = Tensor::empty({32, 32}, f32), none = Tensor::empty({0, 4, 4, 4}, f32);
  const double packed = nanoseconds(m, kN, "empty", kN, x, x, x);
  std::printf("\"packed\": %.3f, ", packed);
  std::printf("\"kernel\": %.3f, ", nanoseconds(m, kN, "kernel", kN, none, none) - packed);
  std::printf("\"call\": %.3f, ", nanoseconds(m, kN, "calls", kN, x));
  std::printf("\"pool\": %.3f, ", nanoseconds(m, kN, "allocate", kN));
  std::printf("\"pool_one\": %.3f, ", nanoseconds(m, kN, "new_tensor", kN));
  std::printf("\"shape\": %.3f, ", nanoseconds(m, kN, "shapes", kN, x));
  std::printf("\"loop\": %.3f, ", nanoseconds(m, kN, "loop", kN));
  std::printf("\"sum\": %.3f, ", nanoseconds(m, kN, "sum", kN));
  std::printf("\"fib\": %.3f", nanoseconds(m, fib_calls(kFib), "fib", kFib));
}

void print_compiled(vm::Machine& m) {
  Tensor x = Tensor::empty({32, 32}, f32);
  const double packed = nanoseconds(m, kN, "packed", kN, x, x, x);
  std::printf("\"packed\": %.3f, ", packed);
  std::printf("\"call\": %.3f, ", nanoseconds(m, kN, "call", kN, x));
  std::printf("\"pool\": %.3f, ", nanoseconds(m, kN, "pool", kN));
  std::printf("\"shape\": %.3f, ", nanoseconds(m, kN, "shape", kN, x) - packed);
  std::printf("\"loop\": %.3f, ", nanoseconds(m, kN, "loop", kN));
  std::printf("\"sum\": %.3f, ", nanoseconds(m, kN, "sum", kN));
  std::printf("\"fib\": %.3f", nanoseconds(m, fib_calls(kFib), "fib", kFib));
}

void print_rows() {
  Bench b;
  std::printf("{\"rows\": {");
  print_assembled(b.assembled);
  std::printf("}, \"compiled\": {");
  print_compiled(b.compiled);
  std::printf("}}\n");
}

// The process's peak memory so far.
double resident_megabytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes / 1024;
  }
  return 0;
}

void print_depth() {
  Bench b;
  constexpr int64_t kDepth = 1'000'000;
  b.compiled.call("down", int64_t{1});
  double before = resident_megabytes();
  b.compiled.call("down", kDepth);
  std::printf("{\"depth\": %lld, \"end\": \"reached\", \"megabytes\": %.0f}\n",
              static_cast<long long>(kDepth), resident_megabytes() - before);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc > 1 && std::strcmp(argv[1], "depth") == 0) {
      print_depth();
    } else {
      print_rows();
    }
    return 0;
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.render().c_str());
    return 1;
  }
}
