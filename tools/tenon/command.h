// What the commands share: options that several have, and how they report.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "driver/compile.h"

namespace tenon::tool {

// -v and -q: 0 quiet, 1 the default, 2 verbose.
int verbosity();
void set_verbosity(int level);
// A line of progress on standard error, at the default verbosity and above; what a terminal would
// obey in it is escaped.
void progress(const std::string& line);
void detail(const std::string& line);  // with -v only

// An option that may be given again: each time it takes one value, so that what follows it stays
// what it is.
template <class T>
CLI::Option* add_repeated(CLI::App* command, const std::string& flags, T& values,
                          const std::string& description) {
  return command->add_option(flags, values, description)->allow_extra_args(false);
}
// A check of an option's value: an integer, not below `least` nor above `most`.
CLI::Validator between(int64_t least, int64_t most = INT64_MAX);
// A finite number, not below 0.
CLI::Validator not_negative();

// Refuses to write `output` where it is the file that is read, by whichever of its names; `flag`
// names it.
void check_not_input(const std::string& input, const std::string& output, const std::string& flag);
// Refuses a file that OutputFile (support/output_file.h) could not write, before work that would be
// lost. A file is replaced by a new one, for which its folder must be writable.
void check_writable(const std::string& path);

// Refuses a folder, which is made where it does not exist, that no file can be written into.
void check_folder_writable(const std::string& folder);

// Of --poison, where a machine runs (vm::MachineOptions).
inline constexpr char kPoisonHelp[] =
    "debug the memory plan: storage reads as bytes 0xff (NaN, -1) before it\n"
    "is first written and after its last use";

// How a program is compiled, wherever a model or program is taken.
struct CompileFlags {
  std::string target;             // a triple; empty: the host's
  std::vector<std::string> cpus;  // empty: native, or the base of another architecture
  int level = 2;
  std::vector<std::string> dims;    // "batch=1"
  std::vector<std::string> shapes;  // "x=1x3x224x224"
  std::string libraries;            // empty: onednn where it can be used
  bool keep_computes = false;
  int64_t fold_limit = driver::CompileOptions().fold_limit;
  int64_t fold_work = driver::CompileOptions().fold_work;

  // `writes_file`: also what only a file has use for, such as code for several CPUs.
  void add_to(CLI::App* command, bool writes_file = false);
  // Refuses what only compilation heeds, for an executable.
  void check_unused(const std::string& executable) const;
  // Refuses sizes for a program in text, which has them written.
  void check_no_sizes(const std::string& text) const;
  driver::CompileOptions options() const;
  std::map<std::string, int64_t> dim_values() const;
  std::map<std::string, std::vector<int64_t>> shape_values() const;

 private:
  std::vector<const CLI::Option*> compilation_;  // of no use once a program is compiled
};

// Each adds one command; its callback runs the command and sets the exit code.
void add_compile_command(CLI::App* app, int* exit_code);
void add_run_command(CLI::App* app, int* exit_code);
void add_check_command(CLI::App* app, int* exit_code);
void add_bench_command(CLI::App* app, int* exit_code);
void add_inspect_command(CLI::App* app, int* exit_code);
void add_ops_command(CLI::App* app, int* exit_code);
void add_opt_command(CLI::App* app, int* exit_code);
void add_asm_commands(CLI::App* app, int* exit_code);   // asm, disasm
void add_dump_commands(CLI::App* app, int* exit_code);  // dump, verify
void add_completion_command(CLI::App* app, int* exit_code);

}  // namespace tenon::tool
