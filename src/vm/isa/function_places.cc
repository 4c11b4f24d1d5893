#include "vm/isa/function_places.h"

#include <algorithm>
#include <utility>

#include "object/array.h"
#include "object/cell.h"
#include "support/error.h"
#include "support/poll.h"
#include "vm/isa/host_function.h"
#include "vm/isa/signature_match.h"

namespace tenon::vm {
namespace {

using Kind = SignatureType::Kind;

bool may_hold_functions(const SignatureType& type) {
  return type.kind == Kind::Function || type.kind == Kind::Adt ||
         std::ranges::any_of(type.parts, may_hold_functions);
}

bool is_same(const Any& a, const Any& b) {
  return a.type_index == b.type_index && (!a.is_object() || a.v.object == b.v.object);
}

}  // namespace

std::shared_ptr<FunctionPlaces> FunctionPlaces::of(const std::vector<std::string>& definitions) {
  auto made = std::make_shared<FunctionPlaces>();
  for (const std::string& text : definitions) {
    try {
      AdtSignature definition = parse_adt_signature(text);
      std::string name = definition.name;
      made->definitions_.emplace(std::move(name), std::move(definition));
    } catch (const Error&) {  // damaged
    }
  }
  return made;
}

uint32_t FunctionPlaces::number_of(const SignatureType& type) {
  if (!may_hold_functions(type)) return kNone;
  const auto [at, fresh] =
      numbers_.try_emplace(to_text(type), static_cast<uint32_t>(nodes_.size()));
  if (!fresh) return at->second;
  const size_t parts = parts_of(type);
  if (parts > kMostParts - parts_) {
    at->second = kNone;
  } else {
    parts_ += parts;
    nodes_.push_back({type, {}, type.kind == Kind::Function});
  }
  return at->second;
}

void FunctionPlaces::find_parts(uint32_t node) {
  const SignatureType type = nodes_[node].type;
  std::vector<std::vector<uint32_t>> parts;
  const auto add_list = [&](std::span<const SignatureType> types) {
    std::vector<uint32_t>& list = parts.emplace_back();
    for (const SignatureType& part : types) list.push_back(number_of(part));
  };
  if (type.kind == Kind::Tuple || type.kind == Kind::Array) {
    add_list(type.parts);
  } else if (type.kind == Kind::Function) {
    add_list(std::span(type.parts).last(std::min<size_t>(type.parts.size(), 1)));
  } else if (type.kind == Kind::Adt) {
    const auto definition = definitions_.find(type.name);
    if (definition == definitions_.end()) return;
    for (const AdtSignature::Constructor& constructor : definition->second.constructors) {
      try {
        add_list(field_types(definition->second, constructor, type));
      } catch (const Error&) {  // too large
        return;
      }
    }
  }
  nodes_[node].parts = std::move(parts);
}

uint32_t FunctionPlaces::add(const SignatureType& type) {
  const size_t known = nodes_.size();
  const uint32_t number = number_of(type);
  if (number == kNone) return kNone;
  for (size_t node = known; node < nodes_.size(); ++node) find_parts(static_cast<uint32_t>(node));
  for (bool changed = known != nodes_.size(); changed;) {
    changed = false;
    for (size_t i = nodes_.size(); i-- > known;) {
      Node& node = nodes_[i];
      const auto holds = [&](uint32_t part) {
        return part != kNone && nodes_[part].holds_functions;
      };
      if (node.holds_functions) continue;
      node.holds_functions = std::ranges::any_of(
          node.parts, [&](const auto& list) { return std::ranges::any_of(list, holds); });
      changed |= node.holds_functions;
    }
  }
  return nodes_[number].holds_functions ? number : kNone;
}

// Rebuilds what holds functions of the host, from the inside. Lists may be long, so this doesn't
// recurse; what a value holds several times is rebuilt once.
class FunctionPlaces::Walk {
 public:
  explicit Walk(const FunctionPlaces& places) : places_(places), nodes_(places.nodes_) {}

  Any rebuilt(uint32_t type, const Any& value) {
    Any out = visit(type, value);
    while (!open_.empty()) {
      ticker_.tick();
      const Open& top = open_.back();
      const std::span<const Any> parts = parts_of(top.value);
      if (top.parts.size() == parts.size()) {
        out = close();
        if (!open_.empty()) append(std::move(out));
        continue;
      }
      const std::vector<uint32_t>& types = *part_types(top.type, top.value);
      const size_t at = top.parts.size(), depth = open_.size();
      Any part = visit(types[types.size() == 1 ? 0 : at], parts[at]);
      if (open_.size() == depth) append(std::move(part));
    }
    return out;
  }

 private:
  // A value whose parts are being rebuilt.
  struct Open {
    uint32_t type;
    Any value;
    std::vector<Any> parts;  // so far
    bool changed = false;
  };

  static std::span<const Any> parts_of(const Any& value) {
    if (const auto* cell = value.as_object<CellObj>()) return {cell->begin(), cell->end()};
    if (const auto* array = value.as_object<ArrayObj>()) return {array->begin(), array->end()};
    return {};
  }

  // The types of the value's parts, one for all elements of an array; null if it doesn't fit.
  const std::vector<uint32_t>* part_types(uint32_t type, const Any& value) const {
    const Node& node = nodes_[type];
    if (!fits(node.type, value)) return nullptr;
    const auto* cell = value.as_object<CellObj>();
    const size_t list = cell ? static_cast<size_t>(cell->tag) : 0;
    if (list >= node.parts.size()) return nullptr;
    const bool is_array = node.type.kind == Kind::Array;
    return is_array || node.parts[list].size() == parts_of(value).size() ? &node.parts[list]
                                                                         : nullptr;
  }

  // The value as it is to be, unless its parts are to be rebuilt first: it is then open.
  Any visit(uint32_t type, const Any& value) {
    if (type == kNone || !nodes_[type].holds_functions) return value;
    if (const Node& node = nodes_[type]; node.type.kind == Kind::Function) {
      const bool has_result = !node.parts.empty() && !node.parts[0].empty();
      return has_result
                 ? with_checks(node.type, value, {places_.shared_from_this(), node.parts[0][0]})
                 : value;
    }
    if (!part_types(type, value)) return value;
    const auto done = done_.find({value.v.object, type});
    if (done != done_.end()) return done->second;
    open_.push_back({type, value, {}, false});
    return {};
  }

  void append(Any part) {
    Open& to = open_.back();
    to.changed |= !is_same(part, parts_of(to.value)[to.parts.size()]);
    to.parts.push_back(std::move(part));
  }

  Any close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    Any made = done.value;
    if (done.changed) {
      const auto* cell = done.value.as_object<CellObj>();
      made = cell ? Any(CellObj::of(cell->tag, done.parts)) : Any(Array<Any>(done.parts));
    }
    done_.emplace(std::pair(done.value.v.object, done.type), made);
    return made;
  }

  const FunctionPlaces& places_;
  const std::vector<Node>& nodes_;
  std::vector<Open> open_;
  std::map<std::pair<const Object*, uint32_t>, Any> done_;
  Ticker ticker_;
};

void FunctionPlaces::check_results(uint32_t type, Any* value) const {
  if (type != kNone) *value = Walk(*this).rebuilt(type, *value);
}

}  // namespace tenon::vm
