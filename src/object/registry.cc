#include "object/registry.h"

#include <mutex>
#include <shared_mutex>

namespace tenon {

namespace {
struct Registry {
  std::shared_mutex mutex;
  std::map<std::string, RegisteredFunction, std::less<>> functions;
};
Registry& registry() {
  static Registry* const r = new Registry;  // never destroyed: threads may still use it at exit
  return *r;
}

RegisteredFunction entry_of(std::string_view name, Function function, FunctionFlags flags) {
  if (name.empty() || !function) {
    throw Error(ErrorKind::Usage, "registering a function needs a name and a function");
  }
  return {std::string(name), std::move(function), flags};
}

constinit thread_local RegistrationLog* log_of_thread = nullptr;

[[noreturn]] void fail_taken(std::string_view name) {
  throw Error(ErrorKind::Usage, cat("a function ", quoted(name), " is already registered"))
      .help("replace it (TENON_REPLACE in C, override=True in Python), or choose another name");
}
}  // namespace

void register_function(std::string_view name, Function function, FunctionFlags flags,
                       bool replace) {
  RegisteredFunction entry = entry_of(name, std::move(function), flags);
  Registry& r = registry();
  std::unique_lock lock(r.mutex);
  auto at = r.functions.find(name);
  if (at == r.functions.end()) {
    std::string key = entry.name;
    if (log_of_thread) log_of_thread->functions.push_back(entry);
    r.functions.emplace(std::move(key), std::move(entry));
  } else if (replace) {
    if (log_of_thread) log_of_thread->functions.push_back(entry);
    std::swap(at->second, entry);  // the old one is destroyed after the lock is released
    lock.unlock();
  } else {
    fail_taken(name);
  }
}

void Registration::add(std::string_view name, Function function, FunctionFlags flags) {
  RegisteredFunction entry = entry_of(name, std::move(function), flags);
  if (!functions_.try_emplace(entry.name, entry).second) fail_taken(name);
}

void Registration::commit() {
  Registry& r = registry();
  std::unique_lock lock(r.mutex);
  for (const auto& [name, entry] : functions_) {
    if (r.functions.contains(name)) fail_taken(name);
  }
  if (log_of_thread) {
    for (const auto& [name, entry] : functions_) log_of_thread->functions.push_back(entry);
  }
  r.functions.merge(functions_);  // moves the nodes without allocating
}

RegistrationLog::RegistrationLog() : outer_(std::exchange(log_of_thread, this)) {}
RegistrationLog::~RegistrationLog() {
  log_of_thread = outer_;
}

bool unregister_function(std::string_view name) {
  Registry& r = registry();
  RegisteredFunction old;
  std::unique_lock lock(r.mutex);
  auto at = r.functions.find(name);
  if (at == r.functions.end()) return false;
  old = std::move(at->second);
  r.functions.erase(at);
  lock.unlock();
  return true;
}

std::optional<RegisteredFunction> find_registered(std::string_view name) {
  Registry& r = registry();
  std::shared_lock lock(r.mutex);
  auto at = r.functions.find(name);
  if (at == r.functions.end()) return std::nullopt;
  return at->second;
}

Function find_function(std::string_view name) {
  auto entry = find_registered(name);
  return entry ? std::move(entry->function) : Function();
}

Function function_named(std::string_view name) {
  if (Function f = find_function(name)) return f;
  Error e(ErrorKind::Usage, cat("no function ", quoted(name), " is registered"));
  if (auto near = nearest(name, registered_names()); !near.empty()) {
    e.help(cat("did you mean ", near, "?"));
  } else if (name.starts_with("tenon.")) {
    e.help("load the library that registers it first");
  }
  throw e;
}

std::vector<std::string> registered_names() {
  Registry& r = registry();
  std::shared_lock lock(r.mutex);
  std::vector<std::string> names;
  for (const auto& [name, entry] : r.functions) names.push_back(name);
  return names;
}

}  // namespace tenon
