// Files that another file names, which may come from anybody.
#pragma once

#include <string>
#include <vector>

namespace tenon::graph {

// The path of the file `name`, which a file in `folder` ("" for the current one) refers to. Throws
// Usage for anything but a regular file in that folder or below it: an absolute path, "..", a
// symbolic link to the outside, a device. `what` ("external data of 'w'") and `from` ("model", the
// file that refers to it) are for the error. If the file may also lie elsewhere below `within`, a
// folder, then ".." may lead there.
std::string referenced_file(const std::string& folder, const std::string& name,
                            const std::string& what, const std::string& from,
                            const std::string* within = nullptr);

// Collects the paths that referenced_file returns on this thread while it lives: the files that
// something was read from besides the one that was named.
class ReferencedFiles {
 public:
  ReferencedFiles();
  ReferencedFiles(const ReferencedFiles&) = delete;
  ReferencedFiles& operator=(const ReferencedFiles&) = delete;
  ~ReferencedFiles();

  const std::vector<std::string>& paths() const { return paths_; }

 private:
  friend std::string referenced_file(const std::string&, const std::string&, const std::string&,
                                     const std::string&, const std::string*);
  std::vector<std::string> paths_;
  ReferencedFiles* outer_;
};

}  // namespace tenon::graph
