#include "report/functions.h"

#include <memory>

#include "driver/functions.h"
#include "object/array.h"
#include "object/function.h"
#include "object/map.h"
#include "object/registry.h"
#include "object/string.h"
#include "report/formats.h"
#include "support/trace_recording.h"

namespace tenon::report {
namespace {

void start(bool calls) {
  trace::start(calls);
}

// Measured once, since hosts may make many recordings.
const Peak& peak() {
  static const Peak measured = measure_peak(0);
  return measured;
}

Function stop() {
  const trace::Recording recording = trace::stop();
  // Of the first program that was called, for a page.
  Ref<const vm::Program> program;
  if (!recording.kept.empty()) program = program_of(recording.kept[0]);
  const auto timeline = std::make_shared<const Timeline>(read_timeline(recording));
  return Function::from_typed(
      [timeline, program](const String& path) {
        const Format& format = format_for(path.str());
        return Bytes(
            format.write(report_of(program ? program->name() : "recording",
                                   program ? &program->unit() : nullptr, *timeline, peak())));
      },
      "recording");
}

Array<Any> list_formats() {
  Array<Any> list;
  for (const Format& format : all_formats()) {
    list.push_back(
        Map<String, Any>{{"suffix", String(format.suffix)}, {"summary", String(format.summary)}});
  }
  return list;
}

}  // namespace

void register_report_functions() {
  Registration library;
#define TENON_GROUP(title)
#define TENON_FUNCTION(function, name, signature, summary) \
  library.add(name, Function::from_typed(&function, name));
#include "report/functions.def"
#undef TENON_FUNCTION
#undef TENON_GROUP
  library.commit();
}

std::string compiler_library_document() {
  std::string out = driver::compiler_functions_document();
#define TENON_GROUP(title) out += driver::group_document(title);
#define TENON_FUNCTION(function, name, signature, summary) \
  out += driver::function_document(name, signature, summary);
#include "report/functions.def"
#undef TENON_FUNCTION
#undef TENON_GROUP
  return out;
}

}  // namespace tenon::report
