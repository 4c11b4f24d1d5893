// tenon trace: records a program's compilation, loading and calls, and writes the recording.
#include <cstring>

#include "device/parallel.h"
#include "report/formats.h"
#include "report/html.h"
#include "report/record.h"
#include "support/error.h"
#include "support/output_file.h"
#include "tools/tenon/call_flags.h"
#include "tools/tenon/command.h"
#include "tools/tenon/file_argument.h"
#include "tools/tenon/json_output.h"
#include "tools/tenon/program_file.h"
#include "tools/tenon/quantity.h"
#include "vm/interp/machine.h"

namespace tenon::tool {
namespace {

struct TraceCommand : CallFlags {
  std::string output;
  bool calls = false;
  int iterations = 3;

  void run() {
    const report::Format& format = report::format_for(output);
    check_not_input(file, output, "--output");
    check_not_terminal(output);
    OutputFile out(output);
    report::Record record(calls);
    driver::Source source = read();
    inputs.sizes = flags.import_options();
    if (!source.is_graph()) flags.check_unused(source.name);
    flags.options.keep_graph = true;  // in memory: it has the kernels' operations
    const auto [program, given] = open_with_inputs(std::move(source));
    const std::vector<AnyView> views(given.values.begin(), given.values.end());
    vm::Machine machine(program.program, call_limits(), {.inter_op = flags.options.inter_op});
    for (int i = 0; i < iterations; ++i) machine.call(function, views);

    const report::Timeline timeline = report::read_timeline(record.end());
    out.write(format.write(report::report_of(program.source.name, &program.program->unit(),
                                             timeline, report::measure_peak(threads))));
    out.commit();
    if (timeline.dropped) {
      progress(cat(timeline.dropped,
                   " events were dropped: they need more memory than a recording "
                   "may use"));
    }
    if (timeline.without_source) {
      progress(cat(timeline.without_source,
                   " calls have no source: the names of calls take at most ",
                   bytes_text(report::kMostCallText)));
    }
    progress(cat(output, ": ", counted(timeline.intervals.size(), "interval"), " on ",
                 counted(timeline.threads.size(), "thread")));
    if (!json_output()) return;
    JsonWriter json = json_document();
    json.begin_object().key("file").value(program.source.name).key("output").value(output);
    json.key("calls").value(static_cast<int64_t>(iterations));
    json.key("intervals").value(static_cast<int64_t>(timeline.intervals.size()));
    json.key("threads").value(static_cast<int64_t>(timeline.threads.size()));
    json.key("dropped").value(static_cast<int64_t>(timeline.dropped));
    json.key("without_source").value(static_cast<int64_t>(timeline.without_source));
    print_json(std::move(json.end_object()));
  }
};

}  // namespace

void add_trace_command(CLI::App* app) {
  auto* command =
      app->add_subcommand("trace", "record where the time goes, for Chrome, Perfetto or scripts");
  std::string formats;
  for (const report::Format& format : report::all_formats()) {
    formats += cat("  ", format.suffix, std::string(14 - std::strlen(format.suffix), ' '),
                   format.summary, "\n");
  }
  command->footer(
      cat("Records how FILE is compiled and loaded, and some calls. The suffix of the "
          "output's\n"
          "name selects its format:\n",
          formats,
          "https://ui.perfetto.dev opens .json and .pftrace. docs/profiling.md describes what they "
          "contain.\n"
          "Missing inputs are random with a fixed seed (integers 0 or 1); missing sizes are 1.\n\n"
          "  tenon trace resnet50.onnx -o resnet50.json\n"
          "  tenon trace bert.tnx --dim batch=1 --dim sequence=128 -o bert.pftrace\n"
          "  tenon trace resnet50.tnx --iterations 20 -o resnet50.layers.json"));
  auto state = std::make_shared<TraceCommand>();
  state->CallFlags::add_to(command);
  command->add_option("-o,--output", state->output, "the recording; its name chooses the format")
      ->required();
  command->add_flag("--calls", state->calls,
                    "also record calls between the program's functions, not only those of\n"
                    "kernels and libraries; slows down programs that make many");
  command->add_option("--iterations", state->iterations, "calls to record")
      ->check(between(1, 1 << 20))
      ->capture_default_str();
  add_json(command);
  command->callback([state] { state->run(); });
}

}  // namespace tenon::tool
