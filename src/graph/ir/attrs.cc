// Attributes of operators (op.h): their kinds, the rules of an entry, and those of a call, checked
// and completed by its operator's entry.
#include "graph/ir/op.h"

#include <cmath>

#include "graph/ir/builder.h"
#include "graph/ir/name_text.h"
#include "graph/ir/typed_text.h"
#include "library/signatures/signatures.h"

namespace tenon::graph {

const char* kind_name(AttrKind kind) {
  switch (kind) {
    case AttrKind::kInt:
      return "int";
    case AttrKind::kFloat:
      return "float";
    case AttrKind::kBool:
      return "bool";
    case AttrKind::kString:
      return "string";
    case AttrKind::kDType:
      return "element type";
    case AttrKind::kInts:
      return "list of ints";
    case AttrKind::kFloats:
      return "list of floats";
    case AttrKind::kDim:
      return "size";
    case AttrKind::kDims:
      return "list of sizes";
  }
  return "?";
}

namespace {

// `value` in the form that attributes of this kind have, or nothing.
std::optional<Any> coerce(AttrKind kind, const Any& value) {
  auto is_int = [](const Any& a) { return a.type_index == TypeIndex::Int; };
  auto is_number = [&](const Any& a) { return is_int(a) || a.type_index == TypeIndex::Float; };
  auto to_dim = [&](const Any& a) -> std::optional<Dim> {
    if (is_int(a)) return Dim(a.as<int64_t>());
    return a.try_as<Dim>();
  };
  switch (kind) {
    case AttrKind::kInt:
      if (is_int(value)) return value;
      return std::nullopt;
    case AttrKind::kFloat:
      if (is_number(value)) return Any(value.as<double>());
      return std::nullopt;
    case AttrKind::kBool:
      if (value.type_index == TypeIndex::Bool) return value;
      return std::nullopt;
    case AttrKind::kString:
      if (String::accepts(value)) return value;
      return std::nullopt;
    case AttrKind::kDType:
      if (value.type_index == TypeIndex::DataType) return value;
      return std::nullopt;
    case AttrKind::kDim:
      if (auto d = to_dim(value)) return Any(*d);
      return std::nullopt;
    case AttrKind::kInts:
    case AttrKind::kFloats:
    case AttrKind::kDims: {
      if (value.is_none() || !value.is<Array<Any>>()) return std::nullopt;
      Array<Any> list = value.as<Array<Any>>();
      Array<double> floats;
      Array<Dim> dims;
      for (const Any& item : list) {
        if (kind == AttrKind::kInts) {
          if (!is_int(item)) return std::nullopt;
        } else if (kind == AttrKind::kFloats) {
          if (!is_number(item)) return std::nullopt;
          floats.push_back(item.as<double>());
        } else {
          auto d = to_dim(item);
          if (!d) return std::nullopt;
          dims.push_back(*d);
        }
      }
      if (kind == AttrKind::kInts) return value;
      if (kind == AttrKind::kFloats) return Any(floats);
      return Any(dims);
    }
  }
  return std::nullopt;
}

}  // namespace

Attrs complete_attrs(const Operator& op, const Attrs& given) {
  Attrs out;
  size_t used = 0;
  for (const AttrSpec& spec : op.attrs) {
    const Any* value = given.find(spec.name);
    if (!value) {
      if (!spec.default_text) {
        throw Error(ErrorKind::Usage,
                    cat("operator '", op.name, "' needs the attribute '", spec.name, "'"))
            .expected(cat(spec.name, "=", kind_name(spec.kind)), spec.meaning);
      }
      out.set(spec.name, spec.default_value);
      continue;
    }
    ++used;
    bool may_be_absent = spec.default_text && spec.default_value.is_none();
    std::optional<Any> coerced =
        value->is_none() && may_be_absent ? *value : coerce(spec.kind, *value);
    if (!coerced) {
      throw Error(ErrorKind::Usage,
                  cat("operator '", op.name, "': attribute '", spec.name, "' has the wrong kind"))
          .found(type_name(value->type_index))
          .expected(kind_name(spec.kind));
    }
    out.set(spec.name, *coerced);
  }
  if (used == given.size()) return out;
  for (const auto& [name, value] : given) {
    if (!out.contains(name)) throw unknown_attribute(op, name);
  }
  return out;
}

Error unknown_attribute(const Operator& op, std::string_view name) {
  std::vector<std::string> names;
  for (const AttrSpec& spec : op.attrs) names.push_back(spec.name);
  Error e(ErrorKind::Usage, cat("operator '", op.name, "' has no attribute '", name, "'"));
  e.expected(names.empty() ? "no attributes" : tenon::join(names, ", "));
  suggest(&e, name, names);
  return e;
}

void OperatorTable::add(Operator op) {
  TENON_ASSERT(op.name && *op.name && !find(op.name), "operator '", op.name,
               "' is already defined");
  TENON_ASSERT(op.infer, op.name, " has no type rule");
  TENON_ASSERT((op.lower != nullptr) + (op.expand != nullptr) + (op.packed != nullptr) == 1,
               op.name, " must say in exactly one way what it computes");
  for (size_t i = 0; i + 1 < op.operands.size(); ++i) {
    TENON_ASSERT(op.operands[i].arity != OperandSpec::kVariadic, op.name,
                 ": only the last operand may be variadic");
  }
  if (op.packed) {
    const library::Signature* signature = library::find_signature(op.packed);
    TENON_ASSERT(signature && signature->operands.size() == op.operands.size() &&
                     signature->attributes.size() == op.attrs.size(),
                 op.name, " and '", op.packed, "' have other operands or attributes");
    for (const AttrSpec& spec : op.attrs) {
      TENON_ASSERT(signature->position(spec.name) != signature->arity(), "'", op.packed,
                   "' has no attribute '", spec.name, "', as ", op.name, " does");
    }
  }
  for (AttrSpec& spec : op.attrs) {
    if (!spec.default_text || std::string_view(spec.default_text) == "()") continue;
    const auto value = coerce(spec.kind, parse_attribute(spec.kind, spec.default_text));
    TENON_ASSERT(value, op.name, ": the default of ", spec.name, " is not of kind ",
                 kind_name(spec.kind), ": ", spec.default_text);
    spec.default_value = *value;
  }
  index_.set(op.name, static_cast<int64_t>(entries_.size()));
  entries_.push_back(std::make_unique<Operator>(std::move(op)));
}

// ---- helpers to build calls ----

Attrs attrs(std::initializer_list<std::pair<const char*, Any>> list) {
  Attrs out;
  for (const auto& [name, value] : list) out.set(name, value);
  return out;
}

Any attr_ints(const std::vector<int64_t>& values) {
  return Array<int64_t>(values);
}

Any attr_floats(const std::vector<double>& values) {
  return Array<double>(values);
}

Any attr_dims(const std::vector<Dim>& dims) {
  return Array<Dim>(dims);
}

}  // namespace tenon::graph
