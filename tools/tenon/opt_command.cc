// tenon opt: runs passes on a program and prints it; used by the golden tests.
#include <cstdio>
#include <utility>

#include "evaluate/reference_evaluator.h"
#include "graph/ir/check.h"
#include "graph/ir/text.h"
#include "graph/pass/pass.h"
#include "support/error.h"
#include "tools/tenon/command.h"
#include "tools/tenon/file_argument.h"
#include "tools/tenon/json_output.h"
#include "tools/tenon/limit_flags.h"
#include "tools/tenon/program_file.h"

namespace tenon::tool {
namespace {

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    while (at < end && list[at] == ' ') ++at;
    size_t last = end;
    while (last > at && list[last - 1] == ' ') --last;
    if (last > at) parts.push_back(list.substr(at, last - at));
    at = end + 1;
  }
  return parts;
}

}  // namespace

void add_opt_command(CLI::App* app) {
  auto* command = app->add_subcommand("opt", "run passes on a program and print it");
  command->footer(
      "`tenon compile --list-passes` lists the passes. Without passes, checks the program.\n\n"
      "  tenon opt program.tn --passes simplify,fuse_operators");
  auto file = std::make_shared<std::string>();
  auto passes = std::make_shared<std::string>();
  auto flags = std::make_shared<CompileFlags>();
  auto output = std::make_shared<std::string>();
  command->add_option("FILE", *file, "program (.tn) or model (.onnx); - for standard input")
      ->required();
  command->add_option("--passes", *passes, "names separated by commas; empty: check and print");
  command->add_option("-o,--output", *output,
                      "the file to write, and large constants to FILE.weights beside it;\n"
                      "by default the program is printed, without its large constants");
  flags->add_to(command);
  auto limits = std::make_shared<LimitFlags>();
  limits->add_to(command, "reading the file and running the passes may");
  add_json(command);
  command->callback([=] {
    const BudgetedWork work(limits->work(), "running passes on", input_name(*file));
    const bool prints = output->empty() || *output == "-";
    if (!prints) {
      check_not_input(*file, *output, "--output");
      check_writable(*output);
    }
    const driver::Source source = open_input(*file);
    if (source.kind == driver::SourceKind::Program) flags->check_no_sizes(source.name);
    const graph::ReferencedFiles read;
    graph::Module module = read_module(source, *flags);
    if (!prints) {
      check_not_read(read, *output, "--output");
      check_not_read(read, graph::weights_path(*output), "--output");
    }
    graph::check_module(module);
    for (const std::string& name : split(*passes)) {
      module = driver::run_one_pass(module, name, flags->options);
      graph::check_module(module);
    }
    if (!prints) graph::save_module(module, *output);
    if (!prints && !json_output()) return;
    const std::string text = prints ? graph::to_text(module) : "";
    if (!json_output()) {
      std::printf("%s", text.c_str());
      return;
    }
    JsonWriter out = json_document();
    out.begin_object().key("file").value(source.name);
    prints ? out.key("text").value(text) : out.key("output").value(*output);
    print_json(std::move(out.end_object()));
  });
}

}  // namespace tenon::tool
