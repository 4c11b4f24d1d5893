// Module: named functions from one source (a shared object, an executable, a remote), with imports.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "object/array.h"
#include "object/function.h"

namespace tenon {

struct ModuleObj : Object {
  static constexpr int32_t kTypeIndex = TypeIndex::Module;
  static constexpr int32_t kTypeLast = kTypeIndex;

  // Finds a function of this source itself; a null Function when it has none. Called once per name.
  using Lookup = std::function<Function(std::string_view name)>;

  std::string kind;  // "library", "executable"
  std::string name;
  Lookup lookup;
  std::vector<std::string> names;  // the functions that it lists, in order
  // Of a library: called without arguments when a program that uses it is linked, and when one
  // ends.
  std::vector<Function> at_program_start, at_program_end;
  std::vector<Ref<ModuleObj>> imports;
  Ref<Object> owner;  // kept alive as long as the module
  std::mutex mutex;
  std::unordered_map<std::string, Function> cache;  // found ones only, under `mutex`
};

class Module : public Handle {
 public:
  Module() = default;
  explicit Module(Ref<Object> r) { ref_ = std::move(r); }
  Module(std::string kind, std::string name, ModuleObj::Lookup lookup,
         std::vector<std::string> names = {}, Ref<Object> owner = {});

  ModuleObj* get() const { return static_cast<ModuleObj*>(ref_.get()); }
  // The function of that name here or, `with_imports`, in an import, depth first in their order; a
  // null Function when there is none. Thread-safe; found functions are remembered.
  Function find(std::string_view name, bool with_imports = true) const;
  // The same; a Usage error that lists what there is when there is none.
  Function at(std::string_view name) const;
  // A Usage error when that would make a cycle. Not while other threads look up.
  void import(const Module& other) const;

  static bool accepts(const AnyView& a) { return a.type_index == TypeIndex::Module || a.is_none(); }
  static std::string type_text() { return "module"; }
};

}  // namespace tenon
