#include "report/functions.h"

#include <cmath>
#include <memory>

#include "driver/functions.h"
#include "driver/host_options.h"
#include "object/array.h"
#include "object/function.h"
#include "object/map.h"
#include "object/registry.h"
#include "object/string.h"
#include "object/tensor.h"
#include "report/compare_tensors.h"
#include "report/formats.h"
#include "support/trace_recording.h"

namespace tenon::report {
namespace {

Any list_criteria(const Array<String>& operators, const Any& rtol, const Any& atol) {
  Criterion given;
  if (!rtol.is_none()) given.rtol = rtol.as<double>();
  if (!atol.is_none()) given.atol = atol.as<double>();
  NodeCriteria criteria(given);
  Array<Any> list;
  for (const String& op : operators) {
    const Criterion& own = criteria.next(op.view());
    list.push_back(Map<String, Any>{{"rtol", own.rtol},
                                    {"atol", own.atol ? Any(*own.atol) : Any()},
                                    {"quantized", own.quantized},
                                    {"accumulates", own.accumulates},
                                    {"noise_before", own.noise_before}});
  }
  return list;
}

Map<String, Any> compare_tensors(const Tensor& found, const Tensor& expected,
                                 const Any& criterion) {
  driver::HostOptions given(criterion);
  Criterion own;
  if (const Any* rtol = given.take("rtol")) own.rtol = rtol->as<double>();
  if (const Any* atol = given.take("atol")) own.atol = atol->as<double>();
  if (const Any* quantized = given.take("quantized")) own.quantized = quantized->as<bool>();
  if (const Any* accumulates = given.take("accumulates")) own.accumulates = accumulates->as<bool>();
  if (const Any* noise = given.take("noise_before")) own.noise_before = noise->as<double>();
  given.require_all_taken();
  const Difference d = compare(found.compacted(), expected.compacted(), own);
  if (!d.kind.empty()) {
    throw Error(ErrorKind::Usage, "the tensors to compare have different types")
        .found(to_text(found))
        .expected(to_text(expected));
  }
  return {{"equal", d.equal},
          {"count", d.mismatches},
          {"index", d.worst_index},
          {"greatest", d.equal ? d.largest : d.worst_excess},
          {"noise", std::isnan(d.noise) ? 0 : d.noise}};
}

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
