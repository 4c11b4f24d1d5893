#include "object/module.h"

#include <unordered_set>

namespace tenon {

Module::Module(std::string kind, std::string name, ModuleObj::Lookup lookup,
               std::vector<std::string> names, Ref<Object> owner) {
  auto m = make<ModuleObj>();
  m->kind = std::move(kind);
  m->name = std::move(name);
  m->lookup = std::move(lookup);
  m->names = std::move(names);
  m->owner = std::move(owner);
  ref_ = std::move(m);
}

Module::Module(std::string kind, std::string name, const Map<String, Function>& functions)
    : Module(std::move(kind), std::move(name), ModuleObj::Lookup()) {
  for (const auto& [function_name, function] : functions) {
    get()->names.push_back(function_name.str());
    get()->known.emplace(function_name.str(), function);
  }
}

namespace {

Function find_in(ModuleObj* m, const std::string& name) {
  {
    std::lock_guard lock(m->mutex);
    if (auto at = m->known.find(name); at != m->known.end()) return at->second;
  }
  Function f = m->lookup ? m->lookup(name) : Function();
  if (!f) return f;
  std::lock_guard lock(m->mutex);
  return m->known.emplace(name, std::move(f))
      .first->second;  // a concurrent look-up may have added it first
}

// Visits a module and its imports, each once, depth first, until `visit` returns true.
template <class Visit>
void walk_imports(ModuleObj* root, Visit visit) {
  std::unordered_set<ModuleObj*> seen{root};
  std::vector<ModuleObj*> stack{root};
  while (!stack.empty()) {
    ModuleObj* m = stack.back();
    stack.pop_back();
    if (visit(m)) return;
    for (auto i = m->imports.rbegin(); i != m->imports.rend(); ++i) {
      if (seen.insert(i->get()).second) stack.push_back(i->get());
    }
  }
}

}  // namespace

Function Module::find(std::string_view name, bool with_imports) const {
  std::string key(name);
  if (!with_imports) return find_in(get(), key);
  Function found;
  walk_imports(get(), [&](ModuleObj* m) {
    found = find_in(m, key);
    return static_cast<bool>(found);
  });
  return found;
}

Function Module::at(std::string_view name) const {
  if (Function f = find(name)) return f;
  std::vector<std::string> names;
  walk_imports(get(), [&](ModuleObj* m) {
    names.insert(names.end(), m->names.begin(), m->names.end());
    return false;
  });
  Error e(ErrorKind::Usage, cat(get()->name, " has no function ", quoted(name)));
  if (!names.empty()) e.row("has", join(names, ", "));
  if (auto near = nearest(name, names); !near.empty()) e.help(cat("did you mean ", near, "?"));
  throw e;
}

void Module::import(const Module& other) const {
  bool cycle = other.get() == get();
  if (get()->is_imported.load(std::memory_order_relaxed)) {
    walk_imports(other.get(), [&](ModuleObj* m) { return cycle = m == get(); });
  }
  if (cycle) {
    throw Error(ErrorKind::Usage, cat("module ", get()->name, " can't import ", other.get()->name,
                                      ", which imports it"));
  }
  get()->imports.push_back(Ref<ModuleObj>(other.get()));
  other.get()->is_imported.store(true, std::memory_order_relaxed);
}

}  // namespace tenon
