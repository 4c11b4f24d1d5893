// FILE arguments: a path, or - for standard input and output.
#pragma once

#include <string>
#include <string_view>

#include "device/work_budget.h"
#include "driver/open.h"
#include "tools/tenon/numpy/input_stream.h"

namespace tenon::tool {

// All bytes of a file (InputStream).
std::string read_input(const std::string& path);

// How programs are read: the options of this process (command.h, add_source_flags).
driver::Source& source_options();

// Opens a file with driver::open_source, and with source_options. Standard input and pipes are read
// first; a model's external data is then refused.
driver::Source open_input(const std::string& path);
// The same within limits. An untrusted file is copied, so that it can't change after it has been
// verified.
driver::Source open_input(const std::string& path, bool untrusted, const WorkLimits& limits);
// For commands that take only executables: throws Usage, with what to do, for the rest. `path` is
// the FILE that the source was opened from.
driver::Source require_executable(driver::Source source, const std::string& path);
driver::Source open_executable(const std::string& path);

// The help of a FILE that may be of any kind.
inline constexpr char kAnyFileHelp[] =
    "executable, ONNX model, program, or assembly;\n- for standard input";

// The help of --output where default_output applies.
inline constexpr char kOutputHelp[] =
    "the file to write, - for standard output; unless given, FILE with the\n"
    "extension .tnx, in FILE's folder, or standard output if FILE is -";
// Where a command writes when it isn't told: beside the input, with its own extension, or to
// standard output if that is where the input comes from.
std::string default_output(const std::string& input, std::string_view extension);

// Refuses to write something other than text to a terminal.
void check_not_terminal(const std::string& output);

}  // namespace tenon::tool
