// The text of graph IR: what is printed parses back to an equal module, for every module.
// The grammar is docs/language.md.
#pragma once

#include <string>
#include <string_view>

#include "graph/ir/module.h"

namespace tenon::graph {

struct PrintOptions {
  // Constants over 64 elements go to this file (path as written in the text) when set, and are
  // elided otherwise; the parser refuses the elided form by name.
  std::string weights_path;
  bool show_spans = false;
};

std::string to_text(const Module& module, const PrintOptions& options = {});
std::string to_text(const FunctionRef& function, const PrintOptions& options = {});

// Throws Error (Usage) with line and column. `name` is the file's name in errors; weight files are
// looked up beside it. Calls are type-checked as they are built.
Module parse_module(std::string_view text, std::string_view name);

}  // namespace tenon::graph
