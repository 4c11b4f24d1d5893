// The flags of commands that call a function: which one, on what, how it is compiled, and the
// limits.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "tools/tenon/command.h"
#include "tools/tenon/input_spec.h"
#include "tools/tenon/limit_flags.h"
#include "tools/tenon/program_file.h"
#include "vm/interp/account.h"

namespace tenon::tool {

struct CallFlags {
  std::string file, function = "main", weights;
  InputFlags inputs;
  CompileFlags flags;
  LimitFlags limit_flags;
  int threads = 0;
  int64_t stack = 0;  // bytes; 0: the default
  std::optional<uint32_t> depth;
  bool untrusted = false;
  // Its option. Not asked of CLI11 by name, which ends the process when memory is exhausted.
  const CLI::Option* untrusted_option = nullptr;

  void add_to(CLI::App* command);

  // Opens FILE. An untrusted file is copied, so that it can't change after it has been verified.
  driver::Source read() const;
  // How its program is opened.
  OpenOptions open_options() const;
  Inputs make_inputs_within_limits(const FunctionSignature& signature, bool random_rest) const;
  // The program of `source`, which is opened, and inputs for the function: those that are not given
  // are random. Binds sizes that only the program knows, and tells the user how inputs were made.
  std::pair<ProgramFile, Inputs> open_with_inputs(driver::Source source);
  // The limits of a call.
  vm::Limits call_limits() const;
};

}  // namespace tenon::tool
