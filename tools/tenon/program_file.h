// A FILE that the user named, as something that can be called: .tnx is loaded, .onnx and .tn are
// compiled in memory.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/ir/module.h"
#include "tools/tenon/command.h"
#include "vm/executable/read_file.h"
#include "vm/interp/program.h"

namespace tenon::tool {

// The signature of one function, from whichever kind of file.
struct FunctionSignature {
  std::string name;
  std::vector<vm::Param> params;
  vm::SignatureType result;
  std::vector<std::string> result_names;

  std::vector<std::string> outputs() const;  // names, invented where there are none
};

struct ProgramFile {
  std::string path;
  Ref<vm::Program> program;  // null when only the module was asked for
  graph::Module module;      // null for .tnx
  double compile_seconds = 0, load_seconds = 0;
};

// Registers what programs may name: built-in functions and libraries.
void prepare_runtime();

bool is_model_file(const std::string& path);       // .onnx, by its name
bool is_executable_file(const std::string& path);  // by its first bytes
bool is_executable(const std::string& path);       // by its name or first bytes

// The module of an .onnx or .tn file. `ranks` gives ranks to inputs that state none.
// `executables`: whether the command takes them, for what it says of a file of no such kind.
graph::Module read_module(const std::string& path, const CompileFlags& flags,
                          const std::map<std::string, std::vector<int64_t>>& ranks = {},
                          bool executables = false);

// `trusted` is the loader's policy for a .tnx (ProgramOptions).
// `limits` hold for loading an executable.
ProgramFile open_program(const std::string& path, const CompileFlags& flags, bool trusted = true,
                         const vm::LoadLimits& limits = {});
Ref<vm::Program> compile_in_memory(const graph::Module& module,
                                   const driver::CompileOptions& options, const std::string& name);

// An executable to look at: read and verified, nothing of it linked or opened.
vm::LoadedUnit load_unit(const std::string& path);

FunctionSignature signature_of(const vm::FunctionUnit& function);
FunctionSignature signature_of(const vm::Program& program, const std::string& function);
// The function's name, and a line for each of its inputs and outputs.
std::string signature_text(const FunctionSignature& signature);

// A line for each, with the types below each other.
struct NameAndType {
  std::string name, type;
};
std::string signature_lines(const std::vector<NameAndType>& inputs,
                            const std::vector<NameAndType>& outputs);
// The names that a program gives its outputs, with invented ones for the others of `count`.
std::vector<std::string> output_names(std::vector<std::string> given, size_t count);

// What a machine's call returned, as a list: the fields of a tuple, else the value alone.
std::vector<Any> results_of(const Any& result, const vm::SignatureType& type);

}  // namespace tenon::tool
