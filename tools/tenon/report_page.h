// The page of `tenon report` and of --report: what a program is, and what happened to it.
#pragma once

#include <span>
#include <string>

#include "report/html.h"
#include "report/record.h"
#include "support/output_file.h"
#include "tools/tenon/command.h"
#include "vm/interp/machine.h"

namespace tenon::tool {

// --report F.html, of commands that do something else.
struct ReportFlag {
  std::string path;

  void add_to(CLI::App* command);
  bool is_given() const { return !path.empty(); }
};

// A page that is written at the end, whole or not at all. Records while it lives.
class ReportPage {
 public:
  // `path` must be that of a web page. `input` is the FILE of the command, which `path` must not
  // be; `flag` the option that names it.
  ReportPage(const std::string& path, const std::string& input, const char* flag);

  // Calls the function and records that, too.
  void run(vm::Machine& machine, const std::string& function, std::span<const AnyView> arguments,
           int iterations);
  void add_fact(std::string name, std::string value);
  // Ends the recording and writes the page.
  void write(const vm::Unit& unit, const std::string& title, int threads);

 private:
  std::string path_;
  OutputFile out_;
  report::Record record_;
  // Of the command; the program's facts follow them.
  std::vector<std::pair<std::string, std::string>> facts_;
  std::vector<report::Report::Limit> limits_;
};

}  // namespace tenon::tool
