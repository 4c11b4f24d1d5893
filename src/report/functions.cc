#include "report/functions.h"

#include <memory>

#include "object/function.h"
#include "object/registry.h"
#include "object/string.h"
#include "report/html.h"
#include "report/writers.h"
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
        if (!path.view().ends_with(".html")) {
          return Bytes(writer_for(path.str())(*timeline, peak()));
        }
        Report page;
        page.title = program ? program->name() : "recording";
        page.unit = program ? &program->unit() : nullptr;
        page.timeline = timeline.get();
        page.peak = peak();
        return Bytes(to_html(page));
      },
      "recording");
}

}  // namespace

void register_report_functions() {
  Registration library;
#define TENON_FUNCTION(function, name, signature, summary) \
  library.add(name, Function::from_typed(&function, name));
#include "report/functions.def"
#undef TENON_FUNCTION
  library.commit();
}

}  // namespace tenon::report
