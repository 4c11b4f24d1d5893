// Module: named functions from one source (a library, an executable, the host), with imports.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "object/array.h"
#include "object/function.h"
#include "object/map.h"

namespace tenon {

struct ModuleObj : Object {
  static constexpr int32_t kTypeIndex = TypeIndex::Module;
  static constexpr int32_t kTypeLast = kTypeIndex;

  // Finds one of the source's own functions; null if there is none. Called once per name.
  using Lookup = std::function<Function(std::string_view name)>;

  std::string kind;  // "library", "executable"
  std::string name;
  Lookup lookup;
  std::vector<std::string> names;  // of its own functions, in order
  // For libraries: called without arguments when a program that uses the library is linked, and
  // when such a program ends.
  std::vector<Function> at_program_start, at_program_end;
  std::vector<Ref<ModuleObj>> imports;
  std::atomic<bool> is_imported = false;  // by any module, so that an import here may make a cycle
  Ref<Object> owner;                      // kept alive as long as the module
  std::mutex mutex;
  std::unordered_map<std::string, Function> known;  // found before, or given; under `mutex`
};

class Module : public Handle {
 public:
  Module() = default;
  explicit Module(Ref<Object> r) { ref_ = std::move(r); }
  Module(std::string kind, std::string name, ModuleObj::Lookup lookup,
         std::vector<std::string> names = {}, Ref<Object> owner = {});
  // A module of these functions.
  Module(std::string kind, std::string name, const Map<String, Function>& functions);

  ModuleObj* get() const { return static_cast<ModuleObj*>(ref_.get()); }
  // Finds a function here or, `with_imports`, in an import, in order and depth first; null if there
  // is none. Thread-safe; results are cached.
  Function find(std::string_view name, bool with_imports = true) const;
  // The same, but a missing name is a Usage error that lists the functions.
  Function at(std::string_view name) const;
  // A Usage error if this would make a cycle. No other thread may look functions up meanwhile.
  void import(const Module& other) const;

  static bool accepts(const AnyView& a) { return a.type_index == TypeIndex::Module || a.is_none(); }
  static std::string type_text() { return "module"; }
};

}  // namespace tenon
