#include "tools/tenon/report_page.h"

#include <chrono>
#include <filesystem>

#include "support/error.h"
#include "tools/tenon/command.h"
#include "tools/tenon/file_argument.h"

namespace tenon::tool {
namespace {

std::string time_text(std::chrono::nanoseconds time) {
  return cat(static_cast<double>(time.count() / 1000) / 1000, " ms");
}

// A path without an extension may be a pipe or a device.
void check_page(const std::string& path, const std::string& input, const char* flag) {
  check_not_input(input, path, flag);
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension.empty() || extension == ".html" || extension == ".htm") return;
  throw Error(ErrorKind::Usage, cat(flag, ": a report is a web page, but '", printable(path),
                                    "' has another extension"))
      .expected("a name that ends in .html")
      .help("`tenon trace` records in other formats, and --json prints what most commands find");
}

}  // namespace

void ReportFlag::add_to(CLI::App* command) {
  command->add_option("--report", path, "also write a page about it to this file (HTML)");
}

ReportPage::ReportPage(const std::string& path, const std::string& input, const char* flag)
    : path_(path), out_((check_page(path, input, flag), path)), record_(false) {}

void ReportPage::add_fact(std::string name, std::string value) {
  facts_.emplace_back(std::move(name), std::move(value));
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
  limits_.push_back({"function entries and backward jumps", cat(limits.fuel - machine.fuel_left()),
                     allowed(limits.fuel != unlimited.fuel, cat(limits.fuel))});
  limits_.push_back({"storage", bytes_text(machine.memory().call_peak),
                     allowed(limits.memory != 0, bytes_text(limits.memory))});
  limits_.push_back({"time of the longest call", time_text(longest),
                     allowed(limits.deadline != unlimited.deadline, time_text(limits.deadline))});
}

void ReportPage::write(const vm::Unit& unit, const std::string& title, int threads) {
  const report::Timeline timeline = report::read_timeline(record_.end());
  report::Report page = report::report_of(title, &unit, timeline, report::measure_peak(threads));
  page.facts.insert(page.facts.begin(), facts_.begin(), facts_.end());
  page.limits = limits_;
  out_.write(report::to_html(page));
  out_.commit();
  progress(cat("report: ", path_));
}

}  // namespace tenon::tool
