#include "report/facts.h"

#include <map>
#include <set>

namespace tenon::report {
namespace {

using Facts = std::vector<std::pair<std::string, std::string>>;

int64_t weight_bytes(const vm::Unit& unit) {
  int64_t bytes = 0;
  for (const vm::Constant& constant : unit.constants) {
    if (auto tensor = constant.value.try_as<Tensor>(); tensor && *tensor) bytes += tensor->bytes();
  }
  return bytes;
}

void add_program(const vm::Unit& unit, Facts* facts) {
  for (const vm::FunctionUnit& f : unit.functions) {
    if (!f.exported) continue;
    std::vector<std::string> params;
    for (const vm::Param& param : f.params) params.push_back(cat(param.name, ": ", param.type));
    facts->emplace_back(cat("Function ", f.name), cat("(", join(params, ", "), ") -> ", f.result));
  }
  size_t kernels = 0;
  for (const vm::PackedName& packed : unit.packed) kernels += packed.kernel;
  facts->emplace_back("Kernels", cat(kernels));
  facts->emplace_back("Weights", bytes_text(static_cast<uint64_t>(weight_bytes(unit))));
  std::vector<std::string> targets;
  for (const vm::KernelTarget& target : unit.kernels) {
    targets.push_back(cat(target.triple, ", ", target.cpu));
  }
  if (!targets.empty()) facts->emplace_back("Native code for", join(targets, "; "));
  if (!unit.libraries.empty()) facts->emplace_back("Libraries", join(unit.libraries, ", "));
  facts->emplace_back("Compiled by", unit.producer);
}

// Calls by the host, of each function of each program.
void add_calls(const Timeline& timeline, Facts* facts) {
  std::map<std::pair<std::string, std::string>, int64_t> calls;
  std::set<std::string> files;
  for (const Interval& interval : timeline.intervals) {
    if (interval.kind != trace::Kind::Entry || interval.parent >= 0) continue;
    ++calls[{interval.file, interval.name}];
    files.insert(interval.file);
  }
  std::vector<std::string> texts;
  for (const auto& [callee, count] : calls) {
    const auto& [file, function] = callee;
    texts.push_back(cat(count, " of ", printable(function)));
    if (files.size() > 1) texts.back() += cat(" in ", printable(file));
  }
  if (!texts.empty()) facts->emplace_back("Calls recorded", join(texts, ", "));
  if (timeline.dropped > 0) facts->emplace_back("Events not recorded", cat(timeline.dropped));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> facts_of(const vm::Unit* unit,
                                                          const Timeline* timeline) {
  Facts facts;
  if (timeline) add_calls(*timeline, &facts);
  if (unit) add_program(*unit, &facts);
  return facts;
}

}  // namespace tenon::report
