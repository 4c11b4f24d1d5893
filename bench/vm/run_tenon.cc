// Prints Tenon's rows as JSON: nanoseconds of CPU time per operation, the median of several, of the
// assembly below ("rows") and of programs.tn as bytecode ("bytecode") and as machine code
// ("compiled"). With "depth": the memory of a recursion of depth 1,000,000. The programs run in the
// runtime's shared library, through its C interface.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

#include "codegen/llvm/emit.h"
#include "loop/schedule.h"
#include "tenon/c_api.h"
#include "vm/asm/assemble.h"
#include "vm/executable/write_file.h"

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
kernel $add
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
  _ = call_packed $add, %1, %2, %3
  _ = call_packed $add, %1, %2, %3
  _ = call_packed $add, %1, %2, %3
  _ = call_packed $add, %1, %2, %3
  _ = call_packed $add, %1, %2, %3
  _ = call_packed $add, %1, %2, %3
  _ = call_packed $add, %1, %2, %3
  _ = call_packed $add, %1, %2, %3
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

// The machine code of `add`: z[n, c, h, w] = x + y.
vm::KernelTarget add_kernel() {
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
  return {target.architecture->llvm_triple(),
          target.cpu,
          target.features,
          {{vm::ImageKind::Elf, "", {object.begin(), object.end()}}}};
}

// The file of the assembly.
std::string assembled_file() {
  vm::Unit unit = vm::assemble(kProgram);
  unit.kernels.push_back(add_kernel());
  return vm::write_to_bytes(unit);
}

void require(int result) {
  if (result == 0) return;
  std::fprintf(stderr, "%s\n", tenon_last_error());
  std::exit(1);
}

struct Value {
  tenon_any any = TENON_NONE_VALUE;

  Value() = default;
  Value(int64_t n) {
    any.type_index = TENON_INT;
    any.v.i = n;
  }
  Value(double x) {
    any.type_index = TENON_FLOAT;
    any.v.f = x;
  }
  Value(Value&& other) noexcept : any(other.any) { other.any = TENON_NONE_VALUE; }
  ~Value() { tenon_any_release(&any); }
};

Value tensor(const std::vector<int64_t>& shape) {
  Value out;
  require(tenon_tensor_create(shape.data(), static_cast<int32_t>(shape.size()), {kDLFloat, 32, 1},
                              {kDLCPU, 0}, &out.any));
  return out;
}

// The native function that the programs call.
void register_empty() {
  Value empty;
  require(tenon_function_create([](void*, const tenon_any*, int32_t, tenon_any*) { return 0; },
                                nullptr, nullptr, &empty.any));
  require(tenon_function_register("empty", &empty.any, 0));
}

class Machine {
 public:
  explicit Machine(const Value& program) {
    require(tenon_machine_create(&program.any, &machine_.any));
  }
  template <class... Args>
  Value call(const char* function, const Args&... given) {
    const tenon_any args[] = {given.any..., TENON_NONE_VALUE};
    Value result;
    require(tenon_machine_call(&machine_.any, function, args, sizeof...(given), &result.any));
    return result;
  }

 private:
  Value machine_;
};

Machine assembled() {
  Value program;
  const std::string file = assembled_file();
  require(tenon_program_from_bytes(file.data(), file.size(), nullptr, &program.any));
  return Machine(program);
}
// programs.tn, compiled with that --mode.
Machine of_language(const char* mode) {
  Value program;
  const std::string file = std::string(TENON_BENCH_PROGRAMS) + "/" + mode + ".tnx";
  require(tenon_program_load(file.c_str(), &program.any));
  return Machine(program);
}

template <class... Args>
double nanoseconds(Machine& machine, int64_t count, const char* function, const Args&... args) {
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

// The other engines check the same results.
void expect(const Value& result, int64_t expected) {
  if (result.any.type_index == TENON_INT && result.any.v.i == expected) return;
  std::fprintf(stderr, "a row's result isn't %lld\n", static_cast<long long>(expected));
  std::exit(1);
}

int64_t fib_calls(int64_t n) {
  return n < 2 ? 1 : 1 + fib_calls(n - 1) + fib_calls(n - 2);
}

constexpr int64_t kN = 400'000, kFib = 27;
// Elements of the list and operations of the program of match8, which stay in the cache.
constexpr int64_t kCells = 1001, kWalks = kN / kCells, kAdded = 3;

void print_assembled(Machine& m) {
  // Without elements, a kernel only checks its arguments.
  const Value x = tensor({32, 32}), none = tensor({0, 4, 4, 4}), n(kN);
  const double packed = nanoseconds(m, kN, "empty", n, x, x, x);
  std::printf("\"packed\": %.3f, ", packed);
  std::printf("\"kernel\": %.3f, ", nanoseconds(m, kN, "kernel", n, none, none) - packed);
  std::printf("\"call\": %.3f, ", nanoseconds(m, kN, "calls", n, x));
  std::printf("\"pool\": %.3f, ", nanoseconds(m, kN, "allocate", n));
  std::printf("\"pool_one\": %.3f, ", nanoseconds(m, kN, "new_tensor", n));
  std::printf("\"shape\": %.3f, ", nanoseconds(m, kN, "shapes", n, x));
  std::printf("\"loop\": %.3f, ", nanoseconds(m, kN, "loop", n));
  std::printf("\"sum\": %.3f, ", nanoseconds(m, kN, "sum", n));
  std::printf("\"fib\": %.3f", nanoseconds(m, fib_calls(kFib), "fib", Value(kFib)));
}

void print_of_language(Machine& m) {
  const Value x = tensor({32, 32}), n(kN);
  const double packed = nanoseconds(m, kN, "packed", n, x, x, x);
  std::printf("\"packed\": %.3f, ", packed);
  std::printf("\"call\": %.3f, ", nanoseconds(m, kN, "call", n, x));
  std::printf("\"pool\": %.3f, ", nanoseconds(m, kN, "pool", n));
  std::printf("\"shape\": %.3f, ", nanoseconds(m, kN, "shape", n, x) - packed);
  std::printf("\"loop\": %.3f, ", nanoseconds(m, kN, "loop", n));
  std::printf("\"sum\": %.3f, ", nanoseconds(m, kN, "sum", n));
  std::printf("\"fib\": %.3f, ", nanoseconds(m, fib_calls(kFib), "fib", Value(kFib)));

  // What these rows call and read comes from here, so that nothing knows it while compiling.
  const Value plus = m.call("plus"), numbers = m.call("numbers", Value(kCells));
  const Value adder = m.call("adder", Value(kAdded)), code = m.call("code", Value(kCells));
  const Value walks(kWalks), re(-0.5), im(0.25);
  expect(m.call("list_fold", walks, plus, numbers), kWalks * kCells * (kCells + 1) / 2);
  expect(m.call("closure", n, adder), kAdded * kN);
  expect(m.call("match8", walks, code), 18);
  expect(m.call("f64_loop", n, re, im), kN);
  const int64_t steps = kWalks * kCells;
  std::printf("\"list_fold\": %.3f, ", nanoseconds(m, steps, "list_fold", walks, plus, numbers));
  std::printf("\"closure\": %.3f, ", nanoseconds(m, kN, "closure", n, adder));
  std::printf("\"match8\": %.3f, ", nanoseconds(m, steps, "match8", walks, code));
  std::printf("\"f64_loop\": %.3f", nanoseconds(m, kN, "f64_loop", n, re, im));
}

void print_rows() {
  Machine of_assembly = assembled();
  std::printf("{\"rows\": {");
  print_assembled(of_assembly);
  for (const char* mode : {"bytecode", "compiled"}) {
    Machine machine = of_language(mode);
    std::printf("}, \"%s\": {", mode);
    print_of_language(machine);
  }
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
  Machine machine = of_language("compiled");
  constexpr int64_t kDepth = 1'000'000;
  machine.call("down", Value(int64_t{1}));
  double before = resident_megabytes();
  machine.call("down", Value(kDepth));
  std::printf("{\"depth\": %lld, \"end\": \"reached\", \"megabytes\": %.0f}\n",
              static_cast<long long>(kDepth), resident_megabytes() - before);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    register_empty();
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
