// tenon compile: compiles a model or program to a .tnx file.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include "driver/code_choice.h"
#include "driver/late_weights.h"
#include "driver/model_graph.h"
#include "driver/provenance.h"
#include "graph/ir/text.h"
#include "graph/ir/weights.h"
#include "support/error.h"
#include "support/phase.h"
#include "tools/tenon/child_process.h"
#include "tools/tenon/command.h"
#include "tools/tenon/file_argument.h"
#include "tools/tenon/json_output.h"
#include "tools/tenon/limit_flags.h"
#include "tools/tenon/program_file.h"
#include "tools/tenon/report_page.h"
#include "tools/tenon/status_line.h"
#include "vm/executable/write_file.h"

namespace tenon::tool {
namespace {

std::string cpu_names(const std::vector<codegen::Target>& targets) {
  std::vector<std::string> names;
  for (const codegen::Target& target : targets) names.push_back(target.cpu);
  return join(names, ", ");
}

// The libraries that the file names, as they are installed beside the runtime.
std::vector<std::string> library_files(const vm::Unit& unit) {
  std::vector<std::string> files;
  for (const std::string& name : unit.libraries) files.push_back(cat("libtenon_", printable(name)));
  return files;
}

struct CompileCommand {
  std::string input, output, weights, dump_after, dump_dir, stop_after;
  bool list_passes = false, time_passes = false, isolate = false;
  CompileFlags flags;
  LimitFlags limits;
  ReportFlag report;
  int* exit_code = nullptr;

  void list() const {
    if (json_output()) {
      JsonWriter out = json_document();
      out.begin_object().key("passes").begin_array();
      for (const driver::Step& step : driver::all_steps()) {
        out.begin_object().key("name").value(step.name).key("level").value(step.level);
        out.key("summary").value(step.summary).end_object();
      }
      return print_json(std::move(out.end_array().end_object()));
    }
    for (const driver::Step& step : driver::all_steps()) {
      std::printf("%-28s -O%d  %s\n", step.name.c_str(), step.level, step.summary.c_str());
    }
  }

  static void require_pass(const std::string& name) {
    if (!name.empty() && name != "all") driver::require_pass(name);
  }

  void dump(std::string_view pass, const graph::Module& module, int index,
            const graph::ReferencedFiles& read) const {
    if (dump_after != "all" && dump_after != pass) return;
    if (dump_dir.empty()) {
      std::printf("// after %.*s\n%s\n", static_cast<int>(pass.size()), pass.data(),
                  graph::to_text(module).c_str());
      return;
    }
    std::filesystem::create_directories(dump_dir);
    const std::string path = cat(dump_dir, "/", index < 10 ? "0" : "", index, "_", pass, ".tn");
    check_not_input(input, path, "--dump-dir");
    check_not_read(read, path, "--dump-dir");
    check_not_read(read, graph::weights_path(path), "--dump-dir");
    graph::save_module(module, path);
  }

  // Options that would be ignored are refused.
  void check_flags() const {
    if (!stop_after.empty() && report.is_given()) {
      throw Error(ErrorKind::Usage, "--report has no effect with --stop-after")
          .help("compilation then ends with a module: leave out one of them");
    }
    if (!stop_after.empty() && !output.empty()) {
      throw Error(ErrorKind::Usage, "--output has no effect with --stop-after")
          .help(
              "compilation then ends with a module, which is printed: redirect it with > FILE.tn");
    }
    if (!dump_dir.empty() && dump_after.empty()) {
      throw Error(ErrorKind::Usage, "--dump-dir needs --dump-after")
          .help("say after which pass, or --dump-after all");
    }
    if (output == "-" && (time_passes || (!dump_after.empty() && dump_dir.empty()))) {
      throw Error(ErrorKind::Usage, "--output - writes the file to standard output")
          .help(time_passes ? "--time-passes prints there too: write a file"
                            : "--dump-after prints there too: add --dump-dir FOLDER");
    }
    if (!dump_dir.empty()) check_folder_writable(dump_dir);
    if (json_output() &&
        (output == "-" || !stop_after.empty() || (!dump_after.empty() && dump_dir.empty()))) {
      const char* other = output == "-"         ? "--output -"
                          : !stop_after.empty() ? "--stop-after"
                                                : "--dump-after";
      throw Error(ErrorKind::Usage, cat("--json and ", other, " both print to standard output"))
          .help("leave out one of them");
    }
  }

  void check_weights() const {
    if (!stop_after.empty()) {
      throw Error(ErrorKind::Usage, "--external-weights has no effect with --stop-after")
          .help("compilation then ends with a module: leave out one of them");
    }
    check_not_input(input, weights, "--external-weights");
    if (weights == output) {
      throw Error(ErrorKind::Usage, "--external-weights and --output name the same file")
          .help("give the weights a file of their own, such as MODEL.safetensors");
    }
  }

  void run() {
    if (list_passes) return list();
    if (input.empty()) {
      throw Error(ErrorKind::Usage, "no model or program is given")
          .help("tenon compile MODEL.onnx -o MODEL.tnx");
    }
    require_pass(stop_after);
    require_pass(dump_after);
    if (output.empty() && stop_after.empty()) {
      output = default_output(input, flags.options.shared ? ".so" : ".tnx");
      // Opening it says what it is, if it is compiled already.
      if (output == input && input != "-") read_module(open_input(input), flags);
    }
    check_flags();
    if (!weights.empty()) check_weights();
    // They are this process's, so that a child that doesn't reach its end leaves nothing of them.
    Outputs outputs;
    if (stop_after.empty()) {
      check_not_input(input, output, "--output");
      check_not_terminal(output);
      outputs.program.emplace(output);
      if (!weights.empty()) outputs.weights.emplace(weights);
    }
    if (isolate) {
      *exit_code =
          run_in_child(limits.given(), "compiling", input_name(input), [&] { compile(&outputs); });
      if (*exit_code != 0) return;
    } else {
      compile(&outputs);
    }
    if (outputs.weights) outputs.weights->commit();  // before what needs them
    if (outputs.program) outputs.program->commit();
  }

  // What is written: no program with --stop-after.
  struct Outputs {
    std::optional<OutputFile> program, weights;
  };

  void compile(Outputs* outputs) const {
    std::optional<ReportPage> page;
    if (report.is_given()) page.emplace(report.path, input, "--report");
    const BudgetedWork work(limits.work(), "compiling", input_name(input));
    StatusLine status(cat("compiling ", input_name(input)));
    const driver::Source source = open_input(input);
    if (source.kind == driver::SourceKind::Program) flags.check_no_sizes(source.name);
    PhaseTimes times;
    const auto start = std::chrono::steady_clock::now();
    auto seconds = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    driver::CompileOptions options = flags.options;
    const std::vector<codegen::Target> targets = driver::choose_code(options).targets;
    for (const codegen::Target& target : targets) {
      detail(cat("target: ", codegen::to_text(target)));
    }
    const graph::ReferencedFiles read;
    graph::Module module = read_module(source, flags);
    if (outputs->program) check_not_read(read, output, "--output");
    if (outputs->weights) check_not_read(read, weights, "--external-weights");
    if (page) check_not_read(read, report.path, "--report");
    progress(cat(source.name, ": read in ", static_cast<int64_t>(seconds() * 1000), " ms"));
    int index = 0;
    options.stop_after = stop_after;
    if (outputs->program) options.origin = driver::origin_of(source, flags.import_options());
    if (outputs->program) options.note = progress;
    options.after_pass = [&](std::string_view pass, const graph::Module& now, double took) {
      status.set(cat("after ", pass));
      dump(pass, now, index++, read);
      if (!time_passes) detail(cat("  ", pass, ": ", static_cast<int64_t>(took * 1000), " ms"));
    };
    const graph::Module described = options.keep_graph || page ? module : graph::Module();
    const graph::Module lowered = driver::run_passes(std::move(module), options);
    if (!outputs->program) {
      if (dump_after.empty()) std::printf("%s\n", graph::to_text(lowered).c_str());
      if (time_passes) print_times(times);
      return;
    }
    status.set(cat("generating code for ", counted(lowered->kernels.size(), "kernel")));
    vm::Unit unit = driver::generate_code(lowered, options);
    if (described) unit.graph = driver::to_json(driver::describe_model(described, lowered));
    if (page) page->write(unit, source.name, 0);
    if (!options.keep_graph) unit.graph.clear();
    status.set("writing");
    if (outputs->weights) {
      graph::write_weights(*outputs->weights, driver::leave_out_weights(unit));
    }
    const size_t bytes = options.shared ? vm::write_shared(unit, *outputs->program, output)
                                        : vm::write(unit, *outputs->program, output);
    report_growth(source, unit);
    const std::vector<std::string> libraries = library_files(unit);
    if (options.keep_computes && !libraries.empty()) {
      progress(cat(output_name(), ": --untrusted will refuse this file, although it keeps its ",
                   "computes, because it needs ", join(libraries, ", ")));
    }
    if (json_output()) return write(source, bytes, *lowered, unit, targets, seconds(), times);
    progress(cat(output_name(), ": ", bytes / 1024, " KB, ",
                 counted(lowered->kernels.size(), "kernel"), " for ", cpu_names(targets),
                 libraries.empty() ? "" : cat(", needs ", join(libraries, ", ")), ", compiled in ",
                 static_cast<int64_t>(seconds() * 1000), " ms"));
    if (time_passes) print_times(times);
  }

  std::string output_name() const { return output == "-" ? "<stdout>" : output; }

  // Says when most of the file is weights that the model has in another form: computed by its
  // nodes, or quantized.
  static void report_growth(const driver::Source& source, const vm::Unit& unit) {
    constexpr uint64_t kMuch = uint64_t{16} << 20;
    if (source.kind != driver::SourceKind::Model) return;
    uint64_t stored = 0, given = 0;
    for (const vm::Constant& constant : unit.constants) {
      const auto tensor = constant.value.try_as<Tensor>();
      if (tensor && *tensor) stored += static_cast<uint64_t>(tensor->bytes());
    }
    if (stored < kMuch || stored < 2 * source.content().size()) return;
    for (const onnx::TensorData& weight : driver::read_model(source).graph.initializers) {
      if (weight.tensor) given += static_cast<uint64_t>(weight.tensor.bytes());
    }
    if (stored < 2 * given) return;
    progress(cat(source.name, ": its weights of ", bytes_text(given), " become ",
                 bytes_text(stored), ", because nodes compute or dequantize them; --fold-limit ",
                 "bounds what is stored"));
  }

  void write(const driver::Source& source, size_t bytes, const graph::ModuleNode& lowered,
             const vm::Unit& unit, const std::vector<codegen::Target>& targets, double seconds,
             const PhaseTimes& times) const {
    JsonWriter out = json_document();
    out.begin_object().key("file").value(source.name).key("output").value(output);
    out.key("bytes").value(static_cast<uint64_t>(bytes));
    if (!weights.empty()) out.key("external_weights").value(weights);
    out.key("kernels").value(static_cast<uint64_t>(lowered.kernels.size()));
    out.key("libraries").begin_array();
    for (const std::string& library : unit.libraries) out.value(library);
    out.end_array().key("cpus").begin_array();
    for (const codegen::Target& target : targets) out.value(target.cpu);
    out.end_array().key("seconds").value(seconds);
    out.key("phases").begin_array();
    for (const PhaseTimes::Row& row : times.rows()) {
      out.begin_object().key("name").value(row.name);
      out.key("ms").value(row.seconds * 1000).end_object();
    }
    print_json(std::move(out.end_array().end_object()));
  }

  static void print_times(const PhaseTimes& times) {
    double whole = 0;
    for (const PhaseTimes::Row& row : times.rows()) {
      std::printf("%-28s %8.1f ms\n", row.name.c_str(), row.seconds * 1000);
      whole += row.seconds;
    }
    std::printf("%-28s %8.1f ms\n", "all", whole * 1000);
  }
};

}  // namespace

void add_compile_command(CLI::App* app, int* exit_code) {
  auto* command =
      app->add_subcommand("compile", "compile an ONNX model or a .tn program to a .tnx file");
  command->footer(
      "Symbolic sizes of the model stay symbolic: one file serves every batch size and length.\n"
      "Fix them with --dim or --shape if they never change.\n\n"
      "  tenon compile resnet50.onnx -o resnet50.tnx\n"
      "  tenon compile bert.onnx --cpu x86-64-v3 --dim batch=1");
  auto state = std::make_shared<CompileCommand>();
  state->exit_code = exit_code;
  command->add_option("FILE", state->input, "model (.onnx) or program (.tn); - for standard input");
  command->add_option("-o,--output", state->output, kOutputHelp);
  command->add_option("--external-weights", state->weights,
                      "write large constants to this safetensors file instead; give it to\n"
                      "`tenon run --weights`");
  state->flags.add_to(command, /*writes_file=*/true);
  state->limits.add_to(command, "compiling may");
  state->report.add_to(command);
  command
      ->add_flag("--isolate", state->isolate,
                 "compile in a child process: a crash of it, or lack of memory, is an error,\n"
                 "and --memory holds for the whole process")
      ->group("Limits");
  command
      ->add_option("--dump-after", state->dump_after, "print the module after a pass, or after all")
      ->group("Inspection");
  command->add_option("--dump-dir", state->dump_dir, "write dumps into this folder instead")
      ->group("Inspection");
  command->add_option("--stop-after", state->stop_after, "end after a pass and print its module")
      ->group("Inspection");
  command->add_flag("--list-passes", state->list_passes, "list the passes in their order")
      ->group("Inspection");
  command
      ->add_flag("--time-passes", state->time_passes,
                 "print how long each pass and each other phase took")
      ->group("Inspection");
  add_json(command);
  command->callback([state] { state->run(); });
}

}  // namespace tenon::tool
