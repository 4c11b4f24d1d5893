// value_programs COUNT FIRST [FOLDER]   checks random programs of values. Writes findings as
//                                       vNUMBER.tn, which graph_programs can check again.
//
// A finding: results differ, or the parser or compiler fails.
#include "check_program.h"
#include "check_seeds.h"
#include "graph/ir/check.h"
#include "graph/ir/text.h"
#include "graph_program.h"
#include "support/error.h"
#include "value_program.h"

namespace {

using namespace tenon;
using namespace tenon::random_programs;

std::string check(const std::string& text, uint64_t seed) {
  try {
    const graph::Module module = graph::parse_module(text, "value.tn");
    graph::check_module(module);
    const auto inputs =
        random_inputs(**module->functions.find("main"), seed, /*special=*/seed % 3 == 0);
    return find_difference(module, inputs,
                           {.levels = {0, 2}, .libraries = false, .may_fail = false});
  } catch (const Error& error) {
    return error.render();
  }
}

}  // namespace

int main(int argc, char** argv) {
  return check_seeds(argc, argv, [](uint64_t seed, const Report& report) {
    const std::string text = value_program(seed);
    const std::string difference = check(text, seed);
    if (!difference.empty()) report({cat("v", seed), text, difference});
  });
}
