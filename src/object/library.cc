#include "object/library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "object/host_error.h"
#include "object/registry.h"
#include "support/failures.h"

namespace tenon {
namespace {

struct Libraries {
  std::recursive_mutex mutex;  // a library may load another
  std::map<std::string, Module> by_name;
};
Libraries& libraries() {
  static Libraries* const all = new Libraries;  // never destroyed: threads may still use it at exit
  return *all;
}

Module module_of(const std::string& name, const std::vector<RegisteredFunction>& functions) {
  Map<String, Function> by_name;
  for (const RegisteredFunction& f : functions) by_name.set(f.name, f.function);
  Module module("library", name, by_name);
  for (const RegisteredFunction& f : functions) {
    if (f.flags.at_program_start) module.get()->at_program_start.push_back(f.function);
    if (f.flags.at_program_end) module.get()->at_program_end.push_back(f.function);
  }
  return module;
}

// Reports the loader's reason, or that the library comes from another build if the reason names
// that build's private symbols.
Error cannot_open(const std::string& path, const std::string& reason) {
  const size_t at = reason.find(kPrivateVersion);
  if (at == std::string::npos) {
    return failure(ErrorKind::Unsupported, cat("library ", path, " can't be opened"), reason);
  }
  const size_t begin = at + sizeof kPrivateVersion - 1;
  const size_t end = reason.find_first_not_of("0123456789abcdef", begin);
  return failure(ErrorKind::Unsupported,
                 cat("library ", path, " comes from another build of Tenon than this runtime"),
                 cat("build ", reason.substr(begin, end - begin)), cat("build ", kBuildId))
      .help("install the runtime and its libraries from one build");
}

using Entry = int (*)();

Entry open_entry(const std::string& path) {
  void* handle =
      dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed: its functions are kept
  if (!handle) {
    const char* reason = dlerror();
    throw cannot_open(path, reason ? reason : "no reason given");
  }
  auto entry = reinterpret_cast<Entry>(dlsym(handle, "tenon_register_library"));
  if (entry) return entry;
  dlclose(handle);
  throw_failure(ErrorKind::Unsupported, cat("library ", path, " can't be opened"),
                "no function tenon_register_library", "a library of packed functions for Tenon");
}

}  // namespace

Module define_library(const std::string& name, const std::function<void()>& init) {
  Libraries& all = libraries();
  std::lock_guard lock(all.mutex);
  if (auto at = all.by_name.find(name); at != all.by_name.end()) return at->second;
  RegistrationLog log;
  try {
    init();
  } catch (...) {
    for (const RegisteredFunction& f : log.functions) unregister_function(f.name);
    throw;
  }
  return all.by_name.emplace(name, module_of(name, log.functions)).first->second;
}

bool is_library_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

namespace {

// Calls the entry of the library at the path.
struct CallEntry {
  const std::string& path;
  void operator()() const {
    if (open_entry(path)() != 0) throw_host_error();
  }
};

}  // namespace

Module load_library(const std::string& name, std::span<const std::string> folders) {
  if (!is_library_name(name)) {
    throw Error(ErrorKind::Usage, cat("not a valid library name: ", quoted(name)))
        .expected("letters, digits and '_', without a path, \"lib\" or \".so\"");
  }
  {
    Libraries& all = libraries();
    std::lock_guard lock(all.mutex);
    if (auto at = all.by_name.find(name); at != all.by_name.end()) return at->second;
  }
  for (const std::string& folder : folders) {
    const std::string path = cat(folder, "/lib", name, ".so");
    if (access(path.c_str(), F_OK) != 0) continue;
    return define_library(name, CallEntry{path});
  }
  return Module();
}

}  // namespace tenon
