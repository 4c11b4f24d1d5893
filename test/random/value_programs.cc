// value_programs COUNT FIRST [FOLDER]   checks random programs of values. Writes findings as
//                                       vNUMBER.tn.
// value_programs FILE.tn SEED           checks @main of a textual program on inputs of that seed.
//
// A finding: results differ, or the parser, the program or the compiler fails.
#include "check_program.h"
#include "check_seeds.h"
#include "support/text.h"
#include "value_program.h"

int main(int argc, char** argv) {
  using namespace tenon;                   // NOLINT: a program of a few lines
  using namespace tenon::random_programs;  // NOLINT
  const auto check_text = [](const std::string& text, uint64_t seed) {
    return find_difference(text, seed, kValueChecks);
  };
  const auto check = [&](uint64_t seed, const Report& report) {
    const std::string text = value_program(seed);
    const std::string difference = check_text(text, seed);
    if (!difference.empty()) report({cat("v", seed), text, difference});
  };
  return check_seeds(argc, argv, check, check_text);
}
