// A FILE that the user named, as something that can be called: bytecode is loaded, a model or
// program is compiled in memory.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "driver/open.h"
#include "tools/tenon/command.h"
#include "vm/executable/read_file.h"
#include "vm/interp/program.h"

namespace tenon::tool {

// The signature of one function, for every kind of file.
struct FunctionSignature {
  std::string name;
  std::vector<vm::Param> params;
  vm::SignatureType result;
  std::vector<std::string> result_names;
  std::vector<std::string> types;  // definitions of all data types in it, perhaps of others

  std::vector<std::string> outputs() const;  // names, generated if there are none
};

struct ProgramFile {
  driver::Source source;
  graph::Module module;                 // null for bytecode
  std::vector<onnx::NodeValue> values;  // of a model that is only read: what its nodes compute
  Ref<vm::Program> program;             // null if the module is interpreted
  // Kernels that were compiled from a file's computes while it was loaded count as compiled.
  double compile_seconds = 0, load_seconds = 0;
  std::string code;  // of an executable: what its kernels were compiled for; empty if it has none
  bool lacks_code = false;  // as the function of that name says

  FunctionSignature signature(const std::string& function) const;
};

// Registers the built-in functions and libraries that programs may use.
void prepare_runtime();

// The module of a model or program, with the sizes that `flags` give. `ranks` has the ranks of
// inputs whose rank the model doesn't state.
graph::Module read_module(const driver::Source& source, const CompileFlags& flags,
                          const std::map<std::string, std::vector<int64_t>>& ranks = {});

struct OpenOptions {
  bool trusted = true;            // the loader's policy for bytecode (ProgramOptions)
  WorkLimits limits = {};         // apply to compiling a file, and to loading one
  vm::WeightSource weights = {};  // for the constants that an executable leaves out
  bool must_be_compiled = false;  // refuses an executable whose functions would run as bytecode
  // The only function of a model or program that will be called, so that others needn't be
  // compiled; empty for all of them.
  std::string function = {};
};

// The help text of --weights, which `weight_source` reads.
inline constexpr char kWeightsHelp[] =
    "safetensors file with the weights that an executable leaves out\n"
    "(`tenon compile --external-weights`)";
// An empty source for an empty path, and for a file without weights, which is what
// --external-weights writes for a program that has no large constants. Reading the file is held to
// the limits.
vm::WeightSource weight_source(const std::string& path, const WorkLimits& limits = {});
// Throws Usage unless the executable leaves out weights.
void refuse_unused_weights(const vm::Unit& unit, const std::string& name);

// Whether the bytecode of a unit that can be loaded runs as bytecode here because all machine code
// in the unit is for other CPUs than one with the features `available` (of choose_kernels).
bool lacks_code(const vm::Unit& unit,
                const std::optional<std::vector<std::string>>& available = {});
inline constexpr char kLacksCode[] = "no code for this CPU: functions run as bytecode";

// Loads or compiles a file, and reports kernels that it compiles from a file's computes. Throws
// Usage for weights that a model or program in text has no use for, and for one that is untrusted.
ProgramFile open_program(driver::Source source, const CompileFlags& flags,
                         const OpenOptions& options = {});
// Only reads a model or program, for the interpreter, without compiling it.
ProgramFile open_graph(driver::Source source, const CompileFlags& flags,
                       const WorkLimits& limits = {});
Ref<vm::Program> compile_in_memory(const graph::Module& module,
                                   const driver::CompileOptions& options, const std::string& name);

// Reads and verifies an executable for inspection, without linking it or opening its kernels.
vm::LoadedUnit load_unit(const driver::Source& executable);

FunctionSignature signature_of(const vm::Unit& unit, size_t index);
// Without the definitions of data types, which all functions of a unit share.
FunctionSignature signature_of(const vm::FunctionUnit& function);
// The signature of an exported function. Throws a Usage error that lists the exported functions if
// there is none of that name.
FunctionSignature signature_of(const vm::Program& program, const std::string& function);
FunctionSignature signature_of(const graph::Module& module, const std::string& function,
                               const std::string& file);
// The function's name, and a line for each of its inputs and outputs.
std::string signature_text(const FunctionSignature& signature);
// The definitions of the data types in its types, as DataTypes::definitions_in. Throws Damaged for
// a text that is none.
std::vector<std::string> definitions_in(const FunctionSignature& signature);

// A line per entry, with aligned types.
struct NameAndType {
  std::string name, type;
};
std::string signature_lines(const std::vector<NameAndType>& inputs,
                            const std::vector<NameAndType>& outputs);
// The names that a program gives its outputs, completed to `count` by generated names.
std::vector<std::string> output_names(std::vector<std::string> given, size_t count);

// Adds the line of a program in text that the error of a call is about, unless it lies in a file
// that the program imports.
void show_line_of_program(const driver::Source& source, Error* error);

// The results of a machine's call: the fields of a tuple, or the single value.
std::vector<Any> results_of(const Any& result, const vm::SignatureType& type);

}  // namespace tenon::tool
