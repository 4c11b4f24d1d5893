#include "report/html.h"

#include <algorithm>
#include <optional>
#include <set>

#include "driver/model_graph.h"
#include "driver/shown_names.h"
#include "json/json.h"
#include "report/facts.h"
#include "report/kernel_assembly.h"
#include "report/memory_plan.h"
#include "report/page.h"
#include "report/picture.h"
#include "report/trace_kind.h"

namespace tenon::report {
namespace {

using trace::Kind;

// What a page holds at most, so that a browser stays quick.
constexpr size_t kMostIntervals = 40'000, kMostSamples = 20'000;

std::string argument_text(const Argument& tensor) {
  std::vector<std::string> sizes;
  for (const int64_t size : tensor.shape) sizes.push_back(cat(size));
  return cat(tensor_type_text(join(sizes, ", "), tensor.dtype),
             tensor.is_constant ? ", a constant" : "");
}

class Data {
 public:
  explicit Data(const Report& report) : report_(report) {
    if (report.timeline) layers_ = layers_of(*report.timeline);
    const vm::Unit* unit = report.unit;
    if (unit && !unit->graph.empty()) {
      graph_ = driver::model_graph_from_json(unit->graph, report.title);
    }
    if (!unit) return;
    if (graph_) {
      std::vector<Drawing> before, after;
      for (driver::FunctionGraph& f : graph_->functions) {
        before.push_back({f.name, std::move(f.before)});
        after.push_back({f.name, std::move(f.after)});
      }
      before_ = std::move(before);
      after_ = std::move(after);
    } else {
      after_ = picture_of_code(*unit);
    }
  }

  std::string json() {
    out_.begin_object().key("facts").begin_array();
    for (const auto& [name, value] : report_.facts) {
      out_.begin_array().value(name).value(value).end_array();
    }
    out_.end_array();
    graphs();
    kernels();
    layers();
    timeline();
    memory();
    arena();
    out_.key("peak").begin_object();
    out_.key("flops").value(report_.peak.flops_per_second);
    out_.key("bytes").value(report_.peak.bytes_per_second).end_object();
    out_.key("limits").begin_array();
    for (const Report::Limit& limit : report_.limits) {
      out_.begin_array().value(limit.name).value(limit.used).value(limit.allowed).end_array();
    }
    out_.end_array();
    reasons();
    return out_.end_object().take();
  }

  // The pictures as templates of the page; one without nodes is left out.
  std::string templates() const {
    std::string out;
    for (const auto& [name, picture] :
         {std::pair("before", &before_), std::pair("after", &after_)}) {
      if (picture->drawings().empty()) continue;
      out += cat("<template id=\"svg-", name, "\">", to_svg(*picture, Style::FromPage),
                 "</template>\n");
    }
    return out;
  }

 private:
  void texts(const char* key, const std::vector<std::string>& list) {
    out_.key(key).begin_array();
    for (const std::string& text : list) out_.value(text);
    out_.end_array();
  }

  // Numbered through all functions, like the nodes in the pictures.
  void graphs() {
    out_.key("graphs").begin_object();
    for (const auto& [name, picture] :
         {std::pair("before", &before_), std::pair("after", &after_)}) {
      out_.key(name).begin_array();
      for (const Drawing& drawing : picture->drawings()) {
        for (const driver::GraphNode& node : drawing.nodes) {
          out_.begin_object().key("label").value(node.label).key("type").value(node.type);
          texts("sources", node.sources);
          texts("weights", node.weights);
          out_.end_object();
        }
      }
      out_.end_array();
    }
    out_.end_object();
  }

  void kernels() {
    out_.key("kernels").begin_array();
    if (report_.unit) {
      const auto assembly = assembly_of(*report_.unit);
      std::set<std::string_view> seen;
      for (const vm::PackedName& packed : report_.unit->packed) {
        if (!packed.kernel || !seen.insert(packed.name).second) continue;
        out_.begin_object().key("name").value(driver::shown_name(packed.name)).key("text");
        const driver::KernelFacts* facts = nullptr;
        if (graph_ && graph_->kernels.contains(packed.name)) facts = &graph_->kernels[packed.name];
        facts ? out_.value(facts->text) : out_.null();
        const auto code = assembly.find(packed.name);
        out_.key("assembly");
        code == assembly.end() ? out_.null() : out_.value(code->second);
        out_.end_object();
      }
    }
    out_.end_array();
  }

  void layers() {
    int64_t all = 0;
    for (const Layer& layer : layers_) all += layer.total_ns;
    out_.key("layers").begin_array();
    for (const Layer& layer : layers_) {
      out_.begin_object().key("name").value(layer.name).key("op").value(layer.first.op);
      out_.key("isKernel").value(layer.is_kernel);
      texts("nodes", layer.first.from.nodes);
      out_.key("at").value(to_text(Span::at(layer.first.from.file, layer.first.from.line)));
      out_.key("calls").value(static_cast<int64_t>(layer.each_ns.size()));
      out_.key("ns").value(layer.total_ns).key("bytes").value(layer.bytes);
      out_.key("share").value(all ? static_cast<double>(layer.total_ns) / static_cast<double>(all)
                                  : 0.0);
      out_.key("flops");
      layer.flops ? out_.value(*layer.flops) : out_.null();
      const auto share = share_of_roofline(layer.flops, layer.bytes, layer.total_ns, report_.peak);
      out_.key("roofline");
      share ? out_.value(*share) : out_.null();
      for (const auto& [key, tensors] :
           {std::pair("inputs", &layer.first.inputs), std::pair("outputs", &layer.first.outputs)}) {
        out_.key(key).begin_array();
        for (const Argument& tensor : *tensors) out_.value(argument_text(tensor));
        out_.end_array();
      }
      out_.end_object();
    }
    out_.end_array();
  }

  void timeline() {
    out_.key("timeline");
    if (!report_.timeline || report_.timeline->intervals.empty()) {
      out_.null();
      return;
    }
    const Timeline& timeline = *report_.timeline;
    out_.begin_object().key("ns").value(timeline.ns);
    texts("threads", timeline.threads);
    out_.key("categories").begin_object();
    for (const TraceKind& kind : kTraceKinds) {
      out_.key(std::string(kind.name)).value(std::string(kind.category));
    }
    out_.end_object();
    out_.key("intervals").begin_array();
    for (const Interval& interval : longest(timeline)) {
      out_.begin_array().value(static_cast<int64_t>(interval.thread)).value(interval.begin_ns);
      out_.value(interval.end_ns).value(std::string(about(interval.kind).name));
      out_.value(interval.name).end_array();
    }
    out_.end_array().end_object();
  }

  // The longest intervals, in their order.
  static std::vector<Interval> longest(const Timeline& timeline) {
    std::vector<Interval> all = timeline.intervals;
    if (all.size() <= kMostIntervals) return all;
    std::vector<int64_t> lengths;
    for (const Interval& interval : all) lengths.push_back(interval.ns());
    const auto nth = lengths.begin() + kMostIntervals;
    std::ranges::nth_element(lengths, nth, std::greater());
    const int64_t least = *nth;
    std::erase_if(all, [&](const Interval& interval) { return interval.ns() <= least; });
    return all;
  }

  void memory() {
    std::vector<std::pair<int64_t, int64_t>> samples;
    if (report_.timeline) {
      for (const Interval& interval : report_.timeline->intervals) {
        if (!interval.call) continue;
        samples.emplace_back(interval.begin_ns, interval.call->storage_before);
        samples.emplace_back(interval.end_ns, interval.call->storage_after);
      }
    }
    std::ranges::stable_sort(samples, {}, &std::pair<int64_t, int64_t>::first);
    const size_t step = samples.size() / kMostSamples + 1;
    out_.key("memory").begin_array();
    for (size_t i = 0; i < samples.size(); i += step) {
      out_.begin_array().value(samples[i].first).value(samples[i].second).end_array();
    }
    out_.end_array();
  }

  void arena() {
    out_.key("arena");
    const auto found = report_.unit ? memory_plan_of(*report_.unit) : std::nullopt;
    if (!found) {
      out_.null();
      return;
    }
    out_.begin_object().key("end").value(static_cast<int64_t>(found->steps));
    out_.key("slots").begin_array();
    for (const MemoryPlan::Slot& slot : found->slots) {
      out_.begin_object().key("name").value(slot.name).key("offset").value(slot.offset);
      out_.key("bytes").value(slot.bytes).key("from").value(static_cast<int64_t>(slot.from));
      out_.key("to").value(static_cast<int64_t>(slot.to)).end_object();
    }
    out_.end_array().end_object();
  }

  // What the page says where it has nothing to show.
  void reasons() {
    constexpr char kNotRun[] = "The program was not run for this report.";
    out_.key("withoutGraph")
        .value(report_.unit
                   ? cat("The file does not contain the model's graph. Give the model itself, or "
                         "compile it with ",
                         driver::kKeepGraph, ".")
                   : "No program was called while this was recorded.");
    out_.key("missing").begin_object();
    const bool was_run =
        report_.timeline && std::ranges::any_of(report_.timeline->intervals, [](const Interval& i) {
          return i.kind == Kind::Entry;
        });
    const char* const nothing_called =
        was_run ? "The program called no kernel or library function." : kNotRun;
    for (const char* key : {"layers", "memory"}) out_.key(key).value(nothing_called);
    out_.key("timeline").value("Nothing was recorded.");
    out_.key("limits").value(
        was_run ? "Recordings do not include limits; `tenon report` shows them." : kNotRun);
    out_.key("arena").value(
        "No value has a fixed place: the program keeps no values, or all their sizes depend on the "
        "inputs.");
    out_.key("roofline")
        .value(was_run ? cat("The number of operations is not known: give the model itself, or "
                             "compile it with ",
                             driver::kKeepGraph, ".")
                       : std::string(kNotRun));
    out_.end_object();
  }

  const Report& report_;
  std::optional<driver::ModelGraph> graph_;
  Picture before_{{}}, after_{{}};
  std::vector<Layer> layers_;
  JsonWriter out_;
};

// JSON in a script element: no `<` may end the element or begin a comment.
std::string within_script(const std::string& json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

Report report_of(std::string title, const vm::Unit* unit, const Timeline& timeline,
                 const Peak& peak) {
  Report report;
  report.title = std::move(title);
  report.facts = facts_of(unit, &timeline);
  report.unit = unit;
  report.timeline = &timeline;
  report.peak = peak;
  return report;
}

std::string to_html(const Report& report) {
  Data data(report);
  const std::string title = escape_markup(report.title);
  std::string body = kPageHtml;
  constexpr std::string_view kTitle = "%title%";
  body.replace(body.find(kTitle), kTitle.size(), title);
  return cat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n"
      "<title>",
      title, " - Tenon</title>\n<style>\n", kPageCss, "</style>\n</head>\n<body>\n", body,
      data.templates(), "<script type=\"application/json\" id=\"data\">",
      within_script(data.json()), "</script>\n<script>\n", kPageJs,
      "</script>\n</body>\n</html>\n");
}

}  // namespace tenon::report
