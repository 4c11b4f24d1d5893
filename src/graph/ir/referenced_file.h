// Files that another file names, which may come from anybody.
#pragma once

#include <string>

namespace tenon::graph {

// The path of the file `name`, which a file in `folder` ("" for the current one) refers to. Throws
// Usage for anything but a regular file in that folder or below it: an absolute path, "..", a
// symbolic link to the outside, a device. `what` ("external data of 'w'") and `from` ("model", the
// file that refers to it) are for the error. If the file may also lie elsewhere below `within`, a
// folder, then ".." may lead there.
std::string referenced_file(const std::string& folder, const std::string& name,
                            const std::string& what, const std::string& from,
                            const std::string* within = nullptr);

}  // namespace tenon::graph
