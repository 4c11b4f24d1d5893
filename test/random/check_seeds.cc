#include "check_seeds.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "driver/compile.h"
#include "support/text.h"

namespace tenon::random_programs {

int check_seeds(int argc, char** argv,
                const std::function<void(uint64_t seed, const Report& report)>& check) {
  if (argc != 3 && argc != 4) {
    std::fprintf(stderr, "usage: %s COUNT FIRST [FOLDER]\n", argv[0]);
    return 2;
  }
  driver::initialise();
  const uint64_t count = std::strtoull(argv[1], nullptr, 10);
  const uint64_t first = std::strtoull(argv[2], nullptr, 10);
  bool found = false;
  for (uint64_t seed = first; count == 0 || seed < first + count; ++seed) {
    check(seed, [&](const Finding& finding) {
      found = true;
      const std::string path = cat(argc == 4 ? argv[3] : ".", "/", finding.name, ".tn");
      std::ofstream(path) << finding.text;
      const std::string first_line = finding.difference.substr(0, finding.difference.find('\n'));
      std::printf("%s, seed %llu: %s\n", path.c_str(), static_cast<unsigned long long>(seed),
                  first_line.c_str());
      std::fflush(stdout);
    });
    if (seed % 100 == 99) std::fprintf(stderr, "%llu\n", static_cast<unsigned long long>(seed));
  }
  return found ? 1 : 0;
}

}  // namespace tenon::random_programs
