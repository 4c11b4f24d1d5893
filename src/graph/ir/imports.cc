#include "graph/ir/imports.h"

#include <algorithm>
#include <filesystem>

#include "graph/ir/name_text.h"
#include "graph/ir/referenced_file.h"
#include "graph/ir/walk.h"
#include "support/input_file.h"
#include "support/text.h"

namespace tenon::graph {

namespace {

namespace fs = std::filesystem;

std::string read_text(const std::string& path) {
  InputFile file(path);
  std::string text(file.size(), '\0');
  size_t size = 0;
  while (size < text.size()) {
    const size_t more = file.read(text.data() + size, text.size() - size);
    if (more == 0) break;
    size += more;
  }
  text.resize(size);
  return text;
}

// "lib/math.tn" -> "lib/math."
std::string prefix_of(std::string path) {
  if (path.ends_with(".tn")) path.resize(path.size() - 3);
  return path + ".";
}

// Calls `f` with the name of each function of the module that a block calls or has as a value.
template <class F>
void for_each_callee(const Block& block, const F& f) {
  for (const auto& binding : block.bindings) {
    const ExprRef& value = binding->value;
    if (const auto* call = value.as<Call>(); call && call->kind == CalleeKind::kGlobal) {
      f(call->callee);
    }
    if (const auto* closure = value.as<Closure>()) f(closure->function);
    for_each_block(value, [&](const BlockRef& inner) { for_each_callee(*inner, f); });
  }
}

}  // namespace

Imports::Imports(const std::string& root) {
  root_.path = root_.shown = root;
  root_.folder = fs::path(root).parent_path().string();
}

Imports::File& Imports::open(const File& from, const std::string& name) {
  File made;
  if (const std::string_view* text = find_std_file(name)) {
    made.path = made.shown = name;
    made.text = *text;
  } else if (name.starts_with("std/")) {
    Error e(ErrorKind::Usage, cat("the standard library has no file ", tenon::quoted(name)));
    suggest(&e, name, std_names());
    throw e.expected(tenon::join(std_names(), ", "));
  } else {
    made.path = referenced_file(from.folder, name, cat("import ", tenon::quoted(name)), "program",
                                &root_.folder);
    const fs::path base = fs::canonical(root_.folder.empty() ? "." : root_.folder);
    const std::string below = fs::path(made.path).lexically_relative(base).string();
    made.shown = (fs::path(root_.folder) / below).string();
    made.prefix = prefix_of(below);
    made.folder = fs::path(made.path).parent_path().string();
  }
  auto& file = files_[made.path];
  if (file) return *file;
  if (made.prefix.empty()) {
    made.prefix = prefix_of(name);
  } else {
    made.text = read_text(made.path);
  }
  file = std::make_unique<File>(std::move(made));
  return *file;
}

Map<String, FunctionRef> reachable(const Map<String, FunctionRef>& kept,
                                   const Map<String, FunctionRef>& all) {
  Map<String, FunctionRef> out = kept;
  std::vector<FunctionRef> pending;
  for (const auto& [name, function] : kept) pending.push_back(function);
  while (!pending.empty()) {
    const FunctionRef next = pending.back();
    pending.pop_back();
    for_each_callee(*next->body, [&](const String& name) {
      const FunctionRef* found = all.find(name);
      if (!found || out.contains(name)) return;
      out.set(name, *found);
      pending.push_back(*found);
    });
  }
  return out;
}

}  // namespace tenon::graph
