// Options that a host passes as a map from names to values (options.def). Each option is taken by
// name; any that remain are mistakes.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "driver/compile.h"
#include "driver/open.h"
#include "evaluate/reference_evaluator.h"
#include "import/onnx/import_model.h"
#include "object/map.h"

namespace tenon::driver {

class HostOptions {
 public:
  // `given` is a map, or None for no options. Throws Usage for anything else.
  explicit HostOptions(const Any& given);

  // The option's value, or null if it is absent or None.
  const Any* take(const char* name);
  // Throws a Usage error that names an option that was not taken, if there is one.
  void require_all_taken() const;

 private:
  Map<String, Any> given_;
  std::set<std::string, std::less<>> taken_;
};

struct InterpretOptions {
#define TENON_INTERPRET_OPTION(type, name, initial, ...) type name = initial;
#include "driver/options.def"
};

// Each takes the options of one kind, all of which have defaults. They throw Usage for values of
// the wrong type or out of range.
WorkLimits take_limits(HostOptions& options);
CompileOptions take_compile_options(HostOptions& options);  // the limits, too
onnx::ImportOptions take_import_options(HostOptions& options);
void take_source_options(HostOptions& options, Source* source);
InterpretOptions take_interpret_options(HostOptions& options);

// A row of options.def, in words.
struct OptionText {
  std::string_view of;  // "import", "compile" or "interpret"; "all" for the limits, which all take
  std::string_view name;
  std::string_view type;  // of what a host passes
  std::string initial;    // in Markdown
  std::string meaning;    // on one line
};
std::vector<OptionText> list_options();

// The same as a table in Markdown.
std::string options_document();

}  // namespace tenon::driver
