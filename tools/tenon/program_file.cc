#include "tools/tenon/program_file.h"

#include <algorithm>
#include <chrono>

#include "codegen/bytecode/data_types.h"
#include "codegen/bytecode/emit.h"
#include "codegen/llvm/emit.h"
#include "codegen/llvm/target.h"
#include "driver/compile_kernels.h"
#include "driver/functions.h"
#include "graph/ir/text.h"
#include "graph/ir/weights.h"
#include "library/onednn/register.h"
#include "support/error.h"
#include "support/phase.h"
#include "tools/tenon/tensor_text.h"
#include "vm/builtin/register.h"
#include "vm/executable/kernel_choice.h"

namespace tenon::tool {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

graph::Module read_module(const driver::Source& source, const CompileFlags& flags,
                          const std::map<std::string, std::vector<int64_t>>& ranks) {
  onnx::ImportOptions options = flags.import_options();
  for (auto& [name, shape] : ranks) options.shapes.try_emplace(name, shape);
  return driver::read_module(source, options);
}

void prepare_runtime() {
  driver::initialise();
  vm::register_builtins();
  register_onednn();
  static const bool once = (driver::register_compiler_functions(), true);
  (void)once;
}

Ref<vm::Program> compile_in_memory(const graph::Module& module,
                                   const driver::CompileOptions& options, const std::string& name) {
  prepare_runtime();
  vm::ProgramOptions load;
  load.read.name = name;
  return vm::Program::from_unit(driver::compile(module, options), load);
}

vm::WeightSource weight_source(const std::string& path, const WorkLimits& limits) {
  if (path.empty()) return {};
  const BudgetedWork work(limits, "reading", path);
  auto file = std::make_shared<const graph::WeightFile>(path);
  if (file->tensors().empty()) return {};
  return [file](std::string_view name) { return file->find(name); };
}

void refuse_unused_weights(const vm::Unit& unit, const std::string& name) {
  const auto is_late = [](const vm::Constant& constant) { return constant.late.has_value(); };
  if (std::ranges::any_of(unit.constants, is_late)) return;
  throw Error(ErrorKind::Usage, cat("--weights has no effect on ", printable(name)))
      .found("an executable that leaves out no weights")
      .help("leave out --weights, or compile the file with --external-weights");
}

namespace {

bool calls_kernels(const vm::Unit& unit) {
  return std::ranges::any_of(unit.packed, &vm::PackedName::kernel);
}

// What the kernels of a program were compiled for, unless loading compiled them.
std::string code_of(const vm::Program& program, const vm::ProgramOptions& options) {
  if (!calls_kernels(program.unit())) return "";
  const vm::KernelTarget* taken = vm::choose_kernels(program.unit(), options.cpu_features);
  return taken ? printable(taken->cpu) : "";
}

// Runs `load`, which returns the program, and measures how long it takes.
template <class Load>
void load_into(ProgramFile* file, const vm::ProgramOptions& options, const Load& load) {
  const auto start = std::chrono::steady_clock::now();
  PhaseTimes phases;
  file->program = load();
  file->load_seconds = seconds_since(start);
  if (!file->source.is_graph()) file->code = code_of(*file->program, options);
  file->lacks_code = options.trusted && !options.bytecode_only &&
                     lacks_code(file->program->unit(), options.cpu_features);
  for (const PhaseTimes::Row& phase : phases.rows()) {
    if (phase.name != driver::kCompileKernelsPhase) continue;
    const std::vector<vm::PackedName>& functions = file->program->unit().packed;
    const auto kernels = std::ranges::count_if(functions, &vm::PackedName::kernel);
    progress(cat(file->source.name, ": ", counted(static_cast<uint64_t>(kernels), "kernel"),
                 " compiled from its computes in ", static_cast<int64_t>(phase.seconds * 1000),
                 " ms"));
    file->load_seconds -= phase.seconds;
    file->compile_seconds += phase.seconds;
    file->code = "this machine, from the file's computes";
  }
}

[[noreturn]] void refuse_untrusted(const std::string& name) {
  throw Error(ErrorKind::Usage, cat("--untrusted is for executables, not ", printable(name)))
      .help(
          "compiling makes native kernels, which nothing checks while they run: leave out "
          "--untrusted if you trust the sender as for any program");
}

// The module with `name` as the only function that can be called from outside; all that it has if
// there is no such function.
graph::Module with_only_export(const graph::Module& module, const std::string& name) {
  const graph::FunctionRef* only = module->functions.find(name);
  if (!only || !(*only)->is_exported()) return module;
  Map<String, graph::FunctionRef> functions;
  for (const auto& [other, function] : module->functions) {
    if (other == name || !function->is_exported()) {
      functions.set(other, function);
      continue;
    }
    auto hidden = make<graph::FunctionExpr>(*function);
    hidden->attrs.set(graph::kExportAttr, Any(false));
    functions.set(other, hidden);
  }
  return graph::make_module(functions, module->kernels, module->adts);
}

// Refuses --mode compiled for bytecode that would run as such.
void check_compiled(const ProgramFile& file, const OpenOptions& options) {
  const vm::Program& program = *file.program;
  if (program.compiled() ||
      !codegen::can_compile_bytecode(program.unit(), codegen::host_target())) {
    return;
  }
  Error error(ErrorKind::Usage, cat("--mode compiled: ", printable(file.source.name),
                                    " has no machine code for its functions that can run here"));
  if (!options.trusted) {
    throw error.help("an untrusted file's native code is ignored: leave out --mode compiled");
  }
  throw error.help(
      "compile it for this machine, or leave out --mode compiled to run them as bytecode");
}

}  // namespace

bool lacks_code(const vm::Unit& unit, const std::optional<std::vector<std::string>>& available) {
  const bool can_be_loaded = !calls_kernels(unit) || !unit.computes.empty();
  return can_be_loaded && !unit.kernels.empty() && !vm::choose_kernels(unit, available) &&
         codegen::can_compile_bytecode(unit, codegen::host_target());
}

ProgramFile open_program(driver::Source source, const CompileFlags& flags,
                         const OpenOptions& options) {
  if (!options.trusted && source.is_graph()) refuse_untrusted(source.name);
  if (options.weights && source.is_graph()) {
    throw Error(ErrorKind::Usage, cat("--weights has no effect on ", printable(source.name)))
        .help("leave it out: it is for executables that were compiled with --external-weights");
  }
  ProgramFile file;
  file.source = std::move(source);
  prepare_runtime();
  vm::ProgramOptions load;
  load.trusted = options.trusted;
  load.weights = options.weights;
  load.read.name = file.source.name;
  load.limits = options.limits;
  load.bytecode_only = flags.options.mode == driver::kBytecodeMode;
  if (!flags.options.cpu.empty() && !file.source.is_graph()) {
    if (!options.trusted) {
      throw Error(ErrorKind::Usage, "--cpu has no effect with --untrusted")
          .help("an untrusted file's native code is ignored: leave out --cpu");
    }
    load.cpu_features = codegen::parse_target(flags.options.cpu[0]).features;
  }
  if (file.source.kind == driver::SourceKind::Executable) {
    load_into(&file, load, [&] { return vm::Program::load_file(file.source.bytes, load); });
    if (options.weights) refuse_unused_weights(file.program->unit(), file.source.name);
    if (options.must_be_compiled) check_compiled(file, options);
    return file;
  }
  vm::Unit unit;
  if (file.source.is_graph()) {
    const auto start = std::chrono::steady_clock::now();
    const BudgetedWork work(options.limits, "compiling", file.source.name);
    file.module = read_module(file.source, flags);
    unit = driver::compile(with_only_export(file.module, options.function), flags.options);
    file.compile_seconds = seconds_since(start);
  } else {
    const auto start = std::chrono::steady_clock::now();
    unit = driver::read_code(file.source);
    driver::compile_bytecode(unit, flags.options);
    file.compile_seconds = seconds_since(start);
  }
  load_into(&file, load, [&] { return vm::Program::from_unit(std::move(unit), load); });
  if (options.weights) refuse_unused_weights(file.program->unit(), file.source.name);
  return file;
}

ProgramFile open_graph(driver::Source source, const CompileFlags& flags, const WorkLimits& limits) {
  const BudgetedWork work(limits, "reading", source.name);
  ProgramFile file;
  file.source = std::move(source);
  if (file.source.kind == driver::SourceKind::Model) {
    onnx::ImportResult imported = driver::import_source(file.source, flags.import_options());
    file.module = std::move(imported.module);
    file.values = std::move(imported.values);
  } else {
    file.module = read_module(file.source, flags);
  }
  driver::refuse_other_devices(file.module);
  return file;
}

vm::LoadedUnit load_unit(const driver::Source& executable) {
  vm::ReadOptions options;
  options.name = executable.name;
  return vm::read_unit(executable.bytes, options);
}

std::vector<std::string> output_names(std::vector<std::string> given, size_t count) {
  for (size_t i = given.size(); i < count; ++i) given.push_back(cat("output_", i));
  return given;
}

std::vector<std::string> FunctionSignature::outputs() const {
  return output_names(result_names, result.results().size());
}

namespace {

// What to do about a name that no function has, unless there is a near one.
[[noreturn]] void fail_unknown(const std::string& program, const std::string& function,
                               std::vector<std::string> names) {
  const bool has_near = !nearest(function, names).empty() || names.empty();
  Error error = vm::unknown_function(printable(program), function, std::move(names));
  if (!has_near) error.help("name the function to call with --function");
  throw error;
}

}  // namespace

FunctionSignature signature_of(const vm::Program& program, const std::string& function) {
  const int64_t index = program.unit().find_exported(function);
  if (index < 0) fail_unknown(program.name(), function, program.unit().exported_names());
  return signature_of(program.unit(), static_cast<size_t>(index));
}

FunctionSignature signature_of(const vm::Unit& unit, size_t index) {
  FunctionSignature out = signature_of(unit.functions[index]);
  out.types = unit.types;
  return out;
}

FunctionSignature signature_of(const vm::FunctionUnit& function) {
  return {function.name, function.params, function.result, function.result_names, {}};
}

FunctionSignature signature_of(const graph::Module& module, const std::string& function,
                               const std::string& file) {
  const graph::FunctionRef* found = module->functions.find(function);
  if (!found || !(*found)->is_exported()) {
    std::vector<std::string> names;
    for (const auto& [name, f] : module->functions) {
      if (f->is_exported()) names.push_back(std::string(name));
    }
    fail_unknown(file, function, std::move(names));
  }
  const auto type_of = [&](const graph::TypeRef& type) {
    return codegen::signature_type(type, function, (*found)->span);
  };
  FunctionSignature signature{function, {}, type_of((*found)->result_type), {}, {}};
  const graph::Signatures signatures = graph::Signatures::of(module);
  codegen::DataTypes types(signatures);
  for (const graph::VarRef& param : (*found)->params) {
    signature.params.push_back({printable(param->name), type_of(param->type)});
    types.add(signature.params.back().type);
  }
  types.add(signature.result);
  signature.types = types.take();
  for (const String& name : (*found)->result_names()) {
    signature.result_names.push_back(printable(name));
  }
  return signature;
}

FunctionSignature ProgramFile::signature(const std::string& function) const {
  return program ? signature_of(*program, function) : signature_of(module, function, source.name);
}

std::string signature_lines(const std::vector<NameAndType>& inputs,
                            const std::vector<NameAndType>& outputs) {
  size_t width = 0;
  for (const auto* values : {&inputs, &outputs}) {
    for (const NameAndType& value : *values) width = std::max(width, printable(value.name).size());
  }
  std::string out;
  auto line = [&](const char* kind, const NameAndType& value) {
    const std::string name = printable(value.name);
    out += cat("  ", kind, "  ", name, std::string(width - name.size() + 2, ' '),
               printable(value.type), "\n");
  };
  for (const NameAndType& input : inputs) line("input ", input);
  for (const NameAndType& output : outputs) line("output", output);
  return out;
}

std::string signature_text(const FunctionSignature& signature) {
  std::vector<NameAndType> inputs, outputs;
  for (const vm::Param& param : signature.params) {
    inputs.push_back({param.name, vm::to_text(param.type)});
  }
  for (const std::string& name : signature.outputs()) {
    outputs.push_back({name, vm::to_text(signature.result.results()[outputs.size()])});
  }
  return cat(printable(signature.name), "\n", signature_lines(inputs, outputs));
}

std::vector<std::string> definitions_in(const FunctionSignature& signature) {
  std::vector<const vm::SignatureType*> types;
  for (const vm::Param& param : signature.params) types.push_back(&param.type);
  types.push_back(&signature.result);
  return DataTypes(signature.types).definitions_in(std::move(types));
}

void show_line_of_program(const driver::Source& source, Error* error) {
  if (source.kind != driver::SourceKind::Program) return;
  const Span span = error->span();
  if (span.file == source.name) graph::show_line(error, source.content(), span);
}

std::vector<Any> results_of(const Any& result, const vm::SignatureType& type) {
  if (type.kind != vm::SignatureType::Kind::Tuple) return {result};
  if (result.is_none()) return {};  // the unit value
  const auto fields = result.as<Array<Any>>();
  return {fields.begin(), fields.end()};
}

}  // namespace tenon::tool
