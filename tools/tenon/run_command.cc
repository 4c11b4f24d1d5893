// tenon run: runs a function on inputs and prints, stores or compares its results.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <unordered_set>

#include "codegen/llvm/target.h"
#include "device/parallel.h"
#include "driver/code_choice.h"
#include "evaluate/reference_evaluator.h"
#include "support/error.h"
#include "tools/tenon/call_flags.h"
#include "tools/tenon/command.h"
#include "tools/tenon/compare.h"
#include "tools/tenon/file_argument.h"
#include "tools/tenon/first_difference.h"
#include "tools/tenon/input_spec.h"
#include "tools/tenon/npy.h"
#include "tools/tenon/program_file.h"
#include "tools/tenon/tensor_text.h"
#include "vm/interp/machine.h"

namespace tenon::tool {
namespace {

struct RunCommand : CallFlags {
  Mode mode = Mode::Bytecode;
  bool compares = false;  // with the interpreted graph
  std::string expect, save_values;
  std::vector<std::string> outputs;  // NAME=FILE
  Tolerance tolerance;
  vm::Limits limits;
  vm::MachineOptions machine_options;
  std::optional<int64_t> fuel;
  std::optional<uint32_t> depth;
  std::vector<CLI::Option*> tolerances;
  std::vector<CLI::Option*> of_machine;  // without effect on interpretation
  int* exit_code = nullptr;
  // Where the summary and the outcome of comparisons go: standard output, unless that receives an
  // output.
  FILE* report = stdout;

  // Refuses options that would be ignored.
  void check_flags() const {
    for (const CLI::Option* option : of_machine) {
      if (mode != Mode::Interpret || option->count() == 0) continue;
      throw Error(ErrorKind::Usage, cat(option->get_name(), " has no effect with --mode interpret"))
          .help(cat("leave out ", option->get_name(), ", or --mode interpret"));
    }
    for (const CLI::Option* option : tolerances) {
      if (option->count() == 0 || !expect.empty() || compares) continue;
      throw Error(ErrorKind::Usage, cat(option->get_name(), " needs --expect or --compare"))
          .help("nothing is compared without them");
    }
    if (!save_values.empty() && mode != Mode::Interpret) {
      throw Error(ErrorKind::Usage, "--save-values needs --mode interpret")
          .help("only the interpreter has every operator's value: compiled code joins operators");
    }
    if (!save_values.empty()) check_folder_writable(save_values);
    if (!weights.empty() && mode == Mode::Interpret) {
      throw Error(ErrorKind::Usage, "--weights has no effect with --mode interpret")
          .help("a model or program in text has its weights: leave out --weights");
    }
  }

  void check_flags_of_code() const {
    flags.check_unused(file);
    if (mode != Mode::Interpret && !compares) return;
    throw Error(ErrorKind::Usage, cat(file, " cannot be interpreted"))
        .expected("an ONNX model or a program: code of the machine holds no graph");
  }

  // Prints the signature without linking the file or opening its kernels. Returns false if the
  // function takes no inputs, so that it can run, or doesn't exist.
  bool print_signature_of_code(const driver::Source& source) const {
    WorkBudget budget(limit_flags.work(), "reading", file);
    const WorkBudget::Scope scope(&budget);
    const vm::Unit unit = driver::read_code(source);
    const int64_t index = unit.find_exported(function);
    if (index < 0) return false;
    const vm::FunctionUnit& found = unit.functions[static_cast<size_t>(index)];
    if (found.params.empty()) return false;
    check_nothing_asked();
    std::printf("%s", signature_text(signature_of(found)).c_str());
    return true;
  }

  // Without inputs only the signature is printed, so options that concern results are refused.
  void check_nothing_asked() const {
    const char* asked = !expect.empty()    ? "--expect"
                        : !outputs.empty() ? "--output"
                        : compares         ? "--compare"
                                           : nullptr;
    if (!asked) return;
    throw Error(ErrorKind::Usage, cat(asked, " needs a run, and the inputs are not given"))
        .help("give --input NAME=... for each input, or --inputs FOLDER");
  }

  void set_limits() {
    limits = call_limits();
    if (fuel) limits.fuel = *fuel;
    if (depth) limits.depth = *depth;
  }

  ProgramFile open(driver::Source source) const {
    if (mode == Mode::Interpret) return open_graph(std::move(source), flags, limit_flags.work());
    return open_program(std::move(source), flags, open_options());
  }

  void run() {
    inputs.sizes = flags.import_options();
    check_flags();
    driver::Source source = read();
    file = source.name;
    const bool is_model = source.kind == driver::SourceKind::Model;
    if (!source.is_graph()) {
      check_flags_of_code();
      if (!inputs.given() && print_signature_of_code(source)) return;
    }
    const ProgramFile program = open(std::move(source));
    const FunctionSignature signature = program.signature(function);
    if (!inputs.given() && !signature.params.empty()) {
      check_nothing_asked();
      std::printf("%s", signature_text(signature).c_str());
      return;
    }
    if (!is_model) bind_sizes(signature, &inputs.sizes);
    const std::vector<std::string> names = signature.outputs();
    const std::vector<StoredOutput> stored = stored_outputs(names);
    if (std::ranges::find(stored, "-", &StoredOutput::path) != stored.end()) report = stderr;
    std::vector<std::string> expected;
    if (!expect.empty()) expected = expected_files(names);
    const Inputs given = make_inputs_within_limits(signature, /*random_rest=*/false);
    for (const std::string& note : given.notes) progress(note);
    set_limits();
    const std::vector<Any> results = mode == Mode::Interpret
                                         ? interpret(program, given.values, nullptr)
                                         : execute(program, signature, given.values);
    print_results(signature, names, results);
    store(stored, results);
    if (!expect.empty()) check_expected(expected, names, results);
    if (compares) compare_modes(program, given.values, results, names);
  }

  void print_results(const FunctionSignature& signature, const std::vector<std::string>& names,
                     const std::vector<Any>& results) const {
    size_t left = kMostText;
    for (size_t i = 0; i < results.size(); ++i) {
      const vm::SignatureType& type = signature.result.results()[i];
      const std::string text = value_text(results[i], type, kShownElements, left);
      left -= std::min(left, text.size());
      std::fprintf(report, "%s: %s\n", printable(names[i]).c_str(), text.c_str());
    }
  }

  std::vector<Any> execute(const ProgramFile& program, const FunctionSignature& signature,
                           const std::vector<Any>& values) {
    vm::Machine machine(program.program, limits, machine_options);
    std::vector<AnyView> views(values.begin(), values.end());
    return results_of(machine.call(function, views), signature.result);
  }

  std::vector<Any> interpret(const ProgramFile& program, const std::vector<Any>& values,
                             graph::ReferenceEvaluator::Observer observer) {
    WorkBudget budget(limit_flags.work(), "interpreting", file);
    const WorkBudget::Scope scope(&budget);
    std::optional<ThreadsScope> limited;
    if (threads > 0) limited.emplace(threads);
    graph::ReferenceEvaluator evaluator(driver::choose_code(flags.options).targets.front());
    if (!save_values.empty()) {
      std::filesystem::create_directories(save_values);
      int64_t index = 0;
      evaluator.observer = [&, index](const graph::Binding& binding, const Any& value) mutable {
        if (observer) observer(binding, value);
        auto tensor = value.try_as<Tensor>();
        if (tensor && *tensor) {
          write_npy(cat(save_values, "/", index++, "_", file_name(binding), ".npy"), *tensor);
        }
      };
    } else {
      evaluator.observer = observer;
    }
    if (depth) evaluator.max_depth = *depth;
    return evaluator.run(program.module, program.module->functions.at(function), values);
  }

  static std::string file_name(const graph::Binding& binding) {
    std::string name = binding.span.nodes.empty() ? binding.var->name.str() : binding.span.nodes[0];
    for (char& c : name) {
      if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
    }
    constexpr size_t kLongest = 200;  // file systems allow 255 bytes
    return name.substr(0, kLongest);
  }

  // One --output.
  struct StoredOutput {
    std::string text;  // as it was given
    size_t index;      // of the output
    std::string path;
  };

  // Refuses those that can't be stored, before anything runs.
  std::vector<StoredOutput> stored_outputs(const std::vector<std::string>& names) const {
    std::vector<StoredOutput> stored;
    for (const std::string& output : outputs) {
      const size_t equals = output.find('=');
      if (equals + 1 == output.size()) {
        throw Error(ErrorKind::Usage, cat("--output ", output, " names no file"))
            .expected(cat("--output ", output, "FILE.npy"));
      }
      const auto name = std::ranges::find(names, output.substr(0, equals));
      if (equals == std::string::npos || name == names.end()) {
        throw Error(ErrorKind::Usage, cat("--output ", output, " names no output"))
            .expected(cat("NAME=FILE.npy with NAME one of ", join(names, ", ")));
      }
      const std::string path = output.substr(equals + 1);
      check_array_file(path);
      check_writable(path);
      stored.push_back({output, static_cast<size_t>(name - names.begin()), path});
    }
    return stored;
  }

  // An output is written as NumPy's format, so another file extension is a mistake. Devices and
  // pipes have any name.
  static void check_array_file(const std::string& path) {
    std::error_code ignored;
    const bool replaced =
        std::filesystem::is_regular_file(path, ignored) || !std::filesystem::exists(path, ignored);
    if (path == "-" || !replaced || path.ends_with(".npy")) return;
    throw Error(ErrorKind::Usage, cat("--output: ", path, " is not a .npy file"))
        .help("outputs are written in NumPy's format: give a name that ends in .npy");
  }

  static void store(const std::vector<StoredOutput>& outputs, const std::vector<Any>& results) {
    for (const StoredOutput& output : outputs) {
      auto tensor = results[output.index].try_as<Tensor>();
      if (!tensor || !*tensor) {
        throw Error(ErrorKind::Usage, cat("--output ", output.text, " names no tensor"));
      }
      write_npy(output.path, *tensor);
    }
  }

  // The files of --expect, one per output: output_0.pb, ..., or NAME.npy.
  std::vector<std::string> expected_files(const std::vector<std::string>& names) const {
    const std::string wanted =
        "a folder with output_0.pb, output_1.pb, ... or NAME.npy: one for each output";
    if (!std::filesystem::is_directory(expect)) {
      throw Error(ErrorKind::Usage, cat("--expect: there is no folder ", expect)).expected(wanted);
    }
    std::vector<std::string> files = numbered_files(expect, "output");
    if (!files.empty()) return files;
    for (const std::string& name : names) files.push_back(file_of_name(expect, name));
    for (const std::string& file : files) {
      if (std::filesystem::exists(file)) continue;
      throw Error(ErrorKind::Usage, cat("--expect: ", expect, " holds neither output_0.pb nor ",
                                        std::filesystem::path(file).filename().string()))
          .expected(wanted);
    }
    return files;
  }

  void check_expected(const std::vector<std::string>& files, const std::vector<std::string>& names,
                      const std::vector<Any>& results) const {
    WorkBudget budget(limit_flags.work(), "reading", cat("the expected outputs of ", file));
    const WorkBudget::Scope scope(&budget);
    for (size_t i = 0; i < files.size() && i < results.size(); ++i) {
      const auto found = results[i].try_as<Tensor>();
      if (!found || !*found) {
        throw Error(ErrorKind::Usage, cat("--expect: output '", names[i], "' is not a tensor"))
            .found(value_text(results[i]));
      }
      const Difference d = compare(*found, read_tensor(files[i]), tolerance);
      std::fprintf(
          report, "%s: %s\n", printable(names[i]).c_str(),
          d.equal ? cat("as expected, greatest difference ", d.largest).c_str() : d.reason.c_str());
      if (!d.equal) *exit_code = 1;
    }
    if (files.size() != results.size()) {
      std::fprintf(report, "expected %s, found %zu\n", counted(files.size(), "output").c_str(),
                   results.size());
      *exit_code = 1;
    }
  }

  // Runs the graph operator by operator and names the first operator whose result differs.
  void compare_modes(const ProgramFile& program, const std::vector<Any>& values,
                     const std::vector<Any>& results, const std::vector<std::string>& names) {
    std::unordered_set<const graph::Binding*> own;  // bindings of the outermost block
    const graph::FunctionRef compared = *program.module->functions.find(function);
    for (const auto& binding : compared->body->bindings) own.insert(binding.get());
    std::vector<InterpretedValue> seen;
    const std::vector<Any> reference =
        interpret(program, values, [&](const graph::Binding& binding, const Any& value) {
          auto tensor = value.try_as<Tensor>();
          if (tensor && *tensor && own.contains(&binding)) {
            seen.push_back({Ref<const graph::Binding>(&binding), value});
          }
        });
    bool differ = false;
    for (size_t i = 0; i < results.size(); ++i) {
      const Difference d = compare_values(results[i], reference[i], tolerance);
      std::fprintf(report, "%s: %s\n", printable(names[i]).c_str(),
                   d.equal ? cat("as interpreted, greatest difference ", d.largest).c_str()
                           : d.reason.c_str());
      differ = differ || !d.equal;
    }
    if (!differ) return;
    *exit_code = 1;
    const auto first =
        first_difference(program.module, function, flags.options, values, seen, tolerance);
    if (!first) return;
    std::fprintf(report, "first to differ: %s, greatest difference %s\n  %s\n",
                 printable(tenon::to_text(first->span)).c_str(),
                 cat(first->difference.largest).c_str(), first->difference.reason.c_str());
  }
};

}  // namespace

void add_run_command(CLI::App* app, int* exit_code) {
  auto* command = app->add_subcommand("run", "run a function of an executable, model or program");
  command->footer(
      "Without inputs, prints the function's signature. An input is a file (.npy, .pb), a number\n"
      "for a scalar or a tensor of rank 0, or random: floats from -1 to 1, integers 0 or 1, or\n"
      "numbers in LO..HI, inclusive; sizes of random inputs that --dim or --shape do not give are "
      "1.\n"
      "--expect compares with stored outputs; --compare compares with the graph walked operator "
      "by\n"
      "operator and names the first operator that differs.\n"
      "Without --memory, a call may use the memory that the system has left.\n"
      "Run a file from a sender that you do not trust with --untrusted, and set --fuel, "
      "--deadline\n"
      "and --memory to stop runaway programs. --untrusted refuses libraries, models and textual\n"
      "programs. It also refuses native kernels, which cannot be checked before they run, unless\n"
      "the file was compiled with --keep-computes: then they are compiled again when it is "
      "loaded,\n"
      "with every access checked.\n"
      "\n"
      "  tenon run mnist.onnx --input image=digit.npy\n"
      "  tenon run bert.tnx --dim batch=1 --dim seq=7 --input ids=random:0..99 --input "
      "mask=random\n"
      "  tenon run model.tnx --inputs test_data_set_0 --expect test_data_set_0\n"
      "  tenon run fib.tn --function fib --input n=30\n"
      "  tenon run found.tnx --untrusted --fuel 1000000 --memory 100 --input x=x.npy");
  auto state = std::make_shared<RunCommand>();
  state->exit_code = exit_code;
  state->CallFlags::add_to(command);
  add_repeated(command, "--output,-o", state->outputs, "NAME=F.npy: store an output");
  command->add_option(
      "--expect", state->expect,
      "folder with output_0.pb, ... or NAME.npy: compare; exit code 1 if they differ");
  state->tolerances = add_tolerances(command, &state->tolerance);
  add_mode(command, state->mode);
  command
      ->add_option_function<std::string>(
          "--compare", [compares = &state->compares](const std::string&) { *compares = true; },
          "interpret: run both ways and name the first node that differs")
      ->check(CLI::IsMember({kInterpret}));
  command->add_option("--save-values", state->save_values,
                      "with --mode interpret: store every operator's value in this folder");
  state->of_machine.push_back(command->get_option("--untrusted"));
  state->of_machine.push_back(
      command->add_option("--fuel", state->fuel, "calls and backward jumps that it may make")
          ->check(between(0))
          ->group("Limits"));
  command->add_option("--depth", state->depth, "calls that may nest")
      ->check(between(1, 1 << 30))
      ->group("Limits");
  state->of_machine.push_back(
      command->add_flag("--poison", state->machine_options.poison, kPoisonHelp));
  command->callback([state] { state->run(); });
}

}  // namespace tenon::tool
