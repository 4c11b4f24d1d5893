// The files that texts import, and those that these files import: each is parsed once.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ir/infer.h"
#include "object/counted_bytes.h"

namespace tenon::graph {

// The text of a file of the standard library, such as "std/list.tn"; null if there is none of that
// name. std_names() has all names.
const std::string_view* find_std_file(std::string_view name);
std::vector<std::string> std_names();

class Imports {
 public:
  // `root` is the path of the text that imports, in whose folder or below it all files must lie, or
  // in one of the folders of `paths` or below it.
  Imports(const std::string& root, std::vector<std::string> paths);
  void add_paths(const std::vector<std::string>& paths);

  struct File {
    std::string path;    // canonical, or the name of a file of the standard library
    std::string shown;   // for errors
    std::string folder;  // in which the files that it imports lie
    std::string prefix;  // of its functions' names: "std/list."
    std::string text;
    std::shared_ptr<CountedBytes> counted;  // the text; null in the standard library
    enum class State : uint8_t { kNew, kOpen, kParsed } state = State::kNew;
  };
  // The file that `from` imports by this name, which is relative to the folder of `from` or, if
  // there is no such file, to the first of the paths that has one. Throws Usage if it isn't there,
  // or neither below the root's folder nor a path.
  File& open(const File& from, const std::string& name);
  const File& root() const { return root_; }
  // The files that are being parsed, each imported by the one before it.
  std::vector<const File*> open_files;
  static constexpr size_t kDeepest = 64;

  // What the parsed files define, under their full names.
  Map<String, FunctionRef> functions;
  Map<String, TypeRef> types_of_functions;
  // Their data types, and those of the texts that import them.
  Map<String, Ref<const AdtDefinition>> adts;
  // Where a data type or constructor was defined, for errors.
  std::map<std::string, Span, std::less<>> places;

 private:
  // Fills in the file's path and names.
  void find(const File& from, const std::string& name, File* file) const;
  // The same, where it must lie in `within` or below.
  static void find_in(const std::string& folder, const std::string& within, const std::string& name,
                      File* file);

  File root_;
  std::vector<std::string> paths_;
  std::set<std::string> prefixes_;     // of the files
  std::map<std::string, File> files_;  // by path
};

}  // namespace tenon::graph
