// The text of graph IR: what is printed parses back to an equal module, for every module.
// The grammar is docs/language.md.
#pragma once

#include <string>
#include <string_view>

#include "graph/ir/module.h"

namespace tenon::graph {

inline constexpr int64_t kMaxInlineElements = 64;

struct PrintOptions {
  // Constants over kMaxInlineElements are written as references into this file (path as written in
  // the text, beside which it lies) when set, and are elided otherwise; the parser refuses the
  // elided form by name. `save_module` writes the file.
  std::string weights_path;
  bool show_spans = false;
};

std::string to_text(const Module& module, const PrintOptions& options = {});
std::string to_text(const FunctionRef& function, const PrintOptions& options = {});

std::string to_text(const loop::KernelInterfaceRef& kernel, std::string_view name);

// The kernels and computes of a text that holds nothing else, so that reading it reads no other
// file and infers nothing. Throws Error (Usage) at the place that is wrong.
Map<String, loop::KernelInterfaceRef> parse_kernels(std::string_view text, std::string_view name);

// Writes the text to `path` and, where constants are large, their elements to `path`.weights beside
// it. Throws Error (Usage) when a file can't be written.
void save_module(const Module& module, const std::string& path);

// Throws Error (Usage) with line and column. `name` is the file's name in errors; weight files are
// looked up beside it. Calls are type-checked as they are built.
Module parse_module(std::string_view text, std::string_view name);

// A type, such as `tensor[n, 4; f32]`. Throws Error (Usage) for text that is none.
TypeRef parse_type(std::string_view text);

// Whether the first word that is no comment begins a module.
bool begins_like_module(std::string_view text);

// A size as types have it, such as `2*n + 1`. Throws Error (Usage) for text that is none.
Dim parse_size(std::string_view text);

}  // namespace tenon::graph
