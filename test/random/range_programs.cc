// range_programs COUNT FIRST [FOLDER]   checks programs whose numbers span the range of f32. Writes
//                                       findings as rNUMBER.tn.
//
// A finding: results differ by more than rounding explains, or the compiler fails.
#include "check_seeds.h"
#include "graph/ir/text.h"
#include "object/reflect.h"
#include "range_program.h"

int main(int argc, char** argv) {
  using namespace tenon;                   // NOLINT: a program of a few lines
  using namespace tenon::random_programs;  // NOLINT
  return check_seeds(argc, argv, [](uint64_t seed, const Report& report) {
    const RangeProgram program = range_program(seed);
    const std::string difference = find_difference(program);
    if (difference.empty()) return;
    std::string text = graph::to_text(program.module);
    for (const Any& input : program.inputs) text += cat("// ", repr(input, 4000), "\n");
    report({cat("r", seed), text, difference});
  });
}
