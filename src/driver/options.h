// What the rows of options.def say about an option, besides its type and default.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "codegen/llvm/architecture.h"
#include "device/parallel.h"

namespace tenon::driver {

// The values that an option takes.
struct Allowed {
  int64_t least = INT64_MIN, most = INT64_MAX;  // of integers
  bool minus_one = false;                       // -1 as well
  std::vector<std::string> words = {};          // of texts; all if empty
  bool other_words = false;                     // `words` are only examples
  bool bytes = false;                           // an integer that counts bytes
};

inline Allowed any_value() {
  return {};
}
inline Allowed from_to(int64_t least, int64_t most) {
  return {.least = least, .most = most};
}
inline Allowed at_least(int64_t least) {
  return {.least = least};
}
inline Allowed bytes() {
  return {.least = 0, .bytes = true};
}
inline Allowed positive_or_minus_one() {
  return {.least = 1, .minus_one = true};
}
inline Allowed one_of(std::vector<std::string> words) {
  return {.words = std::move(words)};
}
inline Allowed such_as(std::vector<std::string> words) {
  return {.words = std::move(words), .other_words = true};
}

// The option on the command line.
struct Flag {
  const char* name;
  bool only_files = false;  // only of commands that write a file
  // What it means for a program that is already compiled, in the words of its help, "" if the same
  // as for others; null if nothing, so that it is refused.
  const char* of_executable = nullptr;
};
inline Flag flag(const char* name) {
  return {name};
}
inline Flag flag_of_executables(const char* name, const char* of_executable = "") {
  return {name, false, of_executable};
}
inline Flag file_flag(const char* name) {
  return {name, true, nullptr};
}

// Whether the record of a compilation (provenance.h) has the option by name, unless it is the
// default. The others are there in another form, or don't change what is compiled.
inline constexpr bool recorded = true, unrecorded = false;

}  // namespace tenon::driver
