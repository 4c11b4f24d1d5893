// tenon compare: compares the values of a model's nodes with those of a reference, by ONNX name.
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "support/error.h"
#include "support/output_file.h"
#include "tools/tenon/command.h"
#include "tools/tenon/compare.h"
#include "tools/tenon/first_difference.h"
#include "tools/tenon/input_spec.h"
#include "tools/tenon/json_output.h"
#include "tools/tenon/limit_flags.h"
#include "tools/tenon/numpy/npy.h"
#include "tools/tenon/onnx_runtime.h"
#include "tools/tenon/program_file.h"
#include "tools/tenon/tensor_store.h"
#include "tools/tenon/tensor_text.h"
#include "tools/tenon/value_index.h"
#include "vm/interp/machine.h"

namespace tenon::tool {
namespace {

namespace fs = std::filesystem;

constexpr char kOnnxRuntime[] = "onnxruntime";

// A folder for files that live as long as the command.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string path = fs::temp_directory_path() / "tenon-XXXXXX";
    if (!mkdtemp(path.data())) {
      throw Error(ErrorKind::Usage,
                  cat("cannot make a folder in ", fs::temp_directory_path().string()))
          .help("TMPDIR names another place");
    }
    path_ = path;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string file(const char* name) const { return path_ / name; }

 private:
  fs::path path_;
};

struct CompareCommand {
  std::string file, with, expect_values, save_values, python = "python3";
  InputFlags inputs;
  CompileFlags flags;
  LimitFlags limit_flags;
  Criterion criterion;
  int* exit_code = nullptr;

  // A value that the reference has.
  struct Compared {
    const onnx::NodeValue* value;
    Tensor expected;
    Criterion criterion;
  };

  void run() {
    if (with.empty() == expect_values.empty()) {
      throw Error(ErrorKind::Usage, "compare needs one reference")
          .found(with.empty() ? "none" : "two")
          .expected("--with onnxruntime, or --expect-values FOLDER or FILE.npz");
    }
    if (!save_values.empty()) check_folder_writable(save_values);
    inputs.sizes = flags.import_options();
    const driver::Source source = driver::open_source(file);
    const onnx::ImportResult model = import(source);
    const FunctionSignature signature = signature_of(model.module, "main", file);
    const Inputs given = make_inputs(signature, inputs, /*random_rest=*/true);
    for (const std::string& note : given.notes) progress(note);
    report(model, read_expected(model, signature, given.values), given.values);
  }

  onnx::ImportResult import(const driver::Source& source) const {
    const BudgetedWork work(limit_flags.work(), "reading", file);
    return driver::import_source(source, flags.import_options());
  }

  static Tensor input_tensor(const vm::Param& param, const Any& value) {
    const auto tensor = value.try_as<Tensor>();
    if (tensor && *tensor) return *tensor;
    throw Error(ErrorKind::Usage,
                cat("input '", param.name, "' can't be passed to ONNX Runtime from here"))
        .found(vm::to_text(param.type))
        .expected("a tensor")
        .help("run the reference elsewhere, and give its values with --expect-values");
  }

  std::vector<Compared> read_expected(const onnx::ImportResult& model,
                                      const FunctionSignature& signature,
                                      const std::vector<Any>& values) const {
    const TemporaryFolder folder;
    std::string place = expect_values;
    if (!with.empty()) {
      std::vector<std::string> names;
      std::vector<Tensor> tensors;
      for (size_t i = 0; i < values.size(); ++i) {
        names.push_back(signature.params[i].name);
        tensors.push_back(input_tensor(signature.params[i], values[i]));
      }
      place = folder.file("values.npz");
      write_tensors(folder.file("inputs.npz"), names, tensors);
      progress(cat("running ", file, " in ONNX Runtime"));
      run_onnx_runtime(python, file, folder.file("inputs.npz"), place);
    }
    const BudgetedWork work(limit_flags.work(), "reading", "the expected values");
    const ValueIndex index(place, "--expect-values");
    std::vector<Compared> out;
    NodeCriteria criteria(criterion);
    for (const onnx::NodeValue& value : model.values) {
      const Criterion& own = criteria.next(value.op);
      if (const auto expected = index.read(value.name)) out.push_back({&value, *expected, own});
    }
    if (!out.empty()) return out;
    throw Error(ErrorKind::Usage, cat("no node of ", file, " computes a value of the reference"))
        .expected(cat("values by ONNX name, such as '",
                      model.values.empty() ? "y" : model.values[0].name,
                      "', in FILE.npz, as NAME.npy, or listed in values.json"));
  }

  void report(const onnx::ImportResult& model, std::vector<Compared> compared,
              const std::vector<Any>& values) const {
    const std::string main = "main";
    const CalledFunction function{model.module, main, flags.options, values};
    std::vector<graph::Operand> operands;
    for (const Compared& c : compared) operands.push_back(c.value->value);
    const std::vector<Any> found = compute(function, operands);
    if (!save_values.empty()) save(compared, found);
    const auto difference = [&](size_t i, const Any& value) {
      return compare_values(value, compared[i].expected, compared[i].criterion);
    };
    std::optional<FirstDifference> first;
    size_t differing = 0;
    double greatest = 0, noise = 0;
    for (size_t i = 0; i < compared.size(); ++i) {
      compared[i].criterion.noise_before = noise;
      const Difference d = difference(i, found[i]);
      if (d.equal) {
        greatest = std::max(greatest, d.largest);
        noise = std::fmax(noise, d.noise);
        continue;
      }
      ++differing;
      if (!first) first = FirstDifference{i, d};
    }
    const std::vector<ComparedOutput> outputs = compare_outputs(model, function, compared);
    if (!first) {
      const auto differs = [](const ComparedOutput& o) { return !o.difference.equal; };
      if (const auto o = std::ranges::find_if(outputs, differs); o != outputs.end()) {
        first = first_fused_difference(function, operands, difference);
        if (!first) first = FirstDifference{o->index, o->difference, /*fused=*/true};
        differing = 1;
      }
    }
    if (first) *exit_code = 1;
    if (json_output()) return write(compared, outputs, first, differing, greatest);
    print_outputs(compared, outputs);
    print(compared, first, differing, greatest);
  }

  // An output of the compiled model, which fuses operators.
  struct ComparedOutput {
    size_t index;  // among the compared values
    Difference difference;
  };

  // Those that the reference has.
  std::vector<ComparedOutput> compare_outputs(const onnx::ImportResult& model,
                                              const CalledFunction& function,
                                              const std::vector<Compared>& compared) const {
    const vm::SignatureType type = signature_of(model.module, function.name, file).result;
    vm::Machine machine(compile_in_memory(model.module, function.options, file));
    const std::vector<AnyView> views(function.inputs.begin(), function.inputs.end());
    const std::vector<Any> results = results_of(machine.call(function.name, views), type);
    std::vector<ComparedOutput> out;
    for (size_t i = 0; i < results.size(); ++i) {
      const auto same = [&](const Compared& c) { return c.value->name == model.outputs[i]; };
      const auto c = std::ranges::find_if(compared, same);
      if (c == compared.end()) continue;
      out.push_back({static_cast<size_t>(c - compared.begin()),
                     compare_values(results[i], c->expected, c->criterion)});
    }
    return out;
  }

  void print_outputs(const std::vector<Compared>& compared,
                     const std::vector<ComparedOutput>& outputs) const {
    for (const ComparedOutput& output : outputs) {
      const Compared& c = compared[output.index];
      std::printf("output '%s' %s: %s\n", printable(c.value->name).c_str(),
                  output.difference.equal ? "agrees" : "differs",
                  to_text(output.difference).c_str());
    }
  }

  std::string reference() const { return with.empty() ? "the expected values" : with; }

  void print(const std::vector<Compared>& compared, const std::optional<FirstDifference>& first,
             size_t differing, double greatest) const {
    if (!first) {
      std::printf(
          "%s %s with %s, greatest difference %s\n", counted(compared.size(), "value").c_str(),
          compared.size() == 1 ? "agrees" : "agree", reference().c_str(), cat(greatest).c_str());
      return;
    }
    const Compared& c = compared[first->index];
    std::printf("%zu of %s differ from %s, first '%s' of node '%s' (%s):\n  %s\n", differing,
                counted(compared.size(), "value").c_str(), reference().c_str(),
                printable(c.value->name).c_str(), printable(c.value->node).c_str(),
                printable(c.value->op).c_str(), to_text(first->difference).c_str());
    if (first->fused) std::printf("  only fused with the operators before it; alone it agrees\n");
  }

  void write(const std::vector<Compared>& compared, const std::vector<ComparedOutput>& outputs,
             const std::optional<FirstDifference>& first, size_t differing, double greatest) const {
    JsonWriter out = json_document();
    out.begin_object().key("file").value(file).key("reference").value(reference());
    out.key("values").value(static_cast<int64_t>(compared.size()));
    out.key("differing").value(static_cast<int64_t>(differing));
    out.key("greatest_agreeing_difference").value(greatest);
    out.key("outputs").begin_array();
    for (const ComparedOutput& output : outputs) {
      const Compared& c = compared[output.index];
      out.begin_object().key("name").value(c.value->name);
      write_difference(out, output.difference);
      out.end_object();
    }
    out.end_array();
    if (first) {
      const Compared& c = compared[first->index];
      out.key("first_difference").begin_object();
      out.key("name").value(c.value->name).key("node").value(c.value->node);
      out.key("op").value(c.value->op).key("fused").value(first->fused);
      write_difference(out, first->difference);
      out.end_object();
    }
    print_json(std::move(out.end_object()));
  }

  // FOLDER/expected and FOLDER/found, with an index each.
  void save(const std::vector<Compared>& compared, const std::vector<Any>& found) const {
    ValueFolder expected(save_values + "/expected"), computed(save_values + "/found");
    for (size_t i = 0; i < compared.size(); ++i) {
      expected.add(compared[i].value->name, compared[i].expected);
      const auto tensor = found[i].try_as<Tensor>();
      if (tensor && *tensor) computed.add(compared[i].value->name, *tensor);
    }
    expected.finish();
    computed.finish();
  }
};

}  // namespace

void add_compare_command(CLI::App* app, int* exit_code) {
  auto* command = app->add_subcommand("compare", "compare a model's values with a reference");
  command->footer(
      "Runs an ONNX model with every value of its nodes as a result, and compares them in the "
      "order\n"
      "of the nodes: the first value that differs is where to look. Inputs that are not given are\n"
      "random. Exit code 1 if values differ.\n"
      "\n"
      "Unless --atol is given, f16 and bf16 may differ by 16 of their steps at a value's greatest\n"
      "magnitude. After the first node that quantizes, integers of at most 16 bits may differ by\n"
      "1, floats and the sums of MatMulInteger and ConvInteger by 1/127 of the greatest "
      "magnitude;\n"
      "more elements may differ if the root mean square of the differences is at most 12.5 % of\n"
      "the value's standard deviation, or up to 25 % if it has grown by no more than half from "
      "the\n"
      "values before it, because a number that is rounded the other way changes those that depend\n"
      "on it. Other integers are compared exactly.\n"
      "\n"
      "  tenon compare model.onnx --with onnxruntime --input x=x.npy\n"
      "  tenon compare model.onnx --expect-values reference.npz --inputs test_data_set_0");
  auto state = std::make_shared<CompareCommand>();
  state->exit_code = exit_code;
  command->add_option("FILE", state->file, "an ONNX model")->required();
  command
      ->add_option("--with", state->with, "onnxruntime: run the model there, without optimizations")
      ->check(CLI::IsMember({kOnnxRuntime}));
  command->add_option(
      "--expect-values", state->expect_values,
      "a reference's values by ONNX name: a .npz file, or a folder with values.json\n"
      "or NAME.npy");
  command
      ->add_option("--python", state->python,
                   "Python with the packages onnx and onnxruntime, for --with")
      ->capture_default_str();
  command->add_option("--save-values", state->save_values,
                      "store the values of both in this folder, with their names in values.json");
  add_repeated(command, "--input,-i", state->inputs.inputs,
               "NAME=F.npy, F.npz:ARRAY, F.pb, random[:LO..HI] or a number; once for each input");
  command->add_option("--inputs", state->inputs.store,
                      "folder with input_0.pb, ... or NAME.npy, or a .npz file");
  command->add_option("--seed", state->inputs.seed, "of random inputs")->capture_default_str();
  add_criterion(command, &state->criterion);
  state->flags.add_to(command);
  state->limit_flags.add_to(command, "reading the model and the reference's values may each");
  add_json(command);
  command->callback([state] { state->run(); });
}

}  // namespace tenon::tool
