// range_programs COUNT FIRST [FOLDER]   checks the programs FIRST to FIRST + COUNT - 1, whose
//                                       numbers span the range of f32; forever if COUNT is 0.
//                                       Writes findings to FOLDER (default: here) as NUMBER.tn.
//
// Exits with 1 after a finding: results differ by more than rounding explains, or the compiler
// fails.
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "check_program.h"
#include "driver/compile.h"
#include "graph/ir/text.h"
#include "object/reflect.h"
#include "range_program.h"

namespace {

using namespace tenon;
using namespace tenon::random_programs;

int check_seeds(uint64_t count, uint64_t first, const std::string& folder) {
  int findings = 0;
  for (uint64_t seed = first; count == 0 || seed < first + count; ++seed) {
    const RangeProgram program = range_program(seed);
    const std::string found = find_difference(program);
    if (seed % 100 == 99) std::fprintf(stderr, "%llu\n", static_cast<unsigned long long>(seed));
    if (found.empty()) continue;
    ++findings;
    const std::string path = cat(folder, "/", seed, ".tn");
    std::ofstream file(path);
    file << graph::to_text(program.module);
    for (const Any& input : program.inputs) file << "// " << repr(input, 4000) << "\n";
    std::printf("%s: %s\n", path.c_str(), found.substr(0, found.find('\n')).c_str());
    std::fflush(stdout);
  }
  return findings == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    std::fprintf(stderr, "usage: range_programs COUNT FIRST [FOLDER]\n");
    return 2;
  }
  driver::initialise();
  return check_seeds(std::strtoull(argv[1], nullptr, 10), std::strtoull(argv[2], nullptr, 10),
                     argc == 4 ? argv[3] : ".");
}
