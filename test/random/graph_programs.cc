// graph_programs COUNT FIRST [FOLDER]   checks random graphs, each with static and symbolic sizes.
//                                       Writes findings as NUMBER.tn and NUMBERs.tn.
// graph_programs FILE.tn SEED           checks @main of a textual program on inputs of that seed.
//
// A finding: results differ or the compiler fails.
#include "check_program.h"
#include "check_seeds.h"
#include "graph/ir/text.h"
#include "graph_program.h"
#include "support/text.h"

int main(int argc, char** argv) {
  using namespace tenon;                   // NOLINT: a program of a few lines
  using namespace tenon::random_programs;  // NOLINT
  const auto check = [](uint64_t seed, const Report& report) {
    for (const bool symbolic : {false, true}) {
      const graph::Module module = graph_program(seed, symbolic);
      const std::string difference = find_difference(module, seed, kGraphChecks);
      if (difference.empty()) continue;
      report({cat(seed, symbolic ? "s" : ""), graph::to_text(module), difference});
    }
  };
  return check_seeds(argc, argv, check, [](const std::string& text, uint64_t seed) {
    return find_difference(text, seed, kGraphChecks);
  });
}
