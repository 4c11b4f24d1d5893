#include "graph/ir/calls.h"

#include <map>
#include <utility>
#include <vector>

#include "support/components.h"

namespace tenon::graph {

std::set<String> referred_functions(const Map<String, FunctionRef>& functions) {
  std::set<String> referred;
  for (const auto& [name, function] : functions) {
    for_each_callee(*function->body,
                    [&](const String& callee, const Call*) { referred.insert(callee); });
  }
  return referred;
}

Map<String, FunctionRef> reachable(const Map<String, FunctionRef>& kept,
                                   const Map<String, FunctionRef>& all) {
  Map<String, FunctionRef> out = kept;
  std::vector<FunctionRef> pending;
  for (const auto& [name, function] : kept) pending.push_back(function);
  while (!pending.empty()) {
    const FunctionRef next = pending.back();
    pending.pop_back();
    for_each_callee(*next->body, [&](const String& name, const Call*) {
      const FunctionRef* found = all.find(name);
      if (!found || out.contains(name)) return;
      out.set(name, *found);
      pending.push_back(*found);
    });
  }
  return out;
}

std::set<String> recursive_functions(const Map<String, FunctionRef>& functions) {
  std::map<String, size_t> index;
  for (const auto& [name, function] : functions) index.emplace(name, index.size());
  std::vector<std::vector<size_t>> calls;
  for (const auto& [name, function] : functions) {
    std::vector<size_t>& callees = calls.emplace_back();
    for_each_callee(*function->body, [&](const String& callee, const Call* call) {
      const auto found = index.find(callee);
      if (call && found != index.end()) callees.push_back(found->second);
    });
  }
  const Components components(std::move(calls));
  std::set<String> recursive;
  for (const auto& [name, at] : index) {
    if (components.is_on_cycle(at)) recursive.insert(name);
  }
  return recursive;
}

}  // namespace tenon::graph
