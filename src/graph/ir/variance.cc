// The least relations that satisfy all fields, found by a worklist over the parts of their types:
// each part has the relations that must hold of it, which grow from the fields inwards, and from a
// parameter into the arguments of all that mention its data type.

#include "graph/ir/variance.h"

#include <algorithm>

namespace tenon::graph {

Relations reversed(Relations r) {
  return static_cast<Relations>(((r & kFits) ? kFitsBack : 0) | ((r & kFitsBack) ? kFits : 0) |
                                ((r & kPasses) ? kPassesBack : 0) |
                                ((r & kPassesBack) ? kPasses : 0));
}

namespace {

constexpr Relations kInvariant = kFits | kFitsBack;

// Only tensors and tuples of them have sizes that the callee checks.
Relations strict(Relations r) {
  return static_cast<Relations>(((r & (kFits | kPasses)) ? kFits : 0) |
                                ((r & (kFitsBack | kPassesBack)) ? kFitsBack : 0));
}

// The relations of the parts of a thing that is itself so related.
Relations composed(Relations outer, Relations inner) {
  return static_cast<Relations>(((outer & kFits) ? inner : 0) |
                                ((outer & kFitsBack) ? reversed(inner) : 0));
}

class Finder {
 public:
  explicit Finder(const Map<String, Ref<const AdtDefinition>>& types) {
    for (const auto* known : {&prelude(), &types}) {
      for (const auto& [name, definition] : *known) {
        std::vector<uint32_t>& params = params_[name.str()];
        params.clear();
        for (size_t i = 0; i < definition->type_params.size(); ++i) params.push_back(add());
      }
    }
    for (const auto* known : {&prelude(), &types}) {
      for (const auto& [name, definition] : *known) {
        own_.clear();
        const std::vector<uint32_t>& params = params_[name.str()];
        if (params.size() != definition->type_params.size()) continue;  // another of this name
        for (size_t i = 0; i < params.size(); ++i) {
          own_.emplace(definition->type_params[i].view(), params[i]);
        }
        for (const auto& constructor : definition->constructors) {
          for (const TypeRef& field : constructor->fields) grow(part(field), kFits);
        }
      }
    }
    while (!changed_.empty()) {
      const uint32_t next = changed_.back();
      changed_.pop_back();
      spread(next);
    }
  }

  std::unordered_map<std::string, std::vector<Relations>> found() const {
    std::unordered_map<std::string, std::vector<Relations>> out;
    for (const auto& [name, params] : params_) {
      for (const uint32_t param : params) out[name].push_back(parts_[param].relations);
    }
    return out;
  }

 private:
  struct Part {
    Relations relations = 0;
    TypeRef type;                 // null: a parameter of a data type
    std::vector<uint32_t> parts;  // of a variable: its parameter
    // Of a parameter: the types that give an argument for it, and that argument's place.
    std::vector<std::pair<uint32_t, size_t>> mentions;
  };

  uint32_t add(const TypeRef& type = nullptr) {
    parts_.push_back({0, type, {}, {}});
    return static_cast<uint32_t>(parts_.size() - 1);
  }

  uint32_t part(const TypeRef& type) {
    const uint32_t id = add(type);
    std::vector<uint32_t> inner;
    const auto all = [&](const Array<TypeRef>& types) {
      for (const TypeRef& t : types) inner.push_back(part(t));
    };
    if (const auto* variable = type_as<TypeVar>(type)) {
      const auto own = own_.find(variable->name.view());
      if (own != own_.end()) inner.push_back(own->second);
    } else if (const auto* tuple = type_as<TupleType>(type)) {
      all(tuple->fields);
    } else if (const auto* array = type_as<ArrayType>(type)) {
      inner.push_back(part(array->element));
    } else if (const auto* function = type_as<FunctionType>(type)) {
      all(function->params);
      inner.push_back(part(function->result));
    } else if (const auto* adt = type_as<AdtType>(type)) {
      all(adt->args);
      const auto known = params_.find(adt->name.str());
      if (known != params_.end()) {
        for (size_t i = 0; i < std::min(inner.size(), known->second.size()); ++i) {
          parts_[known->second[i]].mentions.emplace_back(id, i);
        }
      }
    }
    parts_[id].parts = std::move(inner);
    return id;
  }

  void grow(uint32_t id, Relations more) {
    Part& part = parts_[id];
    if ((part.relations | more) == part.relations) return;
    part.relations |= more;
    changed_.push_back(id);
  }

  void spread(uint32_t id) {
    for (const auto& [mention, place] : parts_[id].mentions) spread(mention, place);
    for (size_t i = 0; i < parts_[id].parts.size(); ++i) spread(id, i);
  }

  // Into the part of that number.
  void spread(uint32_t id, size_t i) {
    const Part& part = parts_[id];
    const Relations outer = strict(part.relations);
    Relations inner = part.relations;  // of a tuple's fields, and of a variable's parameter
    if (part.type.is<ArrayType>()) {
      inner = outer;
    } else if (const auto* function = type_as<FunctionType>(part.type)) {
      inner = composed(outer, i < function->params.size() ? kPassesBack : kFits);
    } else if (const auto* adt = type_as<AdtType>(part.type)) {
      const auto known = params_.find(adt->name.str());
      const bool is_known = known != params_.end() && i < known->second.size();
      inner = composed(outer, is_known ? parts_[known->second[i]].relations : kInvariant);
    }
    grow(part.parts[i], inner);
  }

  std::unordered_map<std::string, std::vector<uint32_t>> params_;  // by data type
  std::unordered_map<std::string_view, uint32_t> own_;  // of the type whose fields are added
  std::vector<Part> parts_;
  std::vector<uint32_t> changed_;
};

}  // namespace

const Variances& Variances::of_prelude() {
  static const Variances found{Map<String, Ref<const AdtDefinition>>()};
  return found;
}

Variances::Variances(const Map<String, Ref<const AdtDefinition>>& types)
    : by_type_(Finder(types).found()) {}

Relations Variances::of(std::string_view type, size_t parameter) const {
  const auto known = by_type_.find(std::string(type));
  if (known == by_type_.end() || parameter >= known->second.size()) return kInvariant;
  return known->second[parameter];
}

}  // namespace tenon::graph
