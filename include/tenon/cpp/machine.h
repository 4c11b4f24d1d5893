// Machines: programs running under limits. Included by tenon/tenon.h.
#pragma once

#include <cmath>
#include <numeric>
#include <thread>

#include "tenon/cpp/instrument.h"

namespace tenon {
inline namespace v1 {

/// Seconds per call, one number for each repetition.
struct BenchmarkResult {
  std::vector<double> seconds;

  double mean() const {
    return std::accumulate(seconds.begin(), seconds.end(), 0.0) /
           static_cast<double>(seconds.size());
  }
  double min() const { return std::ranges::min(seconds); }
  double max() const { return std::ranges::max(seconds); }
  double median() const {
    std::vector<double> sorted = seconds;
    std::ranges::sort(sorted);
    const size_t half = sorted.size() / 2;
    return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  }
  /// The standard deviation.
  double deviation() const {
    double sum = 0;
    for (const double s : seconds) sum += (s - mean()) * (s - mean());
    return std::sqrt(sum / static_cast<double>(seconds.size()));
  }
};

struct BenchmarkOptions {
  int number = 10;              ///< calls per repetition, at least 1
  int repeat = 1;               ///< repetitions, at least 1
  Nanoseconds min_repeat = {};  ///< `number` grows until a repetition takes this long
  Nanoseconds cooldown = {};    ///< the length of a pause
  int repeats_to_cooldown = 1;  ///< repetitions between two pauses
};

/// How a machine obtains the memory of tensors.
enum class Memory : int32_t {
  pooled = TENON_MEMORY_POOLED,  ///< keeps freed blocks for later allocations
  naive = TENON_MEMORY_NAIVE  ///< takes each block from the system and returns it when it is freed
};

/// What a machine's memory pool has done, in bytes and blocks of tensor memory.
struct MemoryStats {
  Memory memory;
  int64_t allocated;           ///< bytes that the machine holds: in use, even by results, or pooled
  int64_t peak;                ///< the most bytes that were allocated at once
  int64_t pooled;              ///< bytes of freed blocks that are kept for later allocations
  int64_t call_peak;           ///< the most bytes in use at once in the last call
  int64_t allocations;         ///< blocks handed out
  int64_t system_allocations;  ///< of these, blocks that were new from the system
  int64_t call_bytes;          ///< the most bytes that the last call's code asked for at once
};

class Machine;

/// A function of a machine: `auto f = machine["main"]`. The machine must stay in place while it is
/// called; converted to a Function or Value, it keeps what it needs.
class MachineFunction {
 public:
  template <class... A>
  Value operator()(A&&... args) const;
  /// Throws UsageError for an unknown function. Calls run on the machine, one at a time.
  operator Function() const;

 private:
  friend class Machine;
  MachineFunction(Machine* machine, std::string name) : machine_(machine), name_(std::move(name)) {}
  Machine* machine_;
  std::string name_;
};

/// Runs a program's functions, with a stack, memory pools and limits of its own. It runs one call
/// at a time and stays usable after every error. Only `cancel` may be called while another thread
/// uses it.
///
///   Machine machine(program, {.deadline = std::chrono::milliseconds(50)});
///   Tensor y = machine["main"](x).as<Tensor>();
class Machine {
 public:
  /// `inter_op` threads, but at most those of the limits, run the calls of a group, each on one:
  /// programs that are compiled with `--inter-op` have groups.
  explicit Machine(Program program, const Limits& limits = {}, Memory memory = Memory::pooled,
                   int inter_op = 1)
      : program_(std::move(program)) {
    const tenon_limits l = limits.raw();
    tenon_machine_options options = TENON_MACHINE_DEFAULTS;
    options.memory = static_cast<int32_t>(memory);
    options.limits = &l;
    options.inter_op = inter_op;
    detail::check(tenon_machine_create_with(program_.raw(), &options, machine_.out()));
  }
  Machine(Machine&&) noexcept = default;
  Machine& operator=(Machine&&) noexcept = default;

  const Program& program() const noexcept { return program_; }
  /// The machine for functions of the C interface, borrowed.
  const tenon_any* raw() const noexcept { return machine_.raw(); }

  /// A function of the program, or a saved one, to call on this machine, which must stay in place.
  MachineFunction operator[](std::string function) { return {this, std::move(function)}; }
  /// Calls a function of the program, or a saved one. Compact tensors are passed without copying;
  /// the program only reads them. Functions that it returns carry the machine's limits.
  template <class... A>
  Value call(const std::string& function, A&&... args) {
    if constexpr (sizeof...(A) == 0) {
      const auto saved = saved_.find(function);
      if (saved != saved_.end()) return run(machine_, saved->second.first, saved->second.second);
    }
    Value result;
    detail::with_arguments(
        [&](const tenon_any* values, int32_t n) {
          detail::check(tenon_machine_call(raw(), function.c_str(), values, n, result.out()));
        },
        std::forward<A>(args)...);
    return result;
  }
  /// Calls a function value of any program on this machine, under the limits of both.
  template <class... A>
  Value call(const Function& function, A&&... args) {
    Value result;
    detail::with_arguments(
        [&](const tenon_any* values, int32_t n) {
          detail::check(
              tenon_machine_call_function(raw(), function.raw(), values, n, result.out()));
        },
        std::forward<A>(args)...);
    return result;
  }
  /// The same as `call`, with the results in tensors of the caller: see Function::call_into.
  template <class... A>
  Value call_into(const std::string& function, const std::vector<Value>& outputs, A&&... args) {
    Value result;
    detail::with_arguments(
        [&](const tenon_any* values, int32_t n) {
          detail::check(tenon_machine_call_into(raw(), function.c_str(), values, n,
                                                reinterpret_cast<const tenon_any*>(outputs.data()),
                                                static_cast<int32_t>(outputs.size()),
                                                result.out()));
        },
        std::forward<A>(args)...);
    return result;
  }
  /// Calls a function on another thread, with the limits of this machine. Until the future is
  /// ready, only `cancel` may be called.
  template <class... A>
  std::future<Value> submit(std::string function, A&&... args) {
    return std::async(std::launch::async,
                      [machine = machine_, function = std::move(function),
                       arguments = std::vector<Value>{Value(std::forward<A>(args))...}] {
                        return run(machine, function, arguments);
                      });
  }

  /// The limits of the calls that follow. Function values that earlier calls returned keep theirs.
  void set_limits(const Limits& limits) {
    const tenon_limits l = limits.raw();
    detail::check(tenon_machine_set_limits(raw(), &l));
  }
  /// Stops the running call with ExecutionError; from any thread. Without a running call, does
  /// nothing.
  void cancel() const { detail::check(tenon_machine_cancel(raw())); }

  /// May be called from any thread.
  MemoryStats memory() const {
    tenon_memory_stats stats{};
    stats.size = sizeof stats;
    detail::check(tenon_machine_memory(raw(), &stats));
    return {static_cast<Memory>(stats.memory),
            stats.allocated,
            stats.peak,
            stats.pooled,
            stats.call_peak,
            stats.allocations,
            stats.system_allocations,
            stats.call_bytes};
  }
  /// Returns the pooled memory to the system.
  void trim() { detail::check(tenon_machine_trim(raw())); }
  /// Makes the machine call `f(const CallEvent&)` before and after each call within its program,
  /// until another instrument replaces it. `f` returns an Action, or nothing. Its exceptions end
  /// the program's call and leave it as themselves.
  template <class F>
  void set_instrument(F f) {
    auto context = std::make_unique<F>(std::move(f));
    detail::check(tenon_machine_set_instrument(raw(), &detail::Instrument<F>::call, context.get(),
                                               &detail::Instrument<F>::release));
    context.release();
  }
  void remove_instrument() {
    detail::check(tenon_machine_set_instrument(raw(), nullptr, nullptr, nullptr));
  }

  /// Keeps the arguments for `invoke_stateful`, in the order of the parameters.
  template <class... A>
  void set_input(const std::string& function, A&&... args) {
    keep_inputs(function, {Value(std::forward<A>(args))...});
  }
  /// The same by name: `machine.set_inputs("main", {{"x", x}, {"mask", mask}})`.
  void set_inputs(const std::string& function, const std::map<std::string, Value>& named) {
    std::vector<Value> inputs;
    const Signature signature = program_.signature(function);
    for (const Parameter& p : signature.params) {
      const auto found = named.find(p.name);
      if (found != named.end()) inputs.push_back(found->second);
    }
    if (named.size() != inputs.size()) fail_inputs(function, signature, named.size());
    keep_inputs(function, std::move(inputs));
  }
  /// Calls the function with the arguments that were set, and keeps the result.
  void invoke_stateful(const std::string& function) {
    const auto found = inputs_.find(function);
    if (found == inputs_.end()) {
      throw UsageError("no inputs are set for '" + function + "'",
                       {{"help", "call set_input first"}});
    }
    outputs_[function] = run(machine_, function, found->second);
  }
  /// The result of the last `invoke_stateful`. With indices, a part of it: `{0, 1}` is field 1 of
  /// field 0.
  Value get_outputs(const std::string& function, std::initializer_list<size_t> path = {}) const {
    const auto found = outputs_.find(function);
    if (found == outputs_.end()) {
      throw UsageError("'" + function + "' has no outputs",
                       {{"help", "call invoke_stateful first"}});
    }
    Value result = found->second;
    for (const size_t index : path) result = detail::element(result, index);
    return result;
  }
  /// The output of that name.
  Value get_output(const std::string& function, std::string_view name) const {
    const Value all = get_outputs(function);
    const Signature signature = program_.signature(function);
    std::string names;
    for (size_t i = 0; i < signature.results.size(); ++i) {
      const std::string& known = signature.results[i].name;
      if (known == name) return signature.results.size() == 1 ? all : detail::element(all, i);
      names += (names.empty() ? "" : ", ") + known;
    }
    throw UsageError("'" + function + "' has no output '" + std::string(name) + "'",
                     {{"expected", names}});
  }

  /// Binds arguments to a function, so that `call(saved)` calls it with them. Throws UsageError if
  /// the program has a function of the name `saved`.
  template <class... A>
  void save_function(const std::string& function, const std::string& saved, A&&... args) {
    const std::vector<std::string> taken = program_.functions();
    if (std::ranges::find(taken, saved) != taken.end()) {
      throw UsageError("'" + saved + "' is a function of the program",
                       {{"help", "choose another name"}});
    }
    program_.signature(function);  // throws for an unknown name
    saved_[saved] = {function, {Value(std::forward<A>(args))...}};
  }

  /// A callable that times calls, after one that isn't timed:
  /// `machine.time_evaluator("main", {.repeat = 5})(x).median()`.
  auto time_evaluator(std::string function, const BenchmarkOptions& options = {}) {
    if (options.number < 1 || options.repeat < 1 || options.repeats_to_cooldown < 1) {
      throw UsageError("number, repeat and repeats_to_cooldown must be at least 1");
    }
    return [this, function = std::move(function), options]<class... A>(A&&... args) {
      const std::vector<Value> arguments{Value(std::forward<A>(args))...};
      const auto once = [&] {
        arguments.empty() ? call(function) : run(machine_, function, arguments);
      };
      once();
      BenchmarkResult result;
      int64_t number = options.number;
      for (int done = 1; done <= options.repeat; ++done) {
        result.seconds.push_back(time(once, number, options.min_repeat));
        if (done % options.repeats_to_cooldown == 0 && done < options.repeat) {
          std::this_thread::sleep_for(options.cooldown);
        }
      }
      return result;
    };
  }

 private:
  friend class MachineFunction;
  static Value run(const Value& machine, const std::string& function, std::span<const Value> args) {
    Value result;
    detail::check(tenon_machine_call(machine.raw(), function.c_str(),
                                     reinterpret_cast<const tenon_any*>(args.data()),
                                     static_cast<int32_t>(args.size()), result.out()));
    return result;
  }
  void keep_inputs(const std::string& function, std::vector<Value> inputs) {
    const Signature signature = program_.signature(function);
    if (inputs.size() != signature.params.size()) fail_inputs(function, signature, inputs.size());
    inputs_[function] = std::move(inputs);
    outputs_.erase(function);
  }
  [[noreturn]] static void fail_inputs(const std::string& function, const Signature& signature,
                                       size_t given) {
    throw UsageError(
        "these aren't the inputs of '" + function + "'",
        {{"found", std::to_string(given) + " inputs"}, {"expected", signature.text()}});
  }
  /// Seconds per call.
  template <class F>
  static double time(const F& once, int64_t& number, Nanoseconds at_least) {
    using Clock = std::chrono::steady_clock;
    for (;;) {
      const Clock::time_point start = Clock::now();
      for (int64_t i = 0; i < number; ++i) once();
      const auto took = std::chrono::duration_cast<Nanoseconds>(Clock::now() - start);
      if (took >= at_least)
        return std::chrono::duration<double>(took).count() / static_cast<double>(number);
      // A fifth more than needed, so that the next round is the last.
      const double rounds = 1.2 * static_cast<double>(at_least.count()) /
                            static_cast<double>(std::max<int64_t>(1, took.count()));
      number = std::max(
          number + 1, static_cast<int64_t>(static_cast<double>(number) * std::min(rounds, 100.0)));
    }
  }

  Program program_;
  Value machine_;
  std::map<std::string, std::vector<Value>> inputs_;
  std::map<std::string, Value> outputs_;
  std::map<std::string, std::pair<std::string, std::vector<Value>>> saved_;
};

template <class... A>
Value MachineFunction::operator()(A&&... args) const {
  return machine_->call(name_, std::forward<A>(args)...);
}
inline MachineFunction::operator Function() const {
  const auto saved = machine_->saved_.find(name_);
  if (saved != machine_->saved_.end()) {
    return Function([machine = machine_->machine_, bound = saved->second] {
      return Machine::run(machine, bound.first, bound.second);
    });
  }
  machine_->program_.signature(name_);  // throws for an unknown name
  return Function([machine = machine_->machine_, name = name_](std::span<const Value> args) {
    return Machine::run(machine, name, args);
  });
}

/// Calls a function on another thread, on a machine of its own. `get()` on the future returns the
/// result or throws; the future's destructor waits.
template <class... A>
std::future<Value> submit(const Program& program, std::string function, A&&... args) {
  return Machine(program).submit(std::move(function), std::forward<A>(args)...);
}

}  // namespace v1
}  // namespace tenon
