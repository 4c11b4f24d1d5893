#include <algorithm>

#include "json/json.h"
#include "report/writers.h"

namespace tenon::report {
namespace {

double milliseconds(int64_t ns) {
  return static_cast<double>(ns) / 1e6;
}

int64_t median(std::vector<int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

std::string to_layers_json(const Timeline& timeline, const Peak& peak) {
  const std::vector<Layer> layers = layers_of(timeline);
  int64_t whole = 0, calls = 0;
  for (const Layer& layer : layers) whole += layer.total_ns;
  for (const Interval& interval : timeline.intervals) {
    calls += interval.kind == trace::Kind::Entry && interval.parent < 0;
  }
  JsonWriter out(2);
  out.begin_array().begin_object().key("count").value(calls).end_object();
  for (const Layer& layer : layers) {
    const std::vector<std::string>& nodes = layer.first.from.nodes;
    out.begin_object().key("name").value(nodes.empty() ? layer.name : join(nodes, " + "));
    out.key("timeMs").value(milliseconds(layer.total_ns));
    out.key("averageMs")
        .value(milliseconds(layer.total_ns) / static_cast<double>(layer.each_ns.size()));
    out.key("medianMs").value(milliseconds(median(layer.each_ns)));
    out.key("percentage")
        .value(whole ? 100 * static_cast<double>(layer.total_ns) / static_cast<double>(whole)
                     : 0.0);
    out.key("calls").value(static_cast<int64_t>(layer.each_ns.size()));
    out.key(layer.is_kernel ? "kernel" : "function").value(layer.name);
    out.key("op").value(layer.first.op).key("nodes").begin_array();
    for (const std::string& node : nodes) out.value(node);
    out.end_array().key("bytes").value(layer.bytes).key("flops");
    layer.flops ? out.value(*layer.flops) : out.null();
    const auto share = share_of_roofline(layer.flops, layer.bytes, layer.total_ns, peak);
    out.key("roofline");
    share ? out.value(*share) : out.null();
    out.end_object();
  }
  return out.end_array().take() + "\n";
}

}  // namespace tenon::report
