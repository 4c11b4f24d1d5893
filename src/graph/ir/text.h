// The text of graph IR. Every module that is printed parses back to an equal module.
// docs/language.md has the grammar.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ir/infer.h"
#include "graph/ir/module.h"

namespace tenon::graph {

inline constexpr int64_t kMaxInlineElements = 64;

struct PrintOptions {
  // If set, constants with more than kMaxInlineElements elements are printed as references to this
  // file, a path relative to the text, which `save_module` writes. Otherwise they are elided, which
  // the parser refuses with an error that names the constant.
  std::string weights_path;
  bool show_spans = false;
};

std::string to_text(const Module& module, const PrintOptions& options = {});
std::string to_text(const FunctionRef& function, const PrintOptions& options = {});

std::string to_text(const loop::KernelInterfaceRef& kernel, std::string_view name);

// Parses a text that holds only kernels and computes: no other file is read and nothing is
// inferred. Throws Usage with line and column.
Map<String, loop::KernelInterfaceRef> parse_kernels(std::string_view text, std::string_view name);

// Writes the text to `path` and the elements of large constants to weights_path(path). Throws Usage
// if a file can't be written.
void save_module(const Module& module, const std::string& path);
std::string weights_path(const std::string& path);

// Parses a module. `name` is the file's name in errors; weight files are looked up beside it. Calls
// are type-checked as they are built. Files that it imports lie in its folder or below it, or in
// one of the folders of `import_paths` or below it. Throws Usage with line and column.
Module parse_module(std::string_view text, std::string_view name,
                    const std::vector<std::string>& import_paths = {});

class Imports;

// What texts define, for functions that are built beside them.
struct Definitions {
  Map<String, FunctionRef> functions;  // the texts' own
  Map<String, FunctionRef> imported;   // those of the files that they import, all of them
  Map<String, Ref<const AdtDefinition>> adts;
  Map<String, loop::KernelInterfaceRef> kernels;
  Map<String, String> written;  // how the texts name what they import: "std/list.map" is "l.map"
  // What the names of imported functions begin with, by the imports' names: "std/list." for l.
  std::map<std::string, std::string, std::less<>> prefixes;
  std::shared_ptr<const Imports> imports;  // null: none yet
};
// Parses a text of a module that has `known` already, with functions of these types. Returns
// `known` with what the text adds. Throws Usage with line and column, as parse_module does, and for
// names that are taken.
Definitions parse_definitions(std::string_view text, std::string_view name,
                              const std::vector<std::string>& import_paths = {},
                              const Definitions& known = {},
                              const Map<String, TypeRef>& functions = {});

// Parses a type such as `tensor[n, 4; f32]`. Throws Usage if the text is not a type.
TypeRef parse_type(std::string_view text);

// Parses a constant such as `tensor[2; f32]{1, 2}` or `2.5` as its value. Throws Usage if the text
// is not a constant.
Any parse_constant(std::string_view text);

// Adds rows to an error that show the span's line of the text with a mark below its column. Adds
// none if the text has no such line.
void show_line(Error* error, std::string_view text, const Span& span);

// Whether the first word after comments begins a module.
bool begins_like_module(std::string_view text);

// Parses a size such as `2*n + 1`. Throws Usage if the text is not a size.
Dim parse_size(std::string_view text);

}  // namespace tenon::graph
