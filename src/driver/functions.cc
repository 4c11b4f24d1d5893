#include "driver/functions.h"

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "codegen/llvm/architecture.h"
#include "codegen/llvm/target.h"
#include "driver/build_functions.h"
#include "driver/build_values.h"
#include "driver/code_stats.h"
#include "driver/compile.h"
#include "driver/compile_kernels.h"
#include "driver/host_options.h"
#include "driver/late_weights.h"
#include "driver/open.h"
#include "driver/provenance.h"
#include "evaluate/reference_evaluator.h"
#include "graph/ir/check.h"
#include "graph/ir/text.h"
#include "graph/ir/weights.h"
#include "graph/pass/pass.h"
#include "import/onnx/read_model.h"
#include "json/object_json.h"
#include "object/reflect.h"
#include "object/registry.h"
#include "support/output_file.h"
#include "vm/asm/assemble.h"
#include "vm/asm/disassemble.h"
#include "vm/asm/python_text.h"
#include "vm/executable/file_format.h"
#include "vm/executable/write_file.h"

namespace tenon::driver {
namespace {

// Checks a module from the host, which may have built it by hand.
const graph::Module& checked(const graph::Module& module) {
  if (!module) throw Error(ErrorKind::Usage, "the module is none");
  graph::check_module(module);
  return module;
}

// The work of a function that has taken its other options: held to the limits among them. What is
// left is unknown, and refused.
BudgetedWork begin_work(HostOptions& given, const char* doing, const std::string& what) {
  const WorkLimits limits = take_limits(given);
  given.require_all_taken();
  return {limits, doing, what};
}

// A path that no file has, but which a program's text could be.
void refuse_text(const String& path) {
  std::error_code ignored;
  const bool is_text = path.view().find('{') != std::string_view::npos &&
                       !std::filesystem::exists(path.str(), ignored);
  if (!is_text) return;
  throw Error(ErrorKind::Usage, "a program's text was given, not the path of a file")
      .found(quoted(path.view().substr(0, path.view().find('{') + 1)))
      .help("parse it first: tenon.ir.parse(text) in Python, ir::Module::parse(text) in C++");
}

graph::Module open_module(const String& path, const Any& options) {
  HostOptions given(options);
  const onnx::ImportOptions import = take_import_options(given);
  Source options_of_source;
  take_source_options(given, &options_of_source);
  refuse_text(path);
  const BudgetedWork work = begin_work(given, "reading", path.str());
  Source source = open_source(path.str());
  source.import_path = std::move(options_of_source.import_path);
  if (source.kind == SourceKind::Program && !(import.dims.empty() && import.shapes.empty())) {
    throw Error(ErrorKind::Usage, "the options dims and shapes have no effect on a textual program")
        .help(cat("write the sizes in ", printable(path)));
  }
  return read_module(source, import);
}

String origin(const String& path, const Any& options) {
  HostOptions given(options);
  const onnx::ImportOptions import = take_import_options(given);
  Source ignored;  // what the file's own text imports isn't part of its origin
  take_source_options(given, &ignored);
  const BudgetedWork work = begin_work(given, "reading", path.str());
  return String(origin_of(open_source(path.str()), import));
}

graph::Module import_onnx(const Bytes& model, const Any& options) {
  HostOptions given(options);
  const onnx::ImportOptions import = take_import_options(given);
  const BudgetedWork work = begin_work(given, "reading", "model");
  if (vm::begins_like_executable(model.view())) {
    throw Error(ErrorKind::Usage, "the model is already compiled").help("load or run it as it is");
  }
  refuse_foreign(model.view(), "the model");
  return onnx::import_model(onnx::parse_model(model.view(), "model"), import).module;
}

Any model_metadata(const Any& model, const Any& options) {
  HostOptions given(options);
  const bool is_path = model.is<String>();
  const std::string name = is_path ? model.as<String>().str() : "model";
  const BudgetedWork work = begin_work(given, "reading", name);
  const Source source = is_path ? open_source(name) : source_of(model.as<Bytes>().view(), name);
  if (source.kind != SourceKind::Model) return {};
  const onnx::Model onnx = read_model(source);
  const onnx::ModelMetadata& said = onnx.metadata;
  Map<String, String> properties;
  for (const auto& [key, value] : said.properties) properties.set(String(key), String(value));
  const std::set<std::string> initializers = onnx.graph.initializer_names();
  Array<String> defaults;
  for (const onnx::Value& input : onnx.graph.inputs) {
    if (initializers.contains(input.name)) defaults.push_back(String(input.name));
  }
  return Map<String, Any>{{"graph_name", String(onnx.graph.name)},
                          {"producer_name", String(said.producer)},
                          {"custom_metadata_map", properties},
                          {"description", String(said.description)},
                          {"domain", String(said.domain)},
                          {"graph_description", String(said.graph_description)},
                          {"version", said.version},
                          {"defaults", defaults}};
}

graph::Module parse(const String& text, const String& name, const Any& options) {
  HostOptions given(options);
  Source source;
  take_source_options(given, &source);
  const BudgetedWork work = begin_work(given, "parsing", name.str());
  graph::Module module = graph::parse_module(text, name, source.import_path);
  graph::check_module(module);
  return module;
}

String print(const Any& value) {
  if (!value.is_none() && value.is<graph::TypeRef>()) {
    return String(to_text(value.as<graph::TypeRef>()));
  }
  return String(graph::to_text(checked(value.as<graph::Module>())));
}

void save(const graph::Module& module, const String& path) {
  graph::save_module(checked(module), path.str());
}

String to_json_function(const Any& value, int indent) {
  constexpr int kWidest = 16;
  if (indent < 0 || indent > kWidest) {
    throw Error(ErrorKind::Usage, "the indent is out of range")
        .found(cat(indent))
        .expected(cat("an integer from 0 to ", kWidest));
  }
  return String(to_json(value, indent));
}

Any from_json_function(const String& text, const Any& options) {
  HostOptions given(options);
  const BudgetedWork work = begin_work(given, "reading", "JSON");
  constexpr int kMaxDepth = 2000;  // programs nest less deep
  Any value = from_json(text, ErrorKind::Usage, "JSON", kMaxDepth);
  if (!value.is_none() && value.is<graph::Module>()) checked(value.as<graph::Module>());
  return value;
}

Array<Any> list_passes() {
  Array<Any> out;
  for (const Step& step : all_passes()) {
    out.push_back(Map<String, Any>{
        {"name", String(step.name)}, {"level", step.level}, {"summary", String(step.summary)}});
  }
  return out;
}

Array<Any> list_option_rows() {
  Array<Any> out;
  for (const OptionText& row : list_options()) {
    out.push_back(Map<String, Any>{{"name", String(row.name)},
                                   {"of", String(row.of)},
                                   {"type", String(row.type)},
                                   {"default", String(row.initial)},
                                   {"meaning", String(row.meaning)}});
  }
  return out;
}

Any type_parent(const String& type_key) {
  const TypeInfo* type = find_type(type_key.view());
  return type && type->parent ? Any(String(type->parent->type_key)) : Any();
}

Map<String, Any> build_info() {
  const auto strings = [](const std::vector<std::string>& texts) {
    Array<String> out;
    for (const std::string& text : texts) out.push_back(String(text));
    return out;
  };
  return {{"llvm", String(codegen::llvm_version())},
          {"code_generators", strings(codegen::llvm_code_generators())},
          {"targets", strings(codegen::triples())}};
}

graph::Module run_passes_function(const graph::Module& module, const Any& passes,
                                  const Any& options) {
  HostOptions given(options);
  CompileOptions compile = take_compile_options(given);
  given.require_all_taken();
  if (!passes.is_none()) {
    if (!passes.is<Array<String>>()) {
      throw Error(ErrorKind::Usage, "the passes are not an array of names")
          .found(repr(passes, 200));
    }
    compile.passes.emplace();
    for (const String& name : passes.as<Array<String>>()) compile.passes->push_back(name.str());
  }
  return run_passes(checked(module), compile);
}

// A compiled module, and the limits of its compilation, which hold for as long as this lives: they
// are those of writing it, too.
class Compiled {
 public:
  Compiled(const graph::Module& module, HostOptions given)
      : options_(take_compile_options(given)), work_(options_.limits, "compiling", "a module") {
    given.require_all_taken();
    unit_ = compile(checked(module), options_);
  }

  const vm::Unit& unit() const { return unit_; }
  bool shared() const { return options_.shared; }

 private:
  const CompileOptions options_;
  const BudgetedWork work_;
  vm::Unit unit_;
};

Bytes compile_function(const graph::Module& module, const Any& options) {
  const Compiled compiled(module, HostOptions(options));
  return Bytes(compiled.shared() ? vm::write_shared_to_bytes(compiled.unit())
                                 : vm::write_to_bytes(compiled.unit()));
}

// Only on the command line, "-" is standard output.
std::string file_name(const String& path) {
  return path.view() == "-" ? "./-" : path.str();
}

int64_t compile_to_file(const graph::Module& module, const Any& options, const String& path) {
  const Compiled compiled(module, HostOptions(options));
  OutputFile out(file_name(path));
  const auto write = compiled.shared() ? vm::write_shared : vm::write;
  const size_t bytes = write(compiled.unit(), out, path.str());
  out.commit();
  return static_cast<int64_t>(bytes);
}

Bytes compile_kernels_function(const Bytes& computes, const String& file) {
  const std::vector<uint8_t> object = compile_kernels(computes.view(), file.str());
  return Bytes({reinterpret_cast<const char*>(object.data()), object.size()});
}

// The verified code in the bytes of a .tnx file.
vm::Unit unit_of(const Bytes& file) {
  return read_code(source_of(file.view(), "executable"));
}

Map<String, Any> stats_function(const Bytes& file, const Any& options) {
  HostOptions given(options);
  const BudgetedWork work = begin_work(given, "reading", "executable");
  return code_stats(unit_of(file), file.view().size());
}

String disassemble_function(const Bytes& file, bool full, const Any& options) {
  HostOptions given(options);
  const BudgetedWork work = begin_work(given, "reading", "executable");
  vm::DisassembleOptions text = {.kernel_objects = full};
  if (!full) text.max_constant_elements = vm::kShownConstantElements;
  const vm::Unit unit = unit_of(file);
  if (full) refuse_shared(unit, "executable");
  return String(vm::disassemble(unit, text));
}

Bytes assemble_function(const String& text, const Any& options) {
  HostOptions given(options);
  const BudgetedWork work = begin_work(given, "reading", "assembly");
  return Bytes(vm::write_to_bytes(vm::assemble(text.view())));
}

String to_python_function(const Bytes& file, const Any& options) {
  HostOptions given(options);
  const BudgetedWork work = begin_work(given, "reading", "executable");
  return String(vm::python_text(unit_of(file)));
}

void write_file_function(const String& path, const Any& content) {
  if (const auto bytes = content.try_as<Bytes>()) return write_file(file_name(path), bytes->view());
  const auto tensor = content.try_as<Tensor>();
  if (!tensor || !*tensor || tensor->dtype() != u8 || !tensor->compact()) {
    throw Error(ErrorKind::Usage, "the content of a file is bytes or a compact tensor of u8");
  }
  write_file(file_name(path), {tensor->data_as<char>(), static_cast<size_t>(tensor->bytes())});
}

Bytes leave_out_weights_function(const Bytes& file, const String& weights, const Any& options) {
  HostOptions given(options);
  const BudgetedWork work = begin_work(given, "writing", weights.str());
  vm::Unit unit = unit_of(file);
  refuse_shared(unit, "executable");
  graph::write_weights(weights.str(), leave_out_weights(unit));
  return Bytes(vm::write_to_bytes(unit));
}

Map<String, Any> read_weights_function(const String& weights, const Any& options) {
  HostOptions given(options);
  const BudgetedWork work = begin_work(given, "reading", weights.str());
  const graph::WeightFile file(weights.str());
  Map<String, Any> tensors;
  for (const auto& [name, tensor] : file.tensors()) {
    tensors.set(String(name), Any(tensor));
  }
  return tensors;
}

Any interpret(const graph::Module& module, const String& function, const Array<Any>& arguments,
              const Any& options) {
  HostOptions given(options);
  const InterpretOptions interpret_options = take_interpret_options(given);
  const BudgetedWork work = begin_work(given, "interpreting", function.str());
  refuse_other_devices(checked(module));
  const graph::FunctionRef* found = module->functions.find(function);
  if (!found) {
    std::vector<std::string> names;
    for (const auto& [name, f] : module->functions) names.push_back(name.str());
    throw Error(ErrorKind::Usage, cat("the module has no function ", quoted(function)))
        .expected(names.empty() ? "a module with functions" : join(names, ", "));
  }
  if (arguments.size() != (*found)->params.size()) {
    throw Error(ErrorKind::Usage, cat(function.view(), " takes a different number of arguments"))
        .found(cat(arguments.size()))
        .expected(cat((*found)->params.size()));
  }
  graph::ReferenceEvaluator evaluator(codegen::parse_target(interpret_options.cpu));
  evaluator.state().max_depth = static_cast<size_t>(interpret_options.max_depth);
  const std::vector<Any> results = evaluator.run(module, *found, arguments.to_vector());
  if (graph::is_unit((*found)->result_type)) return Any();
  if (!(*found)->result_type.is<graph::TupleType>()) return results[0];
  return Array<Any>(results.begin(), results.end());
}

struct Entry {
  const char* group;  // of a group's first line; the others are null
  const char* name;
  const char* signature;
  const char* summary;
  Function function;
};

std::vector<Entry> entries() {
  return {
#define TENON_GROUP(title) {title, nullptr, nullptr, nullptr, {}},
#define TENON_FUNCTION(function, name, signature, summary) \
  {nullptr, name, signature, summary, Function::from_typed(&function, name)},
#include "driver/functions.def"
#undef TENON_FUNCTION
#undef TENON_GROUP
  };
}

constexpr char kIntroduction[] = R"(# The compiler's library

<!-- Generated from src/driver/functions.def and src/report/functions.def; TENON_BLESS=1
     tenon_report_test rewrites it. -->

`libtenon_compiler.so` provides the compiler to programs that use the runtime's shared library. A host
loads it once with `tenon_library_load("tenon_compiler", NULL, 0, NULL)`, which registers the functions
below for the process; `tenon_function_find` then finds them, and `tenon_function_call` calls them.
`examples/compile` is a C program that compiles a model and runs it.

Modules, functions, operands and types are objects: `tenon_type_key` names their type, and
`tenon_object_field` reads their fields. They are immutable; a pass returns a new module.

Errors are the same as on the command line; `tenon_last_error` and `tenon_error_take` return them. The
library must come from the same build as the runtime, and is refused otherwise.

## Options

Options are a map from names to values, or `none`. An unknown name is an error.

)";

constexpr char kLimitsAndPasses[] = R"(
In `shapes`, -1 leaves a size symbolic. For several CPUs, the file has code for each.

## Limits

`deadline_ns` is how many nanoseconds the function may take, and `memory` how many bytes of objects,
tensors and results it may allocate; -1 means no limit. Functions without `options` have no limits of their own. A
function that reaches a limit fails with a Runtime error; the same call can succeed with a higher limit.
LLVM and LLD are interrupted only between passes and between kernels, and the memory that they and
protobuf work with doesn't count: `tenon compile --isolate` limits that too. A function that runs within a
machine's call is also held to that call's limits, and stops when the machine is cancelled.

## Passes of your own

A pass is a function `pass(module, context)` that returns a module. Register it under a name
(`tenon_function_register`) and put the name into `passes`. Its result is checked before the next
pass runs.

`passes` replaces all passes, and code generation needs those of level 0. To add a pass to a compilation,
take the names from `tenon.list_passes` whose `level` is at most yours, and insert your pass among them; `pipeline` in `examples/compile/main.c` does that. `tenon.run_passes(module,
["my.pass"], none)` runs a pass alone, before or between compilations.

`context` is a map. It has `cpu`, the lowest CPU that code is made for, these options of the compilation:

)"
#define TENON_PASS_OPTION(type, name) "- `" #name "`\n"
#include "graph/pass/pass_options.def"
                                    R"(
and these facts about the CPU:

)"
#define TENON_TARGET_FACT(type, name, initial, meaning) "- `" #name "`: " meaning "\n"
#include "loop/target_facts.def"
    ;

}  // namespace

void register_compiler_functions() {
  initialise();
  register_build_types();
  Registration library;
  for (Entry& entry : entries()) {
    if (entry.name) library.add(entry.name, std::move(entry.function));
  }
  library.commit();
}

std::string compiler_functions_document() {
  std::string out = cat(kIntroduction, options_document(), kLimitsAndPasses);
  for (const Entry& entry : entries()) {
    out += entry.group ? group_document(entry.group)
                       : function_document(entry.name, entry.signature, entry.summary);
  }
  return out;
}

std::string group_document(std::string_view title) {
  return cat("\n## ", title, "\n");
}

std::string function_document(std::string_view name, std::string_view signature,
                              std::string_view summary) {
  return cat("\n### `", name, signature, "`\n\n", summary, ".\n");
}

}  // namespace tenon::driver
