// Runs the programs on the product's machine, the register machine and the stack machine, checks
// that results agree, and prints the table of docs/stack-vs-register.md.
//
// Usage: bench_stack_vs_register [--rounds N]      the table
//        bench_stack_vs_register --check           only compares results
//        bench_stack_vs_register --code FUNCTION   a function's code in each encoding
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "machine.h"
#include "product.h"
#include "support/error.h"
#include "vm/executable/read_file.h"

namespace tenon::bench {
namespace {

// ---- the functions that the programs call ----

// With `tracing`, the operands of all calls so far.
bool tracing = false;
uint64_t trace = 0;

template <int given_back>
int operation(void*, const tenon_any* args, int32_t count, tenon_any* result) {
  if (tracing) {
    for (int32_t i = 0; i < count; ++i) {
      trace = trace * 31 + reinterpret_cast<uint64_t>(args[i].v.object);
    }
    trace = trace * 31 + given_back;
  }
  *result = args[given_back];
  tenon_object_retain(result->v.object);
  return 0;
}

struct NamedOperation {
  const char* name;
  tenon_packed_call call;
};
constexpr NamedOperation kOperations[] = {
    {"bench.same", operation<0>}, {"bench.first", operation<0>}, {"bench.second", operation<1>}};

void require(int result) {
  if (result == 0) return;
  std::fprintf(stderr, "%s\n", tenon_last_error());
  std::exit(1);
}

// A value that owns its reference.
struct Owned {
  tenon_any any = TENON_NONE_VALUE;

  Owned() = default;
  explicit Owned(int64_t n) {
    any.type_index = TENON_INT;
    any.v.i = n;
  }
  explicit Owned(const Value& value) : any(value.any()) {}
  Owned(Owned&& other) noexcept : any(other.any) { other.any = TENON_NONE_VALUE; }
  ~Owned() { tenon_any_release(&any); }
  Value value() const { return Value::of(any); }
};

// ---- the programs ----

int64_t fib_calls(int64_t n) {
  return n < 2 ? 1 : 1 + fib_calls(n - 1) + fib_calls(n - 2);
}
// The calls of ackermann(2, n), tail calls included.
int64_t ackermann_calls(int64_t n) {
  return 2 * n * n + 7 * n + 5;
}

struct Program {
  const char* kind;
  const char* function;
  const char* unit;  // of the figures
  int64_t n;
  std::function<int64_t(int64_t n, const Value& result)> units;
  std::vector<int64_t> before = {};  // arguments before n
  int objects = 0;                   // arguments after it
};

int64_t per_n(int64_t n, const Value&) {
  return n;
}
int64_t per_result(int64_t, const Value& result) {
  return result.integer();
}

const std::vector<Program>& programs() {
  static const std::vector<Program> list = {
      {"straight line",
       "graph",
       "operation",
       10'000,
       [](int64_t n, auto&) { return 20 * n; },
       {},
       5},
      {"straight line", "mix", "operation", 20'000, [](int64_t n, auto&) { return 15 * n; }},
      {"branches", "collatz", "number", 3'000, per_n},
      {"branches", "classify", "iteration", 300'000, per_n},
      {"recursion", "fib", "call", 25, [](int64_t n, auto&) { return fib_calls(n); }},
      {"recursion",
       "ackermann",
       "call",
       300,
       [](int64_t n, auto&) { return ackermann_calls(n); },
       {2}},
      {"loops", "sum", "iteration", 500'000, per_n},
      {"loops", "mandelbrot", "iteration", 100, per_result},
      {"data", "lists", "element", 20'000, per_n},
      {"data", "trees", "insertion", 5'000, per_n},
  };
  return list;
}

std::vector<Owned> arguments(const Program& program, int64_t n) {
  std::vector<Owned> out;
  for (const int64_t i : program.before) out.emplace_back(i);
  out.emplace_back(n);
  for (int i = 0; i < program.objects; ++i) {
    require(tenon_cell_create(0, nullptr, 0, &out.emplace_back().any));
  }
  return out;
}

// ---- the machines ----

class Machines {
 public:
  static constexpr const char* kNames[] = {"Tenon", "register", "stack", "stack, borrowing"};
  static constexpr size_t kCount = std::size(kNames), kProduct = 0, kRegisters = 1;

  explicit Machines(const std::string& file)
      : unit_(vm::read_unit(vm::map_file(file)).unit),
        product_(unit_),
        registers_(lower_to_registers(unit_)),
        stacks_{lower_to_stack(unit_, Operands::Owned), lower_to_stack(unit_, Operands::Borrowed)},
        register_machine_(registers_, operations()),
        stack_machines_{{stacks_[0], operations()}, {stacks_[1], operations()}} {
    for (const NamedOperation& o : kOperations) {
      Owned function;
      require(tenon_function_create(o.call, nullptr, nullptr, &function.any));
      require(tenon_function_register(o.name, &function.any, 0));
    }
    require(tenon_program_load(file.c_str(), &program_.any));
    require(tenon_machine_create(&program_.any, &machine_.any));
  }

  template <bool counted>
  Owned call(size_t machine, const Program& program, const std::vector<Owned>& args) {
    if (machine == kProduct) {
      std::vector<tenon_any> views;
      for (const Owned& arg : args) views.push_back(arg.any);
      Owned result;
      require(tenon_machine_call(&machine_.any, program.function, views.data(),
                                 static_cast<int32_t>(views.size()), &result.any));
      return result;
    }
    std::vector<Value> values;
    for (const Owned& arg : args) values.push_back(arg.value());
    const uint32_t function = index(program.function);
    return Owned(machine == kRegisters
                     ? run_registers<counted>(register_machine_, function, values)
                     : run_stack<counted>(stack_machines_[machine - 2], function, values));
  }

  // Of the last counted call; the product's follow from the register machine's.
  uint64_t instructions(size_t machine) const {
    if (machine == kProduct) return product_.executed(registers_, register_machine_.executed);
    return counts(machine).instructions;
  }
  const Counts& counts(size_t machine) const {
    return machine <= kRegisters ? register_machine_.counts : stack_machines_[machine - 2].counts;
  }
  std::string code_bytes(size_t machine, const Program& program) const;
  std::string code_text(const char* name) const;

 private:
  uint32_t index(std::string_view name) const {
    for (uint32_t i = 0; i < unit_.functions.size(); ++i) {
      if (unit_.functions[i].name == name) return i;
    }
    throw Error(ErrorKind::Usage, cat("there is no function ", name));
  }
  std::vector<tenon_packed_call> operations() const {
    std::vector<tenon_packed_call> out;
    for (const vm::PackedName& packed : unit_.packed) {
      const auto* found = std::ranges::find(kOperations, packed.name, &NamedOperation::name);
      if (found == std::end(kOperations)) {
        throw Error(ErrorKind::Usage, cat("the benchmark has no function ", packed.name));
      }
      out.push_back(found->call);
    }
    return out;
  }
  // The function and those that it calls.
  std::vector<uint32_t> reached(uint32_t function) const;
  const Code& code(size_t machine) const {
    return machine == kRegisters ? registers_ : stacks_[machine - 2];
  }

  vm::Unit unit_;
  Product product_;
  Code registers_, stacks_[2];
  Machine register_machine_, stack_machines_[2];
  Owned program_, machine_;
};

std::vector<uint32_t> Machines::reached(uint32_t function) const {
  std::vector<uint32_t> out = {function};
  for (size_t i = 0; i < out.size(); ++i) {
    const std::vector<vm::Word>& code = unit_.functions[out[i]].code;
    vm::Instruction in;
    for (uint32_t at = 0; at < code.size() && vm::decode(code, at, &in); at += in.words()) {
      for (const vm::Word word : in.operands) {
        const vm::Arg arg(word);
        if (arg.is(vm::ArgKind::Function) && std::ranges::count(out, arg.index()) == 0) {
          out.push_back(arg.index());
        }
      }
    }
  }
  return out;
}

std::string Machines::code_bytes(size_t machine, const Program& program) const {
  const std::vector<uint32_t> functions = reached(index(program.function));
  if (machine == kProduct) {
    return cat(product_.file_bytes(functions), ", decoded ", product_.decoded_bytes(functions));
  }
  uint64_t bytes = 0;
  for (const uint32_t f : functions) {
    bytes += code(machine).functions[f].end - code(machine).functions[f].entry;
  }
  return cat(bytes);
}

std::string Machines::code_text(const char* name) const {
  const uint32_t function = index(name);
  std::string out = cat(kNames[kRegisters], "\n", register_text(registers_, function));
  for (size_t i = 2; i < kCount; ++i) {
    out += cat("\n", kNames[i], "\n", stack_text(code(i), function));
  }
  return out;
}

// ---- checks and measurements ----

// Throws unless all machines give the same for that n, counted or not.
void check(Machines& machines, const Program& program, int64_t n) {
  const std::vector<Owned> args = arguments(program, n);
  Value expected{};
  uint64_t expected_trace = 0;
  tracing = true;
  for (size_t i = 0; i < Machines::kCount; ++i) {
    for (const bool counted : {false, true}) {
      trace = 0;
      const Value result =
          (counted ? machines.call<true>(i, program, args) : machines.call<false>(i, program, args))
              .value();
      if (i == 0) {
        expected = result;
        expected_trace = trace;
      }
      if (result != expected || trace != expected_trace) {
        throw Error(ErrorKind::Runtime, cat("results of ", program.function, " differ"))
            .found(cat(result.payload, " for ", n, " on the machine ", Machines::kNames[i]))
            .expected(cat(expected.payload));
      }
    }
    for (const Owned& arg : args) {
      if (arg.value().is_object() && arg.value().object()->strong_count() != 1) {
        throw Error(ErrorKind::Runtime, cat(program.function, " leaks references on the machine ",
                                            Machines::kNames[i]));
      }
    }
  }
  tracing = false;
}

void check_all(Machines& machines, bool large) {
  for (const Program& program : programs()) {
    for (const int64_t n : {0, 1, 2, 3, 7, 12}) check(machines, program, n);
    if (large) check(machines, program, program.n);
  }
}

// CPU time of this thread, since the machine may be shared.
double now() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<int64_t>(values.size() / 2));
  return values[values.size() / 2];
}

void print_rows(Machines& machines, const Program& program, int rounds) {
  const std::vector<Owned> args = arguments(program, program.n);
  std::vector<double> times[Machines::kCount], ratios[Machines::kCount];
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < Machines::kCount; ++i) {
      const double begin = now();
      machines.call<false>(i, program, args);
      times[i].push_back(now() - begin);
    }
    for (size_t i = 0; i < Machines::kCount; ++i) {
      ratios[i].push_back(times[i].back() / times[Machines::kRegisters].back());
    }
  }
  Value result{};
  for (size_t i = 0; i < Machines::kCount; ++i) {
    result = machines.call<true>(i, program, args).value();
  }
  const auto units = static_cast<double>(program.units(program.n, result));
  for (size_t i = 0; i < Machines::kCount; ++i) {
    std::printf(
        "| %s | %s, per %s | %s | %.1f | %s | %.1f | %.2f | ", program.kind, program.function,
        program.unit, Machines::kNames[i], static_cast<double>(machines.instructions(i)) / units,
        machines.code_bytes(i, program).c_str(), median(times[i]) / units, median(ratios[i]));
    const Counts& counts = machines.counts(i);
    if (i == Machines::kProduct) {
      std::printf("|\n");
    } else {
      std::printf("%.1f |\n", static_cast<double>(counts.retains + counts.releases) / units);
    }
  }
}

int run(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "--rounds";
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 21;
  Machines machines(TENON_BENCH_PROGRAMS);
  if (command == "--check" && argc == 2) {
    check_all(machines, false);
  } else if (command == "--code" && argc == 3) {
    std::printf("%s", machines.code_text(argv[2]).c_str());
  } else if (command == "--rounds" && rounds > 0) {
    check_all(machines, true);
    std::printf(
        "| kind | program | machine | instructions | code bytes | ns | to register | counts |\n");
    std::printf("| --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (const Program& program : programs()) print_rows(machines, program, rounds);
  } else {
    throw Error(ErrorKind::Usage,
                "usage: bench_stack_vs_register [--rounds N | --check | --code FUNCTION]");
  }
  return 0;
}

}  // namespace
}  // namespace tenon::bench

int main(int argc, char** argv) {
  try {
    return tenon::bench::run(argc, argv);
  } catch (const tenon::Error& e) {
    std::fprintf(stderr, "%s\n", e.render().c_str());
    return 1;
  }
}
