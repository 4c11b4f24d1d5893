// Options that a host passes as a map from strings to values. Each option is taken by name; any
// that remain are mistakes.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "driver/compile.h"
#include "import/onnx/import_model.h"
#include "object/array.h"
#include "object/map.h"

namespace tenon::driver {

class HostOptions {
 public:
  // `given` is a map, or None for no options. Throws Usage for anything else.
  explicit HostOptions(const Any& given);

  // The option, or nullopt if it is absent or None. Throws Usage if it has the wrong type.
  template <class T>
  std::optional<T> take(const char* name) {
    const Any* value = find(name);
    if (!value || value->is_none()) return std::nullopt;
    if (!value->is<T>()) fail_type(name, AnyTraits<T>::name(), *value);
    return value->as<T>();
  }
  // Takes one name or several: a string or an array of strings. Empty if not given.
  std::vector<std::string> take_names(const char* name);
  // Throws a Usage error that names an option that was not taken, if there is one.
  void require_all_taken() const;

 private:
  const Any* find(const char* name);
  [[noreturn]] static void fail_type(const char* name, const std::string& wanted, const Any& found);

  Map<String, Any> given_;
  std::set<std::string, std::less<>> taken_;
};

// Takes deadline_ns and memory: -1 for no limit.
WorkLimits take_limits(HostOptions& options);
// Takes target, cpu, level, libraries, keep_computes, fold_limit, fold_work, threads, passes and
// the limits.
CompileOptions take_compile_options(HostOptions& options);
// Takes dims and shapes.
onnx::ImportOptions take_import_options(HostOptions& options);

}  // namespace tenon::driver
