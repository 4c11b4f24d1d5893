// value_programs COUNT FIRST [FOLDER]   checks the random programs of values FIRST to FIRST + COUNT
// - 1;
//                                       forever if COUNT is 0. Writes findings to FOLDER (default:
//                                       here) as vNUMBER.tn, which graph_programs can check again.
//
// Exits with 1 after a finding: results differ, or the parser or compiler fails.
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "check_program.h"
#include "driver/compile.h"
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
  if (argc != 3 && argc != 4) {
    std::fprintf(stderr, "usage: value_programs COUNT FIRST [FOLDER]\n");
    return 2;
  }
  driver::initialise();
  const uint64_t count = std::strtoull(argv[1], nullptr, 10);
  const uint64_t first = std::strtoull(argv[2], nullptr, 10);
  int findings = 0;
  for (uint64_t seed = first; count == 0 || seed < first + count; ++seed) {
    const std::string text = value_program(seed);
    const std::string found = check(text, seed);
    if (found.empty()) continue;
    ++findings;
    const std::string path = cat(argc == 4 ? argv[3] : ".", "/v", seed, ".tn");
    std::ofstream(path) << text;
    std::printf("%s, seed %llu: %s\n", path.c_str(), static_cast<unsigned long long>(seed),
                found.substr(0, 400).c_str());
    std::fflush(stdout);
  }
  return findings == 0 ? 0 : 1;
}
