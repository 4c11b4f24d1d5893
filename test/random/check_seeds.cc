#include "check_seeds.h"

#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>

#include "driver/compile.h"
#include "support/text.h"

namespace tenon::random_programs {
namespace {

constexpr int kFound = 1, kUsage = 2;

std::optional<uint64_t> number(std::string_view text) {
  uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && at == end ? std::optional(value) : std::nullopt;
}

int usage(const char* name, bool with_files) {
  std::fprintf(stderr, "usage: %s COUNT FIRST [FOLDER]\n", name);
  if (with_files) std::fprintf(stderr, "       %s FILE.tn SEED\n", name);
  return kUsage;
}

int check_file(const char* path, uint64_t seed, const CheckText& check) {
  std::ifstream in(path);
  if (!in) {
    std::fprintf(stderr, "%s can't be read\n", path);
    return kUsage;
  }
  const std::string difference = check(std::string{std::istreambuf_iterator<char>(in), {}}, seed);
  if (difference.empty()) return 0;
  std::printf("%s\n", difference.c_str());
  return kFound;
}

}  // namespace

int check_seeds(int argc, char** argv, const CheckSeed& check, const CheckText& again) {
  const char* const name = argc > 0 ? argv[0] : "check_seeds";
  const auto first = argc >= 3 ? number(argv[2]) : std::nullopt;
  if (!first) return usage(name, again != nullptr);
  driver::initialise();
  if (again && argc == 3 && std::string_view(argv[1]).ends_with(".tn")) {
    return check_file(argv[1], *first, again);
  }
  const auto count = number(argv[1]);
  if (!count || argc > 4) return usage(name, again != nullptr);
  bool found = false;
  for (uint64_t seed = *first; *count == 0 || seed - *first < *count; ++seed) {
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
  return found ? kFound : 0;
}

}  // namespace tenon::random_programs
