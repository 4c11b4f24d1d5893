// Shared by commands: common options and reporting.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "driver/compile.h"
#include "graph/ir/referenced_file.h"
#include "import/onnx/import_model.h"
#include "tools/tenon/compare.h"

namespace tenon::tool {

// -v and -q: 0 quiet, 1 the default, 2 verbose.
int verbosity();
void set_verbosity(int level);
// Prints a line of progress to standard error, at the default verbosity and above. Control
// characters are escaped.
void progress(const std::string& line);
void detail(const std::string& line);  // with -v only
// Adds -v and -q to the application or a command.
void add_verbosity(CLI::App* app);

// Adds an option that may be repeated. It takes exactly one value each time, so that the arguments
// after it are not taken as further values.
template <class T>
CLI::Option* add_repeated(CLI::App* command, const std::string& flags, T& values,
                          const std::string& description) {
  return command->add_option(flags, values, description)->allow_extra_args(false);
}
// Validates that an option's value is an integer in [least, most].
CLI::Validator between(int64_t least, int64_t most = INT64_MAX);
// Validates that a value is a finite number >= 0.
CLI::Validator not_negative();

// Refuses to overwrite the input file, under any of its names. `flag` is the option that names
// `output`.
void check_not_input(const std::string& input, const std::string& output, const std::string& flag);
// The same for the files that the input refers to: weights, imported programs, external data.
void check_not_read(const graph::ReferencedFiles& read, const std::string& output,
                    const std::string& flag);
// Refuses a file that OutputFile (support/output_file.h) could not write, before the work is done.
// Since a file is replaced by a new one, its folder must be writable.
void check_writable(const std::string& path);

// Refuses a folder that files can't be written into or that can't be created, before the work is
// done. Creates nothing.
void check_folder_writable(const std::string& folder);

struct CompileFlags;
// --mode: how the commands that compute results run a program.
enum class Mode : uint8_t { Compiled, Bytecode, Interpret };
// In arguments, besides the words of the option of that name.
inline constexpr char kInterpret[] = "interpret";
// Also sets the option of that name.
CLI::Option* add_mode(CLI::App* command, Mode& mode, CompileFlags& flags);
// --rtol and --atol.
std::vector<CLI::Option*> add_criterion(CLI::App* command, Criterion* criterion);

// The help of --poison, for commands that run a machine (vm::MachineOptions).
inline constexpr char kPoisonHelp[] =
    "debug the memory plan: storage reads as bytes 0xff (NaN, -1) before it\n"
    "is first written and after its last use";

// --custom: loads the libraries that are given while the arguments are parsed, and adds the names
// that files have for them.
CLI::Option* add_custom(CLI::App* command, std::vector<std::string>* names);

// The flags of driver/options.def that say how programs are read, for commands that don't have
// CompileFlags. open_input applies them.
void add_source_flags(CLI::App* command);

// Compilation options of the commands that take a model or program.
struct CompileFlags {
  driver::CompileOptions options;
  std::vector<std::string> dims;    // "batch=1"
  std::vector<std::string> shapes;  // "x=1x3x224x224"

  // Adds the flags of driver/options.def. Those that only matter in a file, such as code for
  // several CPUs, are for commands that write one.
  void add_to(CLI::App* command, bool writes_file = false);
  // Refuses options that only affect compilation, for an executable: all but those that also choose
  // among its codes, or how it runs.
  void check_unused(const std::string& executable) const;
  // Refuses sizes for a textual program, which states them itself.
  void check_no_sizes(const std::string& text) const;
  // The values of --dim and --shape. Throws Usage for malformed ones, and for a name given twice.
  onnx::ImportOptions import_options() const;

 private:
  std::vector<const CLI::Option*> compilation_;  // options without effect on an executable
};

// Each function adds one or two commands, whose callbacks run them. Those that take `exit_code` may
// set it: their results can differ from what was expected, or describe a failure.
void add_compile_command(CLI::App* app, int* exit_code);
void add_run_command(CLI::App* app, int* exit_code);
void add_check_command(CLI::App* app, int* exit_code);
void add_compare_command(CLI::App* app, int* exit_code);
void add_bench_command(CLI::App* app);
void add_trace_command(CLI::App* app);
void add_report_command(CLI::App* app);
void add_inspect_command(CLI::App* app, int* exit_code);
void add_ops_command(CLI::App* app);
void add_targets_command(CLI::App* app);
void add_opt_command(CLI::App* app);
void add_asm_commands(CLI::App* app);   // asm, disasm
void add_dump_commands(CLI::App* app);  // dump, verify
// These two describe the commands of `app`.
void add_completion_command(CLI::App* app);
void add_man_command(CLI::App* app);

}  // namespace tenon::tool
