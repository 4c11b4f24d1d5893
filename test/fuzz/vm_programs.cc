// vm_programs COUNT FIRST: generates programs FIRST to FIRST + COUNT - 1 from the table of
// instructions, writes and reads them, and calls their functions under tight limits (tnx_target.h);
// then violates each rule of the verifier in each, which must refuse it because of that rule. Exits
// with 0 if there is no finding. A program depends only on its number.
#include <cstdio>

#include "arguments.h"
#include "bounds.h"
#include "program_target.h"

int main(int argc, char** argv) {
  using namespace tenon;
  using namespace tenon::fuzz;
  const Arguments arguments = read_arguments(argc, argv, Arguments::Files::None);
  vm::register_builtins();
  set_bounds(60);
  long tried = 0, kept = 0, returned = 0, values = 0, errors = 0, refused = 0;
  for (uint64_t number = arguments.first; number < arguments.end; ++number) {
    begin_mutant(number);
    Choices choices(number);
    const ProgramOutcome outcome = run_program(choices);
    if (!outcome.problem.empty()) finding(cat("program ", number, ": ", outcome.problem));
    tried += outcome.tried;
    kept += outcome.kept;
    returned += outcome.run.values > 0;
    values += outcome.run.values;
    errors += outcome.run.errors;
    refused += outcome.refused;
  }
  end_mutants();
  std::printf(
      "%llu programs, %ld of which returned a value (%ld ran while they were made, %ld kept): %ld "
      "calls gave values, %ld errors; %ld near misses refused; %ld findings\n",
      static_cast<unsigned long long>(arguments.count()), returned, tried, kept, values, errors,
      refused, Bounds::findings);
  return Bounds::findings ? 1 : 0;
}
