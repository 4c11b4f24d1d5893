#include "sequence.h"

#include <cstdio>
#include <string>

#include "arguments.h"
#include "bounds.h"

namespace tenon::fuzz {

int run_sequences(int argc, char** argv, SequenceOutcome (*run)(Choices)) {
  const Arguments arguments = read_arguments(argc, argv, Arguments::Files::None);
  run(Choices(uint64_t{0}));  // prepares, which takes its time
  set_bounds(60);
  long values = 0, errors = 0;
  for (uint64_t number = arguments.first; number < arguments.end; ++number) {
    begin_mutant(number);
    const SequenceOutcome outcome = run(Choices(number));
    values += outcome.values;
    errors += outcome.errors;
    if (!outcome.problem.empty()) finding(cat("sequence ", number, ": ", outcome.problem));
  }
  end_mutants();
  std::printf("%llu sequences: %ld calls succeeded, %ld failed; %ld findings\n",
              static_cast<unsigned long long>(arguments.count()), values, errors, Bounds::findings);
  return Bounds::findings ? 1 : 0;
}

}  // namespace tenon::fuzz
