// tenon report: a page about a program: its graph, its kernels, and where the time goes.
#include "support/error.h"
#include "tools/tenon/call_flags.h"
#include "tools/tenon/command.h"
#include "tools/tenon/file_argument.h"
#include "tools/tenon/json_output.h"
#include "tools/tenon/program_file.h"
#include "tools/tenon/report_page.h"

namespace tenon::tool {
namespace {

struct ReportCommand : CallFlags {
  std::string output;
  int iterations = 5;

  void run() {
    if (output.empty()) output = default_output(file, ".html");
    check_not_terminal(output);
    ReportPage page(output, file, "--output");
    driver::Source source = read();
    inputs.sizes = flags.import_options();
    if (!source.is_graph()) flags.check_unused(source.name);
    flags.options.keep_graph = true;  // in memory, for the page
    const auto [program, given] = open_with_inputs(std::move(source));
    const std::vector<AnyView> views(given.values.begin(), given.values.end());
    vm::Machine machine(program.program, call_limits(), {.inter_op = flags.options.inter_op});
    page.run(machine, function, views, iterations);
    page.write(program.program->unit(), program.source.name, threads);
    if (!json_output()) return;
    JsonWriter json = json_document();
    json.begin_object().key("file").value(program.source.name).key("output").value(output);
    json.key("calls").value(static_cast<int64_t>(iterations));
    print_json(std::move(json.end_object()));
  }
};

}  // namespace

void add_report_command(CLI::App* app) {
  auto* command =
      app->add_subcommand("report", "write a page about a model and where its time goes");
  command->footer(
      "Writes one HTML file that needs no network: the graph before and after compilation, the "
      "time\n"
      "of each kernel and ONNX node, a timeline, memory, a roofline and the limits used.\n"
      "A .tnx has the graph, the IR of its kernels and their operations only if it was compiled\n"
      "with --keep-graph; a model or program always has.\n"
      "Missing inputs are random with a fixed seed (integers 0 or 1); missing sizes are 1.\n\n"
      "  tenon report resnet50.onnx -o resnet50.html\n"
      "  tenon report bert.tnx --dim batch=1 --dim sequence=128 -o bert.html");
  auto state = std::make_shared<ReportCommand>();
  state->CallFlags::add_to(command);
  command->add_option("-o,--output", state->output,
                      "the page; unless given, FILE with the extension .html, in FILE's folder");
  command->add_option("--iterations", state->iterations, "calls to record")
      ->check(between(1, 1 << 20))
      ->capture_default_str();
  add_json(command);
  command->callback([state] { state->run(); });
}

}  // namespace tenon::tool
