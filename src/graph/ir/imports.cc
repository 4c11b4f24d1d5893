#include "graph/ir/imports.h"

#include <algorithm>
#include <filesystem>

#include "graph/ir/name_text.h"
#include "graph/ir/referenced_file.h"
#include "graph/ir/walk.h"
#include "support/input_file.h"
#include "support/poll.h"
#include "support/text.h"

namespace tenon::graph {

namespace {

namespace fs = std::filesystem;

// Counts the text for the limits of this thread's work, and polls.
void read_text(Imports::File* into) {
  InputFile file(into->path);
  into->counted = std::make_shared<CountedBytes>(file.size());
  std::string& text = into->text;
  text.reserve(file.size());
  while (text.size() < file.size()) {
    poll();
    const size_t size = text.size();
    text.resize(std::min(size + kPollBytes, file.size()));
    const size_t more = file.read(text.data() + size, text.size() - size);
    text.resize(size + more);
    if (more == 0) break;
  }
}

// "lib/math.tn" -> "lib/math."
std::string prefix_of(std::string path, int number = 1) {
  if (path.ends_with(".tn")) path.resize(path.size() - 3);
  return number > 1 ? cat(path, "#", number, ".") : path + ".";
}

}  // namespace

Imports::Imports(const std::string& root, std::vector<std::string> paths)
    : paths_(std::move(paths)) {
  // The standard library's prefixes are its own, whatever is imported first.
  for (const std::string& name : std_names()) prefixes_.insert(prefix_of(name));
  root_.path = root_.shown = root;
  root_.folder = fs::path(root).parent_path().string();
}

void Imports::add_paths(const std::vector<std::string>& paths) {
  paths_.insert(paths_.end(), paths.begin(), paths.end());
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
  } else if (name.ends_with(".onnx")) {
    const std::string module = cat(name.substr(0, name.size() - 5), ".tn");
    throw Error(ErrorKind::Usage, cat(tenon::quoted(name), " is a model, which isn't text"))
        .expected("a file of textual programs")
        .help(cat("`tenon opt ", name, " --passes \"\" -o ", module,
                  "` makes a program of it: import ", tenon::quoted(module),
                  ", whose function is @NAME.main"));
  } else {
    find(from, name, &made);
  }
  if (const auto file = files_.find(made.path); file != files_.end()) return file->second;
  if (made.prefix.empty()) {
    made.prefix = prefix_of(name);
  } else {
    // Files below different folders may have the same name.
    const std::string below = made.prefix;
    made.prefix = prefix_of(below);
    for (int i = 2; prefixes_.contains(made.prefix); ++i) made.prefix = prefix_of(below, i);
    read_text(&made);
  }
  prefixes_.insert(made.prefix);
  const std::string path = made.path;
  return files_.emplace(path, std::move(made)).first->second;
}

void Imports::find_in(const std::string& folder, const std::string& within, const std::string& name,
                      File* file) {
  file->path =
      referenced_file(folder, name, cat("import ", tenon::quoted(name)), "program", &within);
  const fs::path base = fs::canonical(within.empty() ? "." : within);
  const std::string below = fs::path(file->path).lexically_relative(base).string();
  file->shown = (fs::path(within) / below).string();
  file->prefix = below;
  file->folder = fs::path(file->path).parent_path().string();
}

void Imports::find(const File& from, const std::string& name, File* file) const {
  try {
    return find_in(from.folder, root_.folder, name, file);
  } catch (const Error& error) {
    for (const bool from_here : {true, false}) {
      for (const std::string& path : paths_) {
        try {
          return find_in(from_here ? from.folder : path, path, name, file);
        } catch (const Error&) {  // the first one tells what is expected
        }
      }
    }
    Error said = error;
    if (paths_.empty()) {
      said.help("put the file beside the program, or allow its folder with --import-path DIR");
    } else {
      said.where(cat("nor below an import path: ", tenon::join(paths_, ", ")));
    }
    throw said;
  }
}

}  // namespace tenon::graph
