// tenon run: runs a function on inputs and prints, stores or compares its results.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "codegen/llvm/target.h"
#include "device/parallel.h"
#include "driver/code_choice.h"
#include "evaluate/reference_evaluator.h"
#include "loop/scalar_tensor.h"
#include "support/error.h"
#include "tools/tenon/call_flags.h"
#include "tools/tenon/call_results.h"
#include "tools/tenon/command.h"
#include "tools/tenon/compare.h"
#include "tools/tenon/first_difference.h"
#include "tools/tenon/input_spec.h"
#include "tools/tenon/json_output.h"
#include "tools/tenon/numpy/npy.h"
#include "tools/tenon/program_file.h"
#include "tools/tenon/tensor_store.h"
#include "tools/tenon/tensor_text.h"
#include "tools/tenon/value_index.h"
#include "vm/interp/machine.h"

namespace tenon::tool {
namespace {

struct RunCommand : CallFlags {
  Mode mode = Mode::Compiled;
  const CLI::Option* mode_option = nullptr;
  bool compares = false;  // with the interpreted graph
  std::string expect, save_values;
  ShowFlags show;
  StoreFlags stores;
  Criterion criterion;
  vm::Limits limits;
  vm::MachineOptions machine_options;
  std::optional<int64_t> fuel;
  std::vector<CLI::Option*> tolerances;
  std::vector<const CLI::Option*> of_machine;  // without effect on interpretation
  int* exit_code = nullptr;
  // Where the results and the outcome of comparisons go: standard output, unless that receives an
  // output.
  FILE* report = stdout;
  JsonWriter json = json_document();  // with --json, what is printed instead

  struct Compared {
    std::string name;
    Difference difference;
  };

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

  // Without linking the file or opening its kernels. Nothing if there is no such function: loading
  // says so.
  std::optional<FunctionSignature> signature_of_code(const driver::Source& source) const {
    const BudgetedWork work(limit_flags.work(), "reading", file);
    const vm::Unit unit = driver::read_code(source);
    const int64_t index = unit.find_exported(function);
    if (index < 0) return std::nullopt;
    return signature_of(unit, static_cast<size_t>(index));
  }

  bool lacks_inputs(const FunctionSignature& signature) const {
    return !inputs.given() && !signature.params.empty();
  }

  // What a call needs besides the program.
  struct Prepared {
    CallResults results;
    std::optional<TensorStore> expected;
    Inputs given;
  };

  Prepared prepare(const FunctionSignature& signature, bool is_model) {
    if (!is_model) bind_sizes(signature, &inputs.sizes);
    Prepared out{{signature, signature.outputs(), {}}, {}, {}};
    stores.prepare(signature);
    show.prepare();
    if (stores.to_stdout()) report = stderr;
    if (stores.to_stdout() && json_output()) {
      throw Error(ErrorKind::Usage, "--json and an output both go to standard output")
          .help("store the output in a file");
    }
    if (!expect.empty()) out.expected = expected_outputs(out.results.names);
    out.given = make_inputs_within_limits(signature, /*random_rest=*/false);
    return out;
  }

  // Without inputs, there is no call.
  void show_instead(const FunctionSignature& signature) const {
    check_nothing_asked();
    show_signature(signature);
  }

  void show_signature(const FunctionSignature& signature) const {
    if (!json_output()) {
      std::printf("%s", signature_text(signature).c_str());
      for (const std::string& type : definitions_in(signature)) {
        std::printf("  type    %s\n", printable(type).c_str());
      }
      return;
    }
    JsonWriter out = json_document();
    out.begin_object().key("file").value(file).key("signature");
    write_signature(out, signature);
    out.key("types").value(definitions_in(signature));
    print_json(std::move(out.end_object()));
  }

  // Without inputs only the signature is printed, so options that concern results are refused.
  void check_nothing_asked() const {
    const char* asked = !expect.empty()  ? "--expect"
                        : stores.given() ? stores.name()
                        : compares       ? "--compare"
                                         : nullptr;
    if (!asked) return;
    throw Error(ErrorKind::Usage, cat(asked, " needs a run, and the inputs are not given"))
        .help("give --input NAME=... for each input, or --inputs FOLDER or FILE.npz");
  }

  void set_limits() {
    limits = call_limits();
    if (fuel) limits.fuel = *fuel;
  }

  ProgramFile open(driver::Source source) const {
    if (mode == Mode::Interpret) return open_graph(std::move(source), flags, limit_flags.work());
    OpenOptions options = open_options();
    options.function = function;
    options.must_be_compiled = mode == Mode::Compiled && mode_option->count() > 0;
    return open_program(std::move(source), flags, options);
  }

  void run() {
    inputs.sizes = flags.import_options();
    check_flags();
    driver::Source source = read();
    file = source.name;
    const bool is_model = source.kind == driver::SourceKind::Model;
    std::optional<FunctionSignature> known;
    if (!source.is_graph()) {
      check_flags_of_code();
      if (!inputs.given() || untrusted) known = signature_of_code(source);
    }
    if (known && lacks_inputs(*known)) return show_instead(*known);
    std::optional<Prepared> prepared;
    // Loading an untrusted file compiles its kernels, which may take long: mistakes are found
    // before.
    if (known && untrusted) prepared = prepare(*known, is_model);
    const ProgramFile program = open(std::move(source));
    const FunctionSignature signature = program.signature(function);
    if (lacks_inputs(signature)) return show_instead(signature);
    if (!prepared) prepared = prepare(signature, is_model);
    auto& [results, expected, given] = *prepared;
    for (const std::string& note : given.notes) progress(note);
    set_limits();
    if (program.program) {
      detail(cat(file, ": loaded in ", static_cast<int64_t>(program.load_seconds * 1000), " ms",
                 program.code.empty() ? "" : cat(", code for ", program.code)));
      if (program.lacks_code) detail(cat(file, ": ", kLacksCode));
    }
    const auto start = std::chrono::steady_clock::now();
    try {
      results.values = mode == Mode::Interpret ? interpret(program, given.values, nullptr)
                                               : execute(program, signature, given.values);
    } catch (Error& error) {
      show_line_of_program(program.source, &error);
      throw;
    }
    detail(cat(
        function, ": ",
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count(),
        " ms"));
    show.check_labels(results);
    show_results(results);
    stores.store(results);
    if (expected) check_expected(*expected, results);
    if (compares) compare_modes(program, given.values, results);
    if (json_output()) print_json(std::move(json.end_object()));
  }

  void show_results(const CallResults& results) {
    const BudgetedWork work(limit_flags.work(), "printing", cat("the results of ", file));
    if (!json_output()) return show.print(results, report);
    json.begin_object().key("file").value(file).key("function").value(function).key("outputs");
    show.write(results, json);
  }

  std::vector<Any> execute(const ProgramFile& program, const FunctionSignature& signature,
                           const std::vector<Any>& values) {
    machine_options.inter_op = flags.options.inter_op;
    vm::Machine machine(program.program, limits, machine_options);
    std::vector<AnyView> views(values.begin(), values.end());
    return results_of(machine.call(function, views), signature.result);
  }

  std::vector<Any> interpret(const ProgramFile& program, const std::vector<Any>& values,
                             graph::EvaluatorState::Observer observer) {
    const BudgetedWork work(limit_flags.work(), "interpreting", file);
    std::optional<ThreadsScope> limited;
    if (threads > 0) limited.emplace(threads);
    graph::ReferenceEvaluator evaluator(driver::choose_code(flags.options).targets.front());
    evaluator.state().observer = observer;
    std::optional<ValueFolder> saved;
    std::unordered_map<const graph::Var*, std::vector<std::string>> names;  // ONNX's
    if (!save_values.empty()) {
      saved.emplace(save_values);
      for (const onnx::NodeValue& value : program.values) {
        if (const auto* var = value.value.as<graph::Var>()) names[var].push_back(value.name);
      }
      evaluator.state().observer = [&](const graph::Binding& binding, const Any& value) {
        if (observer) observer(binding, value);
        const auto tensor = value.try_as<Tensor>();
        if (!tensor || !*tensor) return;
        const std::vector<std::string>& nodes = binding.span.nodes;
        saved->add(names[binding.var.get()],
                   nodes.empty() ? std::string(binding.var->name) : nodes[0], *tensor);
      };
    }
    if (depth) evaluator.state().max_depth = *depth;
    if (stack > 0) evaluator.state().max_stack_bytes = static_cast<size_t>(stack);
    std::vector<Any> results =
        evaluator.run(program.module, program.module->functions.at(function), values);
    if (saved) saved->finish();
    return results;
  }

  // Refuses --expect without a tensor for each output, before anything runs.
  TensorStore expected_outputs(const std::vector<std::string>& names) const {
    TensorStore store(expect, "output", "--expect");
    if (store.numbered() > 0) return store;
    for (size_t i = 0; i < names.size(); ++i) {
      if (store.holds(names[i], i)) continue;
      Error error(ErrorKind::Usage, cat("--expect: ", expect, " has no output '", names[i], "'"));
      const std::string contents = store.contents();
      if (!contents.empty()) error.found(contents);
      throw error.expected(store.places(names[i], i));
    }
    return store;
  }

  void check_expected(const TensorStore& expected, const CallResults& results) {
    const BudgetedWork work(limit_flags.work(), "reading", cat("the expected outputs of ", file));
    std::vector<Compared> all;
    size_t missing = 0;
    for (size_t i = 0; i < results.values.size(); ++i) {
      const auto found = results.values[i].try_as<Tensor>();
      const vm::SignatureType& type = results.signature.result.results()[i];
      const std::optional<Any> stored = expected.read_value(results.names[i], i, type);
      const auto tensor = stored ? stored->try_as<Tensor>() : std::nullopt;
      if (!stored) {
        ++missing;
      } else if (found && *found) {
        all.push_back({results.names[i], compare(*found, *tensor, criterion)});
      } else if (type.kind == vm::SignatureType::Kind::Scalar) {
        const Tensor number = loop::scalar_tensor(type.dtype, results.values[i]);
        all.push_back({results.names[i], compare(number, *tensor, criterion)});
      } else if (!tensor) {
        all.push_back({results.names[i], compare_values(results.values[i], *stored, criterion)});
      } else {
        throw Error(ErrorKind::Usage,
                    cat("--expect: output '", results.names[i], "' is not a tensor"))
            .found(value_text(results.values[i]));
      }
    }
    show_compared("expected", "as expected", all);
    const size_t count = std::max(expected.numbered(), all.size());
    if (missing == 0 && count == results.values.size()) return;
    if (!json_output()) {
      std::fprintf(report, "expected %s, found %zu\n", counted(count, "output").c_str(),
                   results.values.size());
    }
    *exit_code = 1;
  }

  // Shows how outputs differ, and sets the exit code if any does.
  void show_compared(const char* key, const char* equal, const std::vector<Compared>& all) {
    if (json_output()) json.key(key).begin_array();
    for (const auto& [name, difference] : all) {
      if (!difference.equal) *exit_code = 1;
      if (json_output()) {
        json.begin_object().key("name").value(name);
        write_difference(json, difference);
        json.end_object();
        continue;
      }
      std::fprintf(report, "%s: %s%s\n", printable(name).c_str(),
                   difference.equal ? cat(equal, ": ").c_str() : "", to_text(difference).c_str());
    }
    if (json_output()) json.end_array();
  }

  // Runs the graph operator by operator and names the first operator whose result differs.
  void compare_modes(const ProgramFile& program, const std::vector<Any>& values,
                     const CallResults& results) {
    std::unordered_set<const graph::Binding*> own;  // bindings of the outermost block
    const graph::FunctionRef compared = *program.module->functions.find(function);
    for (const auto& binding : compared->body->bindings) own.insert(binding.get());
    std::vector<ExpectedValue> seen;
    std::vector<Span> spans;
    const std::vector<Any> reference =
        interpret(program, values, [&](const graph::Binding& binding, const Any& value) {
          auto tensor = value.try_as<Tensor>();
          if (tensor && *tensor && own.contains(&binding)) {
            seen.push_back({binding.var, value});
            spans.push_back(binding.span);
          }
        });
    std::vector<Compared> all;
    for (size_t i = 0; i < results.values.size(); ++i) {
      all.push_back({results.names[i], compare_values(results.values[i], reference[i], criterion)});
    }
    show_compared("interpreted", "as interpreted", all);
    const auto differs = [](const Compared& one) { return !one.difference.equal; };
    if (std::ranges::none_of(all, differs)) return;
    const auto first =
        first_difference({program.module, function, flags.options, values}, seen, criterion);
    if (!first) return;
    if (json_output()) {
      json.key("first_difference").begin_object();
      json.key("at").value(tenon::to_text(spans[first->index]));
      write_difference(json, first->difference);
      json.end_object();
      return;
    }
    std::fprintf(report, "first to differ: %s\n  %s\n",
                 printable(tenon::to_text(spans[first->index])).c_str(),
                 to_text(first->difference).c_str());
  }
};

}  // namespace

void add_run_command(CLI::App* app, int* exit_code) {
  auto* command = app->add_subcommand("run", "run a function of an executable, model or program");
  command->footer(
      "Without inputs, prints the function's signature. An input is a file (.npy, .npz, .pb), a "
      "number,\n"
      "which is a scalar or fills a tensor, or random: floats from -1 to 1, integers 0 or 1, or\n"
      "numbers in LO..HI, inclusive. Sizes of filled and random tensors that --dim, --shape or "
      "other\n"
      "inputs do not give are 1, and a filled tensor of unknown rank has rank 0.\n"
      "A tensor may also be written as results are printed, 'tensor[2; f32] = [1, 2]', or as in a\n"
      "program, 'tensor[2; f32]{1, 2}'. A value of a data type, list, array or tuple is written "
      "as\n"
      "results are printed: 'Node(Leaf, 1, Leaf)', '[1, 2]', '(1, true)'; a tensor in it may be\n"
      "@F.npy, and @F.txt as the whole value reads this text from a file.\n"
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
      "  tenon run sort.tn --input xs='[3, 1, 2]'\n"
      "  tenon run found.tnx --untrusted --fuel 1000000 --memory 100 --input x=x.npy");
  auto state = std::make_shared<RunCommand>();
  state->exit_code = exit_code;
  state->CallFlags::add_to(command);
  state->show.add_to(command);
  state->stores.add_to(command);
  command->add_option(
      "--expect", state->expect,
      "folder with output_0.pb, ... or NAME.npy, or a .npz file: compare; exit code 1\n"
      "if they differ");
  state->tolerances = add_criterion(command, &state->criterion);
  state->mode_option = add_mode(command, state->mode, state->flags);
  command
      ->add_option_function<std::string>(
          "--compare", [compares = &state->compares](const std::string&) { *compares = true; },
          "interpret: run both ways and name the first node that differs")
      ->check(CLI::IsMember({kInterpret}));
  command->add_option("--save-values", state->save_values,
                      "with --mode interpret: store every operator's value in this folder, and in\n"
                      "values.json the files of the values that ONNX names");
  state->of_machine.push_back(state->untrusted_option);
  state->of_machine.push_back(
      command
          ->add_option("--fuel", state->fuel,
                       "calls and backward jumps that it may make; not with --mode interpret")
          ->check(between(0))
          ->group("Limits"));
  state->of_machine.push_back(
      command->add_flag("--poison", state->machine_options.poison, kPoisonHelp));
  add_json(command);
  command->callback([state] { state->run(); });
}

}  // namespace tenon::tool
