#include "tools/tenon/program_file.h"

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "graph/ir/check.h"
#include "graph/ir/text.h"
#include "import/onnx/import_model.h"
#include "library/onednn/register.h"
#include "support/error.h"
#include "tools/tenon/npy.h"
#include "tools/tenon/tensor_text.h"
#include "vm/builtin/register.h"
#include "vm/executable/file_format.h"

namespace tenon::tool {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

bool is_model_file(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension();
  return extension == ".onnx" || extension == ".pb";
}

bool is_executable_file(const std::string& path) {
  if (!std::filesystem::is_regular_file(path)) return false;  // a pipe would wait for its writer
  std::ifstream in(path, std::ios::binary);
  char magic[sizeof vm::kMagic] = {};
  in.read(magic, sizeof magic);
  return in && std::memcmp(magic, vm::kMagic, sizeof magic) == 0;
}

bool is_executable(const std::string& path) {
  return std::filesystem::path(path).extension() == ".tnx" || is_executable_file(path);
}

graph::Module read_module(const std::string& path, const CompileFlags& flags,
                          const std::map<std::string, std::vector<int64_t>>& ranks,
                          bool executables) {
  driver::initialise();
  const std::string extension = std::filesystem::path(path).extension();
  if (extension == ".tn") {
    graph::Module module = graph::parse_module(read_file(path), path);
    graph::check_module(module);
    return module;
  }
  if (is_model_file(path)) {
    onnx::ImportOptions options;
    options.dims = flags.dim_values();
    options.shapes = ranks;
    for (auto& [name, shape] : flags.shape_values()) options.shapes[name] = shape;
    return onnx::import_model(path, options).module;
  }
  const std::string wanted =
      executables ? "a model (.onnx), a program in Tenon's text (.tn), or an executable (.tnx)"
                  : "a model (.onnx) or a program in Tenon's text (.tn)";
  if (!std::filesystem::exists(path)) {
    throw Error(ErrorKind::Usage, cat(path, " does not exist")).expected(wanted);
  }
  if (std::filesystem::is_directory(path)) {
    throw Error(ErrorKind::Usage, cat(path, " is a folder")).expected(wanted);
  }
  if (!executables && is_executable(path)) {
    throw Error(ErrorKind::Usage, cat(path, " is compiled already")).expected(wanted);
  }
  throw Error(ErrorKind::Usage, cat(path, " is of no kind that the command takes"))
      .expected(wanted);
}

void prepare_runtime() {
  driver::initialise();
  vm::register_builtins();
  register_onednn();
}

Ref<vm::Program> compile_in_memory(const graph::Module& module,
                                   const driver::CompileOptions& options, const std::string& name) {
  prepare_runtime();
  vm::ProgramOptions load;
  load.read.name = name;
  return vm::Program::from_unit(driver::compile(module, options), load);
}

ProgramFile open_program(const std::string& path, const CompileFlags& flags, bool trusted,
                         const vm::LoadLimits& limits) {
  ProgramFile file;
  file.path = path;
  prepare_runtime();
  auto start = std::chrono::steady_clock::now();
  if (is_executable(path)) {
    vm::ProgramOptions load;
    load.trusted = trusted;
    load.limits = limits;
    file.program = vm::Program::load(path, load);
    file.load_seconds = seconds_since(start);
    return file;
  }
  file.module = read_module(path, flags, {}, /*executables=*/true);
  vm::Unit unit = driver::compile(file.module, flags.options());
  file.compile_seconds = seconds_since(start);
  start = std::chrono::steady_clock::now();
  vm::ProgramOptions load;
  load.read.name = path;
  file.program = vm::Program::from_unit(std::move(unit), load);
  file.load_seconds = seconds_since(start);
  return file;
}

vm::LoadedUnit load_unit(const std::string& path) {
  vm::ReadOptions options;
  options.name = path;
  return vm::read_unit(vm::map_file(path), options);
}

std::vector<std::string> output_names(std::vector<std::string> given, size_t count) {
  for (size_t i = given.size(); i < count; ++i) given.push_back(cat("output_", i));
  return given;
}

std::vector<std::string> FunctionSignature::outputs() const {
  const size_t count = result.kind == vm::SignatureType::Kind::Tuple ? result.parts.size() : 1;
  return output_names(result_names, count);
}

FunctionSignature signature_of(const vm::Program& program, const std::string& function) {
  return signature_of(program.unit().functions[program.exported(function)]);
}

FunctionSignature signature_of(const vm::FunctionUnit& function) {
  return {function.name, function.params, function.result, function.result_names};
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
  const bool tuple = signature.result.kind == vm::SignatureType::Kind::Tuple;
  for (const std::string& name : signature.outputs()) {
    const vm::SignatureType& type =
        tuple ? signature.result.parts[outputs.size()] : signature.result;
    outputs.push_back({name, vm::to_text(type)});
  }
  return cat(printable(signature.name), "\n", signature_lines(inputs, outputs));
}

std::vector<Any> results_of(const Any& result, const vm::SignatureType& type) {
  if (type.kind != vm::SignatureType::Kind::Tuple) return {result};
  if (result.is_none()) return {};  // the unit
  const auto fields = result.as<Array<Any>>();
  return {fields.begin(), fields.end()};
}

}  // namespace tenon::tool
