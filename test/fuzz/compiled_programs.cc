// compiled_programs COUNT FIRST: generates programs FIRST to FIRST + COUNT - 1 as vm_programs does,
// and runs their functions as bytecode and as compiled code, under the same limits. Both must give
// the same results, the same errors with the same frames, and use the same fuel. Exits with 0 if
// there is no finding. A program depends only on its number.
#include <cstdio>

#include "arguments.h"
#include "bounds.h"
#include "codegen/llvm/emit.h"
#include "driver/compile.h"
#include "instruction_generator.h"
#include "object/reflect.h"
#include "tnx_target.h"

namespace tenon::fuzz {
namespace {

// What calls of a function did, as text. Counts those that returned a value.
std::string outcome_of(vm::Machine& m, uint32_t function, std::span<const AnyView> args,
                       long* values) {
  std::string text;
  try {
    text = repr(m.call(function, args), 4000);
    ++*values;
  } catch (const Error& error) {
    text = error.render();
  }
  return cat(text, "\nfuel ", m.fuel_left());
}

struct Outcome {
  long calls = 0;
  long values = 0;  // that calls of compiled code returned
  std::string problem;
};

Outcome compare_modes(Choices& choices) {
  Outcome outcome;
  vm::Unit unit = make_unit(choices).unit;
  // Programs without control flow are compiled, too.
  unit.kernels.push_back(driver::code_for_host(unit));
  vm::ProgramOptions options;
  options.allow_missing = true;
  const auto compiled = vm::Program::from_unit(unit, options);
  options.bytecode_only = true;
  const auto bytecode = vm::Program::from_unit(unit, options);
  if (!compiled->compiled()) {
    outcome.problem = "the program has no compiled code";
    return outcome;
  }
  vm::Limits limits;
  limits.memory = 8 << 20;
  limits.depth = 200;
  limits.threads = 1;
  for (uint32_t f = 0; f < unit.functions.size() && outcome.problem.empty(); ++f) {
    for (uint64_t round = 0; round < 6 && outcome.problem.empty(); ++round) {
      // With little fuel, calls end at different places.
      limits.fuel = round < 2 ? 5000 : static_cast<int64_t>(choices.below(40));
      // So that memory that nothing has written reads the same.
      const vm::MachineOptions poison{.poison = true};
      vm::Machine a(bytecode, limits, poison), b(compiled, limits, poison);
      std::vector<Any> args;
      for (const vm::Param& p : unit.functions[f].params) {
        args.push_back(argument(p.type, round == 0 ? 3 : args.size() * 3 + f + round));
      }
      const std::vector<AnyView> views(args.begin(), args.end());
      long values = 0;
      const std::string expected = outcome_of(a, f, views, &values);
      const std::string found = outcome_of(b, f, views, &outcome.values);
      ++outcome.calls;
      if (expected == found) continue;
      outcome.problem = cat("function ", f, ", round ", round, "\nbytecode: ", expected,
                            "\ncompiled: ", found, "\n", vm::disassemble(unit));
    }
  }
  return outcome;
}

}  // namespace
}  // namespace tenon::fuzz

int main(int argc, char** argv) {
  using namespace tenon;
  using namespace tenon::fuzz;
  const Arguments arguments = read_arguments(argc, argv, Arguments::Files::None);
  driver::initialise();
  set_bounds(60);
  long calls = 0, kept = 0;
  for (uint64_t number = arguments.first; number < arguments.end; ++number) {
    begin_mutant(number);
    Choices choices(number);
    try {
      const Outcome outcome = compare_modes(choices);
      calls += outcome.calls;
      kept += outcome.values > 0;
      if (!outcome.problem.empty()) finding(cat("program ", number, ": ", outcome.problem));
    } catch (const Error& error) {
      finding(cat("program ", number, ": ", error.render()));
    }
  }
  end_mutants();
  std::printf("%llu programs, %ld of which returned a value: %ld calls, %ld findings\n",
              static_cast<unsigned long long>(arguments.count()), kept, calls, Bounds::findings);
  return Bounds::findings ? 1 : 0;
}
