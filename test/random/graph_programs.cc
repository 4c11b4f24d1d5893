// graph_programs COUNT FIRST [FOLDER]   checks the random programs FIRST to FIRST + COUNT - 1, each
//                                       with static and symbolic sizes; forever if COUNT is 0.
//                                       Writes findings to FOLDER (default: here) as NUMBER.tn.
// graph_programs FILE.tn SEED           checks @main of a textual program on inputs of that seed.
//
// Exits with 1 after a finding: results differ or the compiler fails.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "check_program.h"
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

int check_seeds(uint64_t count, uint64_t first, const std::string& folder) {
  int findings = 0;
  for (uint64_t seed = first; count == 0 || seed < first + count; ++seed) {
    for (const bool symbolic : {false, true}) {
      const graph::Module module = graph_program(seed, symbolic);
      const std::string found = check(module, seed);
      if (found.empty()) continue;
      ++findings;
      const std::string path = cat(folder, "/", seed, symbolic ? "s" : "", ".tn");
      std::ofstream(path) << graph::to_text(module);
      std::printf("%s, seed %llu: %s\n", path.c_str(), static_cast<unsigned long long>(seed),
                  found.substr(0, found.find('\n')).c_str());
      std::fflush(stdout);
    }
    if (seed % 100 == 99) std::fprintf(stderr, "%llu\n", static_cast<unsigned long long>(seed));
  }
  return findings == 0 ? 0 : kFound;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    std::fprintf(stderr,
                 "usage: graph_programs COUNT FIRST [FOLDER] | graph_programs FILE.tn SEED\n");
    return kUsage;
  }
  driver::initialise();
  const std::string first = argv[1];
  const uint64_t number = std::strtoull(argv[2], nullptr, 10);
  if (first.ends_with(".tn")) return check_file(first, number);
  return check_seeds(std::strtoull(argv[1], nullptr, 10), number, argc == 4 ? argv[3] : ".");
}
