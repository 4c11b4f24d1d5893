// The machine's rows of the budgets in the design: nanoseconds per operation, the best of several
// rounds, as a table or, with --json, as JSON. bench/vm.lua prints the rows that Lua has too.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "object/function.h"
#include "object/tensor.h"
#include "vm/asm/assemble.h"
#include "vm/interp/machine.h"

namespace {

using namespace tenon;
// Processor time of this thread: the machine may be shared.
double now() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

constexpr char kProgram[] = R"(
packed $empty
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
func @down(n: i64) -> i64 {
  %1 = gt %0, 0
  if %1, zero
  %1 = sub %0, 1
  %1 = call @down, %1
  %0 = add %1, 1
  ret %0
zero:
  ret %0
}
)";

struct Row {
  std::string name;
  double nanoseconds;
  double budget;
};

template <class F>
double best_of(int rounds, F&& f) {
  double best = 1e300;
  for (int i = 0; i < rounds; ++i) {
    double begin = now();
    f();
    best = std::min(best, now() - begin);
  }
  return best;
}

int64_t fib_calls(int64_t n) {
  return n < 2 ? 1 : 1 + fib_calls(n - 1) + fib_calls(n - 2);
}

std::vector<Row> measure() {
  vm::ProgramOptions options;
  Function empty =
      Function::from_c([](void*, const AnyView*, int32_t, Any*) { return 0; }, nullptr, nullptr);
  options.modules = {Module("bench", "bench", [empty](std::string_view) { return empty; })};
  vm::Machine m(vm::Program::from_unit(vm::assemble(kProgram), options));
  Tensor x = Tensor::empty({32, 32}, f32);
  constexpr int kRounds = 12;
  constexpr int64_t kN = 400'000;
  auto loop = [&](const char* function, auto... args) {
    return best_of(kRounds, [&] { m.call(function, kN, args...); }) / static_cast<double>(kN);
  };
  std::vector<Row> rows;
  rows.push_back({"packed call of an empty function, three tensors", loop("empty", x, x, x), 18});
  rows.push_back({"call and return", loop("calls", x), 25});
  rows.push_back({"allocate and free a tensor from the pool", loop("allocate"), 60});
  rows.push_back({"the same in one instruction", loop("new_tensor"), 60});
  rows.push_back({"match a rank-2 shape and make one", loop("shapes", x), 30});
  rows.push_back({"loop iteration: add, compare, branch", loop("loop"), 5});
  constexpr int64_t kFib = 27;
  rows.push_back(
      {"fib, per call",
       best_of(kRounds, [&] { m.call("fib", kFib); }) / static_cast<double>(fib_calls(kFib)), 21});
  constexpr int64_t kDepth = 1'000'000;
  rows.push_back({"recursion 1,000,000 deep, per call",
                  best_of(3, [&] { m.call("down", kDepth); }) / static_cast<double>(kDepth), 100});
  return rows;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    bool json = argc > 1 && std::strcmp(argv[1], "--json") == 0;
    std::vector<Row> rows = measure();
    if (json) std::printf("[\n");
    for (size_t i = 0; i < rows.size(); ++i) {
      const Row& r = rows[i];
      if (json) {
        std::printf("  {\"name\": \"%s\", \"ns\": %.2f, \"budget_ns\": %.0f}%s\n", r.name.c_str(),
                    r.nanoseconds, r.budget, i + 1 < rows.size() ? "," : "");
      } else {
        std::printf("%-50s %8.1f ns   budget %4.0f ns\n", r.name.c_str(), r.nanoseconds, r.budget);
      }
    }
    if (json) std::printf("]\n");
    return 0;
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.render().c_str());
    return 1;
  }
}
