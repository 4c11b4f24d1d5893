#include "tools/tenon/profile.h"

#include <algorithm>
#include <unordered_map>

namespace tenon::tool {
namespace {

Span span_of(const vm::Unit& unit, const vm::CallEvent& event) {
  const Span* found = nullptr;
  for (const vm::CodeSpan& span : unit.functions[event.caller_index].spans) {
    if (span.offset > event.offset) break;
    found = &unit.spans[span.span];
  }
  return found ? *found : Span();
}

void sort_by_time(std::vector<KernelTime>& times) {
  std::stable_sort(times.begin(), times.end(), [](const KernelTime& a, const KernelTime& b) {
    return a.total_ms > b.total_ms;
  });
}

}  // namespace

vm::CallAction Profile::see(const vm::CallEvent& event) {
  using Kind = vm::CallEvent::Kind;
  if (event.kind != Kind::Packed && event.kind != Kind::Kernel) return vm::CallAction::Continue;
  const Clock::time_point now = Clock::now();
  if (event.before) {
    Running& began = running_.emplace_back();
    began.start = Clock::now();
    own_ms_ += milliseconds(began.start - now);
    began.own_ms = own_ms_;
    return vm::CallAction::Continue;
  }
  const Running ended = running_.back();
  running_.pop_back();
  const double whole = milliseconds(now - ended.start) - (own_ms_ - ended.own_ms);
  if (!running_.empty()) running_.back().callees_ms += whole;
  const double took = whole - ended.callees_ms;
  auto [found, is_new] = sites_.try_emplace({event.caller_index, event.offset});
  KernelTime& time = found->second;
  if (is_new) {
    time.name = event.callee;
    time.from = span_of(program_.unit(), event);
  }
  ++time.calls;
  time.total_ms += took;
  inside_ms_ += took;
  own_ms_ += milliseconds(Clock::now() - now);
  return vm::CallAction::Continue;
}

std::vector<KernelTime> Profile::by_site() const {
  std::vector<KernelTime> times;
  for (const auto& [site, time] : sites_) times.push_back(time);
  sort_by_time(times);
  return times;
}

std::vector<KernelTime> Profile::by_kernel() const {
  std::vector<KernelTime> times;
  std::unordered_map<std::string, size_t> row_of;
  for (const auto& [site, time] : sites_) {
    const auto [row, is_new] = row_of.try_emplace(time.name, times.size());
    if (is_new) {
      times.push_back(time);
      continue;
    }
    KernelTime& sum = times[row->second];
    sum.calls += time.calls;
    sum.total_ms += time.total_ms;
    Span nodes;
    nodes.nodes = Span::merge(sum.from, time.from).nodes;
    sum.from = std::move(nodes);
  }
  sort_by_time(times);
  return times;
}

}  // namespace tenon::tool
