#include "value_type.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "support/text.h"

namespace tenon::random_programs {
namespace {

std::string list_of(const std::vector<Type>& types) {
  std::vector<std::string> out;
  for (const Type& type : types) out.push_back(text_of(type));
  return join(out, ", ");
}

Type with(const Type& type, const std::vector<Type>& args) {
  if (type.kind == Type::Kind::Parameter) return args[type.name == "T" ? 0 : 1];
  Type out = type;
  for (Type& part : out.parts) part = with(part, args);
  return out;
}

bool is_symbol(const std::string& dim) {
  return dim[0] > '9';
}

// "n*2" as "n" and 2; the factor of a symbol is 1.
struct Multiple {
  std::string symbol;
  int64_t factor = 1;

  explicit Multiple(const std::string& dim) : symbol(dim.substr(0, dim.find('*'))) {
    if (symbol.size() < dim.size()) factor = std::stoll(dim.substr(symbol.size() + 1));
  }
};

// The dimension with the symbol's size; nullopt if `sizes` has none.
std::optional<std::string> with_size(const std::string& dim, const Sizes& sizes) {
  if (!is_symbol(dim)) return dim;
  const Multiple of(dim);
  const auto found = sizes.find(of.symbol);
  if (found == sizes.end()) return std::nullopt;
  if (!is_symbol(found->second)) return cat(std::stoll(found->second) * of.factor);
  const Multiple by(found->second);
  const int64_t factor = by.factor * of.factor;
  return factor == 1 ? by.symbol : cat(by.symbol, "*", factor);
}

}  // namespace

bool Type::has_symbols() const {
  return std::ranges::any_of(dims, is_symbol) || std::ranges::any_of(parts, &Type::has_symbols);
}

Type with_sizes(const Type& type, const Sizes& sizes) {
  Type out = type;
  for (std::string& dim : out.dims) dim = with_size(dim, sizes).value_or(dim);
  for (Type& part : out.parts) part = with_sizes(part, sizes);
  return out;
}

bool find_sizes(const Type& type, const Type& wanted, Sizes* sizes) {
  if (type.kind != wanted.kind || type.dtype != wanted.dtype || type.name != wanted.name ||
      type.parts.size() != wanted.parts.size() || type.dims.size() != wanted.dims.size())
    return false;
  for (size_t i = 0; i < type.dims.size(); ++i) {
    const std::string& dim = type.dims[i];
    if (is_symbol(dim) && Multiple(dim).factor == 1) sizes->try_emplace(dim, wanted.dims[i]);
    if (with_size(dim, *sizes) != wanted.dims[i]) return false;
  }
  for (size_t i = 0; i < type.parts.size(); ++i) {
    if (!find_sizes(type.parts[i], wanted.parts[i], sizes)) return false;
  }
  return true;
}

Type Definition::of_own_parameters() const {
  std::vector<Type> own;
  for (size_t i = 0; i < parameters; ++i) own.push_back(parameter(i));
  return Type::data(name, own);
}

std::vector<Constructor> Definition::instance(const std::vector<Type>& args) const {
  std::vector<Constructor> out = constructors;
  for (Constructor& c : out) {
    for (Type& field : c.fields) field = with(field, args);
  }
  return out;
}

std::string shape_text(const Type& tensor) {
  return cat("[", join(tensor.dims, ", "), "]");
}

std::string unsized_text(const Type& tensor) {
  return cat("tensor[rank=", tensor.dims.size(), "; ", to_text(tensor.dtype), "]");
}

std::string text_of(const Type& type) {
  using Kind = Type::Kind;
  switch (type.kind) {
    case Kind::Scalar:
      return to_text(type.dtype);
    case Kind::String:
      return "string";
    case Kind::Tensor:
      return cat("tensor[", join(type.dims, ", "), type.dims.empty() ? "" : "; ",
                 to_text(type.dtype), "]");
    case Kind::Tuple:
      return cat("(", list_of(type.parts), type.parts.size() == 1 ? ",)" : ")");
    case Kind::Option:
      return cat("option[", list_of(type.parts), "]");
    case Kind::List:
      return cat("list[", list_of(type.parts), "]");
    case Kind::Array:
      return cat("array[", list_of(type.parts), "]");
    case Kind::Function: {
      const std::vector<Type> params(type.parts.begin(), type.parts.end() - 1);
      return cat("fn(", list_of(params), ") -> ", text_of(type.parts.back()));
    }
    case Kind::Data:
      return type.parts.empty() ? type.name : cat(type.name, "[", list_of(type.parts), "]");
    case Kind::Parameter:
      return type.name;
  }
  return "";
}

std::string text_of(const Definition& type) {
  std::vector<std::string> constructors;
  for (const Constructor& c : type.constructors) {
    constructors.push_back(c.name + (c.fields.empty() ? "" : cat("(", list_of(c.fields), ")")));
  }
  return cat("type ", text_of(type.of_own_parameters()), " { ", join(constructors, ", "), " }\n");
}

}  // namespace tenon::random_programs
