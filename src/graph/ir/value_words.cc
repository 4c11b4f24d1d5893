#include "graph/ir/value_words.h"

#include <algorithm>

#include "graph/ir/intrinsic.h"
#include "support/text.h"

namespace tenon::graph {

namespace {

// What an operand has to be, or what the result is.
enum class Kind : uint8_t {
  kArray,    // the first operand's type
  kElement,  // of the first operand
  kInteger,
  kBoolean,
  kString,
  kTensor,    // of one element
  kScalar,    // of any dtype
  kScalarOf,  // of the first operand's dtype
  kTensorOf,  // of rank 0 and the first operand's dtype
};

struct Word {
  std::string_view word, function;
  std::vector<Kind> operands;
  Kind result;
};

const std::vector<Word>& words() {
  static const std::vector<Word> kWords = {
      {"array_length", "vm.array_size", {Kind::kArray}, Kind::kInteger},
      {"array_get", "vm.array_get", {Kind::kArray, Kind::kInteger}, Kind::kElement},
      {"array_set", "vm.array_set", {Kind::kArray, Kind::kInteger, Kind::kElement}, Kind::kArray},
      {"array_push", "vm.array_append", {Kind::kArray, Kind::kElement}, Kind::kArray},
      {"array_slice",
       "vm.array_slice",
       {Kind::kArray, Kind::kInteger, Kind::kInteger},
       Kind::kArray},
      {"array_concat", "vm.array_concat", {Kind::kArray, Kind::kArray}, Kind::kArray},
      {"string_equal", "vm.string_equal", {Kind::kString, Kind::kString}, Kind::kBoolean},
      {"string_concat", "vm.string_concat", {Kind::kString, Kind::kString}, Kind::kString},
      {"to_scalar", kMemoryElement, {Kind::kTensor}, Kind::kScalarOf},
      {"to_tensor", kMemoryOfElement, {Kind::kScalar}, Kind::kTensorOf},
  };
  return kWords;
}

const Word* find_word(std::string_view word) {
  const auto found = std::ranges::find(words(), word, &Word::word);
  return found == words().end() ? nullptr : &*found;
}

DataType dtype_of(const TypeRef& type) {
  if (const auto* tensor = type_as<TensorType>(type)) return tensor->dtype;
  return type_as<ScalarType>(type)->dtype;
}

// The type that the kind stands for; null for one that several types have. `first` is the first
// operand's type.
TypeRef type_of_kind(Kind kind, const TypeRef& first) {
  switch (kind) {
    case Kind::kArray:
      return first;
    case Kind::kElement:
      return type_as<ArrayType>(first)->element;
    case Kind::kInteger:
      return scalar_type(i64);
    case Kind::kBoolean:
      return scalar_type(boolean);
    case Kind::kString:
      return string_type();
    case Kind::kScalarOf:
      return scalar_type(dtype_of(first));
    case Kind::kTensorOf:
      return tensor_type(dtype_of(first), {});
    case Kind::kTensor:
    case Kind::kScalar:
      break;
  }
  return nullptr;
}

// What a first operand must be.
const char* wanted(Kind kind) {
  switch (kind) {
    case Kind::kArray:
      return "an array";
    case Kind::kTensor:
      return "a tensor of one element";
    default:
      return "a scalar";
  }
}

bool has_kind(const TypeRef& type, Kind kind) {
  if (kind == Kind::kArray) return type.is<ArrayType>();
  if (kind == Kind::kScalar) return type.is<ScalarType>();
  const auto* tensor = type_as<TensorType>(type);
  if (!tensor) return false;
  return !tensor->dims_known || !proves_differ(product(tensor->dims.to_vector()), 1);
}

}  // namespace

std::vector<std::string_view> value_words() {
  std::vector<std::string_view> out;
  for (const Word& w : words()) out.push_back(w.word);
  return out;
}

bool is_value_word(std::string_view word) {
  return find_word(word) != nullptr;
}

TypeRef expected_of_value_word(std::string_view word, const std::vector<Operand>& args) {
  const Word* found = find_word(word);
  if (!found || args.empty() || args.size() >= found->operands.size()) return nullptr;
  const TypeRef first = args[0] ? type_of(args[0]) : nullptr;
  if (!first || !has_kind(first, found->operands[0])) return nullptr;
  return type_of_kind(found->operands[args.size()], first);
}

Ref<const Call> value_call(std::string_view word, const std::vector<Operand>& args) {
  const Word* found = find_word(word);
  TENON_ASSERT(found, "no function on values is called ", word);
  if (args.size() != found->operands.size()) {
    throw Error(ErrorKind::Usage, cat(word, " has the wrong number of operands"))
        .found(cat(args.size()))
        .expected(cat(found->operands.size()));
  }
  TypeRef first;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!args[i]) throw Error(ErrorKind::Usage, cat(word, ": operand ", i, " is absent"));
    const TypeRef type = without_known_values(type_of(args[i]));
    if (i == 0) first = type;
    const Kind kind = found->operands[i];
    const TypeRef needed = i == 0 && kind != Kind::kString ? nullptr : type_of_kind(kind, first);
    const bool good = needed ? is_subtype(type, needed) : has_kind(type, kind);
    if (good) continue;
    throw Error(ErrorKind::Usage, cat(word, ": operand ", i, " has the wrong type"))
        .found(to_text(type))
        .expected(needed ? to_text(needed) : wanted(kind));
  }
  return make_call(CalleeKind::kPacked, found->function, args, {},
                   type_of_kind(found->result, first));
}

Ref<const Call> empty_array(const TypeRef& element) {
  return make_call(CalleeKind::kPacked, "vm.array_empty", {}, {}, array_type(element));
}

}  // namespace tenon::graph
