// The flags of commands that call a function: which one, on what, and how it is compiled.
#pragma once

#include <string>

#include "tools/tenon/command.h"
#include "tools/tenon/input_spec.h"

namespace tenon::tool {

struct CallFlags {
  std::string file, function = "main", weights;
  InputFlags inputs;
  CompileFlags flags;
  int threads = 0;

  void add_to(CLI::App* command);
};

}  // namespace tenon::tool
