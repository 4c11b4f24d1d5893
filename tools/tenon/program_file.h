// A FILE that the user named, as something that can be called: code of the machine is loaded, a
// model or program is compiled in memory.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "driver/open.h"
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
  driver::Source source;
  graph::Module module;      // null for code of the machine
  Ref<vm::Program> program;  // null where the module is interpreted
  double compile_seconds = 0, load_seconds = 0;

  FunctionSignature signature(const std::string& function) const;
};

// Registers what programs may name: built-in functions and libraries.
void prepare_runtime();

// The module of a model or program, with the sizes that `flags` give. `ranks` gives ranks to inputs
// of a model that state none.
graph::Module read_module(const driver::Source& source, const CompileFlags& flags,
                          const std::map<std::string, std::vector<int64_t>>& ranks = {});

// Loads or compiles. `trusted` is the loader's policy for code of the machine (ProgramOptions), and
// `limits` hold while it is loaded.
ProgramFile open_program(driver::Source source, const CompileFlags& flags, bool trusted = true,
                         const vm::LoadLimits& limits = {});
// Only reads a model or program, for the interpreter: nothing is compiled.
ProgramFile open_graph(driver::Source source, const CompileFlags& flags);
Ref<vm::Program> compile_in_memory(const graph::Module& module,
                                   const driver::CompileOptions& options, const std::string& name);

// An executable to look at: read and verified, nothing of it linked or opened.
vm::LoadedUnit load_unit(const std::string& path);

FunctionSignature signature_of(const vm::FunctionUnit& function);
FunctionSignature signature_of(const vm::Program& program, const std::string& function);
// Of a function that the host may call; a Usage error that lists those when it is none.
FunctionSignature signature_of(const graph::Module& module, const std::string& function,
                               const std::string& file);
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
