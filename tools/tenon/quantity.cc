#include "tools/tenon/quantity.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cctype>
#include <charconv>
#include <cmath>
#include <span>

#include "support/error.h"

namespace tenon::tool {
namespace {

constexpr int64_t kHour = int64_t{3600} * 1'000'000'000;
constexpr int64_t kMostDuration = 365 * 24 * kHour;
constexpr int64_t kMostSize = int64_t{1} << 50;

constexpr Unit kDurations[] = {
    {"ns", "nanoseconds", 1},     {"us", "microseconds", 1000},   kMilliseconds,         kSeconds,
    {"m", "minutes", kHour / 60}, {"min", "minutes", kHour / 60}, {"h", "hours", kHour},
};

constexpr Unit kSizes[] = {
    kBytes,
    {"KB", "kilobytes", int64_t{1} << 10},
    kMegabytes,
    {"GB", "gigabytes", int64_t{1} << 30},
    {"TB", "terabytes", int64_t{1} << 40},
};

// "512m", "512mb" and "512MiB" are "512MB"; a plain "b" stays.
std::string size_suffix(std::string_view text) {
  std::string suffix;
  for (const char c : text) {
    suffix += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  if (suffix.size() == 3 && suffix[1] == 'I') suffix.erase(1, 1);
  if (suffix.size() == 1 && suffix != "B") suffix += 'B';
  return suffix;
}

// A number of at most `most` after its unit; nullopt for anything else. `suffix` is the text after
// the number.
std::optional<int64_t> scaled(double number, std::string_view suffix, std::span<const Unit> units,
                              const Unit& plain, int64_t most) {
  const Unit* unit = suffix.empty() ? &plain : nullptr;
  for (const Unit& known : units) {
    if (known.suffix == suffix) unit = &known;
  }
  if (!unit || !std::isfinite(number) || number < 0 || std::signbit(number)) return std::nullopt;
  const double value = std::round(number * static_cast<double>(unit->factor));
  return value <= static_cast<double>(most) ? std::optional(static_cast<int64_t>(value))
                                            : std::nullopt;
}

// The number at the start, and the text after it.
std::optional<std::pair<double, std::string_view>> split(std::string_view text) {
  double number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc()) return std::nullopt;
  return std::pair(number, text.substr(static_cast<size_t>(end - text.data())));
}

struct Quantity {
  std::string_view name;      // "a duration"
  std::string_view examples;  // with units
  std::string_view most;
  std::span<const Unit> units;
};
constexpr Quantity kDuration{"a duration", "250ms, 5s, 2m or 1h", "8760h", kDurations};
constexpr Quantity kSize{"a size", "100KB, 512MB or 2GB", "1024TB", kSizes};

int64_t count_of(std::chrono::nanoseconds duration) {
  return duration.count();
}
int64_t count_of(int64_t bytes) {
  return bytes;
}

// A default, in the largest unit that gives an integer; empty for none and for no limit.
std::string default_text(int64_t count, std::span<const Unit> units) {
  if (count == 0 || count == INT64_MAX) return "";
  const Unit* largest = &units[0];
  for (const Unit& unit : units) {
    if (count % unit.factor == 0) largest = &unit;
  }
  return cat(count / largest->factor, largest->suffix);
}

// Adds an option whose text `parse` turns into a `value`.
template <class T, class Parse>
CLI::Option* add_quantity(CLI::App* command, const std::string& flag, T& value, const Unit& plain,
                          Zero zero, const std::string& description, const Quantity& quantity,
                          Parse parse) {
  const auto set = [=, &value](const std::string& text) {
    const std::optional<T> given = parse(text, plain);
    if (!given || (zero == Zero::Refused && *given == T(0))) {
      throw Error(ErrorKind::Usage, cat(flag, ": '", text, "' is not ", quantity.name))
          .expected(cat(zero == Zero::Refused ? "above 0 and " : "", "at most ", quantity.most,
                        ", with a unit (", quantity.examples, ") or in ", plain.name));
    }
    value = *given;
  };
  return command->add_option_function<std::string>(flag, set, description)
      ->default_str(default_text(count_of(value), quantity.units));
}

}  // namespace

std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text, const Unit& plain) {
  const auto parts = split(text);
  if (!parts) return std::nullopt;
  const auto value = scaled(parts->first, parts->second, kDurations, plain, kMostDuration);
  return value ? std::optional(std::chrono::nanoseconds(*value)) : std::nullopt;
}

std::optional<int64_t> parse_size(std::string_view text, const Unit& plain) {
  const auto parts = split(text);
  if (!parts) return std::nullopt;
  return scaled(parts->first, size_suffix(parts->second), kSizes, plain, kMostSize);
}

CLI::Option* add_duration(CLI::App* command, const std::string& flag,
                          std::chrono::nanoseconds& value, const Unit& plain, Zero zero,
                          const std::string& description) {
  return add_quantity(command, flag, value, plain, zero, description, kDuration, parse_duration)
      ->type_name("DURATION");
}

CLI::Option* add_size(CLI::App* command, const std::string& flag, int64_t& value, const Unit& plain,
                      Zero zero, const std::string& description) {
  return add_quantity(command, flag, value, plain, zero, description, kSize, parse_size)
      ->type_name("SIZE");
}

}  // namespace tenon::tool
