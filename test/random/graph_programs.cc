// graph_programs COUNT FIRST [FOLDER]   checks random graphs, each with static and symbolic sizes.
//                                       Writes findings as NUMBER.tn and NUMBERs.tn.
// graph_programs FILE.tn SEED           checks @main of a textual program on inputs of that seed.
//
// A finding: results differ or the compiler fails.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string_view>

#include "check_program.h"
#include "check_seeds.h"
#include "driver/compile.h"
#include "graph/ir/check.h"
#include "graph/ir/text.h"
#include "graph_program.h"

namespace {

using namespace tenon;
using namespace tenon::random_programs;

constexpr int kFound = 1, kUsage = 2;

// Every third seed has NaN among its inputs, which -O3 may lose after products.
std::string check(const graph::Module& module, uint64_t seed) {
  const bool special = seed % 3 == 0;
  Checks checks;
  if (special) std::erase(checks.levels, 3);
  return find_difference(module, random_inputs(**module->functions.find("main"), seed, special),
                         checks);
}

int check_file(const std::string& path, uint64_t seed) {
  std::ifstream in(path);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  graph::Module module;
  try {
    module = graph::parse_module(text, path);
    graph::check_module(module);
    if (!module->functions.find("main")) throw Error(ErrorKind::Usage, "no @main");
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.render().c_str());
    return kUsage;
  }
  const std::string found = check(module, seed);
  if (found.empty()) return 0;
  std::printf("%s\n", found.c_str());
  return kFound;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]).ends_with(".tn")) {
    driver::initialise();
    return check_file(argv[1], std::strtoull(argv[2], nullptr, 10));
  }
  return check_seeds(argc, argv, [](uint64_t seed, const Report& report) {
    for (const bool symbolic : {false, true}) {
      const graph::Module module = graph_program(seed, symbolic);
      const std::string difference = check(module, seed);
      if (difference.empty()) continue;
      report({cat(seed, symbolic ? "s" : ""), graph::to_text(module), difference});
    }
  });
}
