#include "graph/ir/referenced_file.h"

#include <filesystem>

#include "support/error.h"
#include "support/text.h"

namespace tenon::graph {

namespace {
constinit thread_local ReferencedFiles* collecting = nullptr;
}

ReferencedFiles::ReferencedFiles() : outer_(collecting) {
  collecting = this;
}
ReferencedFiles::~ReferencedFiles() {
  collecting = outer_;
}

std::string referenced_file(const std::string& folder, const std::string& name,
                            const std::string& what, const std::string& from,
                            const std::string* within) {
  namespace fs = std::filesystem;
  auto refuse = [&](const char* why) {
    return Error(ErrorKind::Usage, cat(printable(what), " is refused"))
        .found(cat("location ", tenon::quoted(name)), why)
        .expected(cat("a file in the ", from, "'s folder or below it"));
  };
  if (name.empty()) throw refuse("empty");
  if (name.find('\0') != std::string::npos) throw refuse("not a file name");
  const fs::path relative(name);
  if (relative.is_absolute()) throw refuse("absolute path");
  for (const fs::path& part : relative) {
    if (part == ".." && !within) throw refuse("leaves the folder");
  }
  const auto named = [](const std::string& path) { return fs::path(path.empty() ? "." : path); };
  const fs::path base = named(folder);
  std::error_code ec;
  const fs::path real_base = fs::canonical(within ? named(*within) : base, ec);
  if (ec) throw refuse("the folder cannot be read");
  const fs::path real = fs::canonical(base / relative, ec);
  if (ec) {
    throw Error(ErrorKind::Usage, cat(printable(what), " cannot be read"))
        .found(cat("location ", tenon::quoted(name)), ec.message())
        .help(cat("put the file beside the ", from));
  }
  const fs::path inside = real.lexically_relative(real_base);
  if (inside.empty() || *inside.begin() == "..") {
    throw refuse(within ? "outside the folder" : "a link that leaves the folder");
  }
  if (!fs::is_regular_file(real, ec)) throw refuse("not a regular file");
  for (ReferencedFiles* to = collecting; to; to = to->outer_) to->paths_.push_back(real.string());
  return real.string();
}

}  // namespace tenon::graph
