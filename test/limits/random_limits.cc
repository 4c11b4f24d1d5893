// random_limits COUNT FIRST: limits as a property of random programs. Each number makes programs of
// values (test/random), compiles and loads them within random limits, and calls them under random
// limits on several machines and threads at once: alone, and from endless programs that recurse,
// keep lists, arrays or closures, and call a function of the host's, which calls the other programs
// on machines of its own. COUNT 0: forever.
//
// A call ends with its value, or with the error of a limit that was set. Fuel is exact: what a call
// used is enough the next time, one less is not. Memory and time stay within the slack below. After
// an error, the same machine gives the right value. Exits with 1 after a finding.
//
// Memory is what this process's allocator handed out to the calling thread at once.
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>
#include <thread>

#include "allocated_memory.h"
#include "driver/compile.h"
#include "graph/ir/check.h"
#include "graph/ir/text.h"
#include "graph_program.h"
#include "object/reflect.h"
#include "support/error.h"
#include "value_program.h"
#include "vm/builtin/register.h"
#include "vm/executable/write_file.h"
#include "vm/interp/machine.h"

namespace {

using namespace tenon;
using std::chrono::nanoseconds;

constexpr int kThreads = 3, kInner = 2, kCallsOfAThread = 8, kLoads = 8;
// Beyond a limit on memory: what the allocator adds to each object, and the error's own text.
constexpr double kMemoryFactor = 1.15;
constexpr int64_t kMemorySlack = 64 << 10;
// Loading counts tables by their entries, and a vector that grows has up to twice as many.
constexpr double kLoadMemoryFactor = 2;
// Beyond a deadline: processor time of the calling thread until the call has ended.
constexpr nanoseconds kTimeSlack = std::chrono::milliseconds(200);
constexpr nanoseconds kCompileSlack = std::chrono::seconds(2);  // LLVM doesn't poll

constexpr const char* kEndless = R"(
fn @spin(%f: fn(i64) -> i64, %i: i64) -> i64 {
  %x = %f(%i)
  %next = add(%i, %x)
  @spin(%f, %next)
}
fn @deep(%f: fn(i64) -> i64, %i: i64) -> i64 {
  %x = %f(%i)
  %next = add(%i, %x)
  %y = @deep(%f, %next)
  add(%y, %x)
}
fn @grow(%f: fn(i64) -> i64, %i: i64) -> i64 { @list(%f, %i, Nil) }
fn @list(%f: fn(i64) -> i64, %i: i64, %kept: list[i64]) -> i64 {
  %x = %f(%i)
  %more = Cons(%x, %kept)
  %next = add(%i, %x)
  @list(%f, %next, %more)
}
fn @push(%f: fn(i64) -> i64, %i: i64) -> i64 {
  %none = array[i64]()
  @array(%f, %i, %none)
}
fn @array(%f: fn(i64) -> i64, %i: i64, %kept: array[i64]) -> i64 {
  %x = %f(%i)
  %more = array_push(%kept, %x)
  %next = add(%i, %x)
  @array(%f, %next, %more)
}
fn @chain(%f: fn(i64) -> i64, %i: i64) -> i64 {
  %same = fn(%y: i64) -> i64 { %y }
  @closures(%f, %i, %same)
}
fn @closures(%f: fn(i64) -> i64, %i: i64, %last: fn(i64) -> i64) -> i64 {
  %x = %f(%i)
  %longer = fn(%y: i64) -> i64 {
    %z = add(%y, %x)
    %last(%z)
  }
  %next = add(%i, %x)
  @closures(%f, %next, %longer)
}
)";
constexpr const char* kEndlessNames[] = {"spin", "deep", "grow", "push", "chain"};

std::mutex printing;
std::atomic<int64_t> findings{0}, ends{0}, stops{0};
std::atomic<int64_t> most_late{0}, most_beyond{0};  // nanoseconds, bytes

void raise(std::atomic<int64_t>* most, int64_t value) {
  int64_t now = most->load();
  while (now < value && !most->compare_exchange_weak(now, value)) {
  }
}

void finding(uint64_t seed, const std::string& what) {
  ++findings;
  const std::lock_guard lock(printing);
  std::printf("%llu: %s\n", static_cast<unsigned long long>(seed), what.substr(0, 2000).c_str());
  std::fflush(stdout);
}

nanoseconds thread_time() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::chrono::seconds(t.tv_sec) + nanoseconds(t.tv_nsec);
}

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  bool coin() { return engine_() & 1; }
  uint64_t below(uint64_t n) { return engine_() % n; }
  // Each magnitude as likely as the others.
  int64_t magnitude(int64_t least, int64_t most) {
    const double span = std::log2(static_cast<double>(most) / static_cast<double>(least));
    const double at = static_cast<double>(below(1 << 20)) / (1 << 20);
    return static_cast<int64_t>(static_cast<double>(least) * std::exp2(at * span));
  }

 private:
  std::mt19937_64 engine_;
};

struct Made {
  Ref<vm::Program> program;
  std::vector<Any> inputs;
  std::string expected;
  int64_t fuel = 0;  // that a call takes
};

graph::Module module_of(const std::string& text) {
  graph::Module module = graph::parse_module(text, "random.tn");
  graph::check_module(module);
  return module;
}

driver::CompileOptions compile_options(Random* random) {
  driver::CompileOptions options;
  options.threads = 1;
  options.libraries = "none";
  if (random->coin()) options.mode = "bytecode";
  return options;
}

vm::Limits without_limits() {
  vm::Limits limits;
  limits.threads = 1;
  return limits;
}

std::string call(vm::Machine* machine, const Made& made) {
  const std::vector<AnyView> views(made.inputs.begin(), made.inputs.end());
  return repr(machine->call("main", views), 4000);
}

// Whether the error says that it is of a limit that was set.
bool is_of_a_limit(const Error& error, const vm::Limits& limits) {
  const vm::Limits none = without_limits();
  const std::string_view cause = error.stopped_by();
  const auto is = [&](StopCause limit) { return cause == to_text(limit); };
  return (is(StopCause::Fuel) && limits.fuel < none.fuel) ||
         (is(StopCause::Deadline) && limits.deadline < none.deadline) ||
         (is(StopCause::Memory) && limits.memory > 0) || is(StopCause::Depth) ||
         is(StopCause::Stack);
}

// Runs `body`, which must end, or fail with the error of a limit, within the slack.
template <class F>
bool hold(uint64_t seed, const std::string& what, const vm::Limits& limits, const F& body,
          double memory_factor = kMemoryFactor) {
  const nanoseconds start = thread_time();
  allocated_memory::begin();
  bool ended = false;
  std::string failure;
  try {
    body();
    ended = true;
    ++ends;
  } catch (const Error& error) {
    ++stops;
    if (!is_of_a_limit(error, limits)) failure = error.render();
  }
  const int64_t bytes = allocated_memory::most();
  const nanoseconds taken = thread_time() - start;
  if (!failure.empty()) finding(seed, cat(what, ": ", failure));
  if (limits.deadline < nanoseconds::max()) raise(&most_late, (taken - limits.deadline).count());
  if (limits.memory > 0) raise(&most_beyond, bytes - static_cast<int64_t>(limits.memory));
  if (limits.deadline < nanoseconds::max() && taken > limits.deadline + kTimeSlack) {
    finding(seed, cat(what, " took ", taken.count(), " ns, with a deadline of ",
                      limits.deadline.count()));
  }
  const auto most = static_cast<int64_t>(static_cast<double>(limits.memory) * memory_factor);
  if (limits.memory > 0 && bytes > most + kMemorySlack) {
    finding(seed, cat(what, " had ", bytes, " bytes, with a limit of ", limits.memory));
  }
  return ended;
}

// Whether the file may come from anybody: it has no native code, and names no library.
bool is_accepted_untrusted(const std::string& bytes) {
  vm::ProgramOptions options;
  options.trusted = false;
  try {
    vm::Program::load_bytes(bytes, options);
    return true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Unsupported) throw;
    return false;
  }
}

// Loads the file's bytes within limits.
void load(uint64_t seed, const Made& made, const std::string& bytes, Random* random) {
  const bool may_be_untrusted = is_accepted_untrusted(bytes);
  for (int i = 0; i < kLoads; ++i) {
    vm::Limits limits = without_limits();
    if (random->coin()) limits.deadline = nanoseconds(random->magnitude(1000, 10'000'000));
    if (random->coin()) limits.memory = static_cast<size_t>(random->magnitude(1 << 8, 1 << 20));
    vm::ProgramOptions options;
    options.trusted = !may_be_untrusted || random->coin();
    options.limits = {.memory = limits.memory, .deadline = limits.deadline};
    Ref<vm::Program> program;
    const auto body = [&] { program = vm::Program::load_bytes(bytes, options); };
    if (!hold(seed, "loading", limits, body, kLoadMemoryFactor)) continue;
    vm::Machine machine(program, without_limits());
    const std::string found = call(&machine, made);
    if (found != made.expected)
      finding(seed, cat("gave ", found, " once loaded, not ", made.expected));
  }
}

// Compiles within limits first, then without; and loads what was compiled.
Made make(uint64_t seed, Random* random) {
  Made made;
  const graph::Module module = module_of(random_programs::value_program(seed));
  made.inputs = random_programs::random_inputs(**module->functions.find("main"), seed, false);
  driver::CompileOptions options = compile_options(random);
  options.limits.memory = static_cast<size_t>(random->magnitude(1 << 14, 1 << 24));
  options.limits.deadline = nanoseconds(random->magnitude(100'000, 100'000'000));
  const nanoseconds start = thread_time();
  try {
    driver::generate_code(driver::run_passes(module, options), options);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Runtime) finding(seed, cat("compiling: ", error.render()));
  }
  const nanoseconds taken = thread_time() - start;
  if (taken > options.limits.deadline + kCompileSlack) {
    finding(seed,
            cat("compiling took ", taken.count(), " ns, not ", options.limits.deadline.count()));
  }
  options.limits = {};
  vm::Unit unit = driver::generate_code(driver::run_passes(module, options), options);
  const std::string bytes = vm::write_to_bytes(unit);
  made.program = vm::Program::from_unit(std::move(unit), {});
  vm::Machine machine(made.program, without_limits());
  made.expected = call(&machine, made);
  made.fuel = without_limits().fuel - machine.fuel_left();
  load(seed, made, bytes, random);
  return made;
}

void call_alone(uint64_t seed, const Made& made, Random* random) {
  vm::Limits limits = without_limits();
  limits.fuel = random->coin()
                    ? static_cast<int64_t>(random->below(static_cast<uint64_t>(made.fuel) + 1))
                    : made.fuel - 1 + static_cast<int64_t>(random->below(3));
  if (random->coin()) limits.memory = static_cast<size_t>(random->magnitude(1 << 12, 1 << 22));
  vm::Machine machine(made.program, limits);
  std::string found;
  const bool ended = hold(seed, "a call", limits, [&] { found = call(&machine, made); });
  if (ended && found != made.expected) finding(seed, cat("gave ", found, ", not ", made.expected));
  if (ended && limits.fuel < made.fuel) {
    finding(seed, cat("takes ", made.fuel, " units of fuel, and ended with ", limits.fuel));
  }
  if (!ended && limits.fuel >= made.fuel && limits.memory == 0) finding(seed, "had enough fuel");
  machine.set_limits(without_limits());
  if ((found = call(&machine, made)) != made.expected) {
    finding(seed, cat("gave ", found, " after an error, not ", made.expected));
  }
}

void call_endless(uint64_t seed, const Ref<vm::Program>& endless, const std::vector<Made>& inner,
                  Random* random) {
  vm::Limits limits = without_limits();
  const bool in_time = random->coin();
  if (in_time) limits.deadline = nanoseconds(random->magnitude(100'000, 20'000'000));
  if (!in_time || random->coin()) limits.fuel = random->magnitude(1, 2'000'000);
  if (random->coin()) limits.memory = static_cast<size_t>(random->magnitude(1 << 16, 1 << 23));
  if (random->coin()) limits.depth = static_cast<uint32_t>(random->magnitude(2, 200'000));
  const int64_t every = random->magnitude(1, 100'000);  // so many turns call another program
  const Function host = Function::from_typed([&](int64_t i) {
    if (i % every != 0) return int64_t{1};
    const Made& made = inner[static_cast<size_t>(i / every) % inner.size()];
    vm::Machine machine(made.program, without_limits());
    if (call(&machine, made) != made.expected)
      finding(seed, "a call within a call gave another value");
    return int64_t{1};
  });
  const char* const name = kEndlessNames[random->below(std::size(kEndlessNames))];
  vm::Machine machine(endless, limits);
  if (hold(seed, name, limits, [&] { machine.call(name, host, int64_t{0}); })) {
    finding(seed, cat(name, " ended"));
  }
}

void check(uint64_t seed, const Ref<vm::Program>& endless) {
  Random random(seed);
  std::vector<Made> made;
  for (uint64_t i = 0; i < kInner; ++i) made.push_back(make(seed * kInner + i, &random));
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Random own(seed * kThreads + t + 1);
      for (int i = 0; i < kCallsOfAThread; ++i) {
        call_alone(seed, made[own.below(made.size())], &own);
        call_endless(seed, endless, made, &own);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: random_limits COUNT FIRST\n");
    return 2;
  }
  driver::initialise();
  vm::register_builtins();
  const uint64_t count = std::strtoull(argv[1], nullptr, 10),
                 first = std::strtoull(argv[2], nullptr, 10);
  driver::CompileOptions options;
  options.libraries = "none";
  const Ref<vm::Program> endless = vm::Program::from_unit(
      driver::generate_code(driver::run_passes(module_of(kEndless), options), options), {});
  for (uint64_t seed = first; count == 0 || seed < first + count; ++seed) {
    try {
      check(seed, endless);
    } catch (const Error& error) {
      finding(seed, error.render());
    }
  }
  std::printf(
      "%llu programs: %lld loads and calls ended, %lld were stopped, at most %.1f ms late and %lld "
      "bytes beyond their limits; %lld findings\n",
      static_cast<unsigned long long>(count * kInner), static_cast<long long>(ends.load()),
      static_cast<long long>(stops.load()), static_cast<double>(most_late.load()) / 1e6,
      static_cast<long long>(most_beyond.load()), static_cast<long long>(findings.load()));
  return findings == 0 ? 0 : 1;
}
