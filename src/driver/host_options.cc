#include "driver/host_options.h"

#include <algorithm>
#include <map>
#include <optional>
#include <type_traits>
#include <vector>

#include "driver/options.h"
#include "object/array.h"
#include "object/reflect.h"
#include "object/shape.h"

namespace tenon::driver {
namespace {

using Names = std::vector<std::string>;

// Reads a host's value; returns false if it has the wrong type.
template <class Passed, class T>
bool read_as(const Any& given, T* value) {
  if (!given.is<Passed>()) return false;
  *value = T(given.as<Passed>());
  return true;
}
bool read(const Any& given, bool* value) {
  return read_as<bool>(given, value);
}
bool read(const Any& given, int* value) {
  return read_as<int>(given, value);
}
bool read(const Any& given, int64_t* value) {
  return read_as<int64_t>(given, value);
}
bool read(const Any& given, std::string* value) {
  return read_as<String>(given, value);
}
bool read(const Any& given, Names* value) {
  if (given.is<String>()) {
    *value = {given.as<String>().str()};
    return true;
  }
  if (!given.is<Array<String>>()) return false;
  for (const String& each : given.as<Array<String>>()) value->push_back(each.str());
  return true;
}
bool read(const Any& given, std::optional<Names>* value) {
  return !given.is<String>() && read(given, &value->emplace());
}
bool read(const Any& given, std::map<std::string, int64_t>* value) {
  if (!given.is<Map<String, int64_t>>()) return false;
  for (const auto& [name, size] : given.as<Map<String, int64_t>>()) (*value)[name.str()] = size;
  return true;
}
bool read(const Any& given, std::map<std::string, std::vector<int64_t>>* value) {
  if (!given.is<Map<String, Shape>>()) return false;
  for (const auto& [name, shape] : given.as<Map<String, Shape>>()) {
    (*value)[name.str()] = {shape.begin(), shape.end()};
  }
  return true;
}

// The name of a type in documents and errors.
template <class T>
constexpr const char* kTypeName = nullptr;
template <>
constexpr const char* kTypeName<bool> = "bool";
template <>
constexpr const char* kTypeName<int> = "int";
template <>
constexpr const char* kTypeName<int64_t> = "int";
template <>
constexpr const char* kTypeName<std::string> = "string";
template <>
constexpr const char* kTypeName<Names> = "string or array of strings";
template <>
constexpr const char* kTypeName<std::optional<Names>> = "array of strings";
template <>
constexpr const char* kTypeName<std::map<std::string, int64_t>> = "map of string to int";
template <>
constexpr const char* kTypeName<std::map<std::string, std::vector<int64_t>>> =
    "map of string to shape";

template <class T>
void require_allowed(const char* name, const Allowed& allowed, const T& value) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    const bool inside = value >= allowed.least && value <= allowed.most;
    if (inside || (allowed.minus_one && value == -1)) return;
    throw Error(ErrorKind::Usage, cat("option ", name, " is out of range"))
        .found(cat(value))
        .expected(allowed.most < INT64_MAX
                      ? cat("an integer from ", allowed.least, " to ", allowed.most)
                      : cat("an integer >= ", allowed.least, allowed.minus_one ? ", or -1" : ""));
  }
  if constexpr (std::is_same_v<T, std::string>) {
    if (allowed.words.empty() || allowed.other_words) return;
    if (std::ranges::find(allowed.words, value) != allowed.words.end()) return;
    throw Error(ErrorKind::Usage, cat("option ", name, " has an unknown value"))
        .found(quoted(value))
        .expected(cat("one of ", join(allowed.words, ", ")));
  }
}

// A map's sizes, by name.
void require_size(const char* option, std::string_view name, const Allowed& allowed, int64_t size) {
  if (size >= allowed.least) return;
  throw Error(ErrorKind::Usage, cat("option ", option, " has an invalid size for ", quoted(name)))
      .found(cat(size))
      .expected(cat("an integer >= ", allowed.least));
}
void require_allowed(const char* option, const Allowed& allowed,
                     const std::map<std::string, int64_t>& sizes) {
  for (const auto& [name, size] : sizes) require_size(option, name, allowed, size);
}
void require_allowed(const char* option, const Allowed& allowed,
                     const std::map<std::string, std::vector<int64_t>>& shapes) {
  for (const auto& [name, shape] : shapes) {
    for (const int64_t size : shape) require_size(option, name, allowed, size);
  }
}

// Reads an option into `value`, which keeps its default if the option is not given.
template <class T>
void take(HostOptions& options, const char* name, const Allowed& allowed, T* value) {
  const Any* given = options.take(name);
  if (!given) return;
  if (!read(*given, value)) {
    throw Error(ErrorKind::Usage, cat("option ", name, " has the wrong type"))
        .expected(kTypeName<T>)
        .found(repr(*given, 200));
  }
  require_allowed(name, allowed, *value);
}

}  // namespace

HostOptions::HostOptions(const Any& given) {
  if (given.is_none()) return;
  if (!given.is<Map<String, Any>>()) {
    throw Error(ErrorKind::Usage, "the options are not a map of strings to values")
        .found(repr(given, 200));
  }
  given_ = given.as<Map<String, Any>>();
}

const Any* HostOptions::take(const char* name) {
  taken_.emplace(name);
  const Any* value = given_.find(name);
  return value && !value->is_none() ? value : nullptr;
}

void HostOptions::require_all_taken() const {
  const std::vector<std::string> known(taken_.begin(), taken_.end());
  for (const auto& [name, value] : given_) {
    if (taken_.contains(name.view())) continue;
    const std::string near = nearest(name, known);
    throw Error(ErrorKind::Usage, cat("there is no option ", quoted(name)))
        .expected(known.empty() ? "no options" : cat("one of ", join(known, ", ")))
        .help(near.empty() ? "leave it out" : cat("did you mean ", near, "?"));
  }
}

onnx::ImportOptions take_import_options(HostOptions& given) {
  onnx::ImportOptions options;
#define TENON_IMPORT_OPTION(name, least, ...) take(given, #name, at_least(least), &options.name);
#include "driver/options.def"
  return options;
}

void take_source_options(HostOptions& given, Source* source) {
#define TENON_SOURCE_OPTION(type, name, ...) take(given, #name, any_value(), &source->name);
#include "driver/options.def"
}

CompileOptions take_compile_options(HostOptions& given) {
  CompileOptions options;
#define TENON_COMPILE_OPTION(type, name, initial, initial_text, allowed, ...) \
  take(given, #name, allowed, &options.name);
#include "driver/options.def"
  options.limits = take_limits(given);
  return options;
}

InterpretOptions take_interpret_options(HostOptions& given) {
  InterpretOptions options;
#define TENON_INTERPRET_OPTION(type, name, initial, allowed, meaning) \
  take(given, #name, allowed, &options.name);
#include "driver/options.def"
  return options;
}

WorkLimits take_limits(HostOptions& given) {
#define TENON_LIMIT_OPTION(name, allowed, meaning) \
  int64_t name = -1;                               \
  take(given, #name, allowed, &name);
#include "driver/options.def"
  WorkLimits limits;
  if (deadline_ns >= 0) limits.deadline = std::chrono::nanoseconds(deadline_ns);
  if (memory > 0) limits.memory = static_cast<size_t>(memory);
  return limits;
}

namespace {

// Line breaks in a meaning are the command line's.
std::string on_one_line(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool space = c == '\n' || c == ' ';
    if (!space) out += c;
    if (space && !out.empty() && out.back() != ' ') out += ' ';
  }
  return out;
}

// The default in the table: the row's text, or else the value.
template <class T>
std::string default_text(std::string_view text, const T& value) {
  if (!text.empty()) return std::string(text);
  if constexpr (std::is_same_v<T, std::string>) return cat("`", quoted(value), "`");
  if constexpr (std::is_arithmetic_v<T>) return cat(value);
  return "`{}`";
}

}  // namespace

std::vector<OptionText> list_options() {
  std::vector<OptionText> out;
#define TENON_ROW(of, fields, text, name, meaning)                                                 \
  out.push_back({of, #name, kTypeName<decltype(fields().name)>, default_text(text, fields().name), \
                 on_one_line(meaning)});
#define TENON_IMPORT_OPTION(name, least, flag, example, meaning) \
  TENON_ROW("import", onnx::ImportOptions, "", name, meaning)
#define TENON_SOURCE_OPTION(type, name, flag, takes, meaning) \
  TENON_ROW("import", Source, "", name, meaning)
#define TENON_COMPILE_OPTION(type, name, initial, text, allowed, flag, record, meaning) \
  TENON_ROW("compile", CompileOptions, text, name, meaning)
#define TENON_INTERPRET_OPTION(type, name, initial, allowed, meaning) \
  TENON_ROW("interpret", InterpretOptions, "", name, meaning)
#define TENON_LIMIT_OPTION(name, allowed, meaning) \
  out.push_back({"all", #name, kTypeName<int64_t>, "-1", on_one_line(meaning)});
#include "driver/options.def"
#undef TENON_ROW
  return out;
}

std::string options_document() {
  std::string out =
      "| of | option | type | default | meaning |\n"
      "| --- | --- | --- | --- | --- |\n";
  for (const OptionText& row : list_options()) {
    out += cat("| ", row.of, " | `", row.name, "` | ", row.type, " | ", row.initial, " | ",
               row.meaning, " |\n");
  }
  return out;
}

}  // namespace tenon::driver
