// Options that a host hands in as a map of strings to values: read one by one, so that what is left
// is a mistake.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "driver/compile.h"
#include "import/onnx/import_model.h"
#include "object/array.h"
#include "object/map.h"

namespace tenon::driver {

class HostOptions {
 public:
  // `given` is a map, or None for no options; a Usage error for anything else.
  explicit HostOptions(const Any& given);

  // The option; nothing where it isn't given or None. A Usage error when it is of another type.
  template <class T>
  std::optional<T> take(const char* name) {
    const Any* value = find(name);
    if (!value || value->is_none()) return std::nullopt;
    if (!value->is<T>()) fail_type(name, AnyTraits<T>::name(), *value);
    return value->as<T>();
  }
  // A Usage error that names an option that nobody took.
  void require_all_taken() const;

 private:
  const Any* find(const char* name);
  [[noreturn]] static void fail_type(const char* name, const std::string& wanted, const Any& found);

  Map<String, Any> given_;
  std::set<std::string, std::less<>> taken_;
};

// cpu, level, libraries, fold_limit, fold_work, threads, passes.
CompileOptions take_compile_options(HostOptions& options);
// dims, shapes.
onnx::ImportOptions take_import_options(HostOptions& options);

}  // namespace tenon::driver
