#include "tools/tenon/report_page.h"

#include <chrono>

#include "tools/tenon/command.h"
#include "tools/tenon/file_argument.h"

namespace tenon::tool {
namespace {

std::string time_text(std::chrono::nanoseconds time) {
  return cat(static_cast<double>(time.count() / 1000) / 1000, " ms");
}

int64_t weight_bytes(const vm::Unit& unit) {
  int64_t bytes = 0;
  for (const vm::Constant& constant : unit.constants) {
    if (auto tensor = constant.value.try_as<Tensor>(); tensor && *tensor) bytes += tensor->bytes();
  }
  return bytes;
}

}  // namespace

void ReportFlag::add_to(CLI::App* command) {
  command->add_option("--report", path, "also write a page about it to this file (HTML)");
}

ReportPage::ReportPage(const std::string& path, const std::string& input, const char* flag)
    : path_(path), out_((check_not_input(input, path, flag), path)), record_(false) {}

void ReportPage::add_fact(std::string name, std::string value) {
  page_.facts.emplace_back(std::move(name), std::move(value));
}

void ReportPage::run(vm::Machine& machine, const std::string& function,
                     std::span<const AnyView> arguments, int iterations) {
  std::chrono::nanoseconds longest{0};
  auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < iterations; ++i) {
    machine.call(function, arguments);
    const auto end = std::chrono::steady_clock::now();
    longest = std::max(longest, std::chrono::nanoseconds(end - begin));
    begin = end;
  }
  const vm::Limits& limits = machine.limits();
  const vm::Limits unlimited;
  const auto allowed = [](bool is_limited, std::string text) {
    return is_limited ? std::move(text) : "no limit";
  };
  page_.limits.push_back({"function entries and backward jumps",
                          cat(limits.fuel - machine.fuel_left()),
                          allowed(limits.fuel != unlimited.fuel, cat(limits.fuel))});
  page_.limits.push_back({"storage", bytes_text(machine.memory().call_peak),
                          allowed(limits.memory != 0, bytes_text(limits.memory))});
  page_.limits.push_back(
      {"time of the longest call", time_text(longest),
       allowed(limits.deadline != unlimited.deadline, time_text(limits.deadline))});
  add_fact("Calls recorded", cat(iterations, " of ", printable(function)));
}

void ReportPage::write(const vm::Unit& unit, const std::string& title, int threads) {
  const report::Timeline timeline = report::read_timeline(record_.end());
  page_.title = title;
  page_.unit = &unit;
  page_.timeline = &timeline;
  page_.peak = report::measure_peak(threads);
  for (const vm::FunctionUnit& f : unit.functions) {
    if (!f.exported) continue;
    std::vector<std::string> params;
    for (const vm::Param& param : f.params) params.push_back(cat(param.name, ": ", param.type));
    add_fact(cat("Function ", f.name), cat("(", join(params, ", "), ") -> ", f.result));
  }
  size_t kernels = 0;
  for (const vm::PackedName& packed : unit.packed) kernels += packed.kernel;
  add_fact("Kernels", cat(kernels));
  add_fact("Weights", bytes_text(static_cast<uint64_t>(weight_bytes(unit))));
  std::vector<std::string> targets;
  for (const vm::KernelTarget& target : unit.kernels) {
    targets.push_back(cat(target.triple, ", ", target.cpu));
  }
  if (!targets.empty()) add_fact("Native code for", join(targets, "; "));
  if (!unit.libraries.empty()) add_fact("Libraries", join(unit.libraries, ", "));
  add_fact("Compiled by", unit.producer);
  out_.write(report::to_html(page_));
  out_.commit();
  progress(cat("report: ", path_));
}

}  // namespace tenon::tool
