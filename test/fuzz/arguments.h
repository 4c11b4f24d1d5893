// The command line PROGRAM COUNT FIRST [FILE...] of the mutant programs.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace tenon::fuzz {

struct Arguments {
  enum class Files : uint8_t { Some, None };

  uint64_t first = 0, end = 0;  // the range of mutant numbers
  std::vector<std::string> files;

  uint64_t count() const { return end - first; }
};

// Exits with 2 if the arguments are invalid.
inline Arguments read_arguments(int argc, char** argv,
                                Arguments::Files files = Arguments::Files::Some) {
  Arguments a;
  uint64_t count = 0;
  auto number = [](const char* text, uint64_t* value) {
    const char* end = text + std::strlen(text);
    const auto [at, error] = std::from_chars(text, end, *value);
    return error == std::errc() && at == end;
  };
  const bool some = files == Arguments::Files::Some;
  const bool counted = some ? argc > 3 : argc == 3;
  if (!counted || !number(argv[1], &count) || !number(argv[2], &a.first)) {
    std::fprintf(stderr, "usage: %s COUNT FIRST%s\n", argc > 0 ? argv[0] : "mutants",
                 some ? " FILE..." : "");
    std::exit(2);
  }
  a.end = a.first + count;
  a.files.assign(argv + 3, argv + argc);
  return a;
}

}  // namespace tenon::fuzz
