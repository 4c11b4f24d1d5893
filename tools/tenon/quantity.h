// Durations and sizes of memory in arguments: a number and its unit, such as 250ms or 2GB. A number
// without a unit counts in the one that the option's help states.
#pragma once

#include <CLI/App.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tenon::tool {

struct Unit {
  std::string_view suffix;  // "ms"
  std::string_view name;    // "milliseconds"
  int64_t factor;           // in nanoseconds, or in bytes
};
inline constexpr Unit kMilliseconds{"ms", "milliseconds", 1'000'000};
inline constexpr Unit kSeconds{"s", "seconds", 1'000'000'000};
inline constexpr Unit kBytes{"B", "bytes", 1};
inline constexpr Unit kMegabytes{"MB", "megabytes", int64_t{1} << 20};

// Nullopt for text that is not a number >= 0 with a known unit or none, and for more than a year.
// The units are ns, us, ms, s, m or min, and h.
std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text, const Unit& plain);
// Bytes; nullopt for text that is not a number >= 0 with a known unit or none, and for more than
// 2^50 bytes. The units are B, KB, MB, GB and TB, powers of 1024, in either case; also K and KiB.
std::optional<int64_t> parse_size(std::string_view text, const Unit& plain);

// Options with such values. Any other text is a Usage error that says what is accepted.
enum class Zero : bool { Refused, Accepted };
CLI::Option* add_duration(CLI::App* command, const std::string& flag,
                          std::chrono::nanoseconds& value, const Unit& plain, Zero zero,
                          const std::string& description);
CLI::Option* add_size(CLI::App* command, const std::string& flag, int64_t& value, const Unit& plain,
                      Zero zero, const std::string& description);

}  // namespace tenon::tool
