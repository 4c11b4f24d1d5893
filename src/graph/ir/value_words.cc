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
  kTensor,    // of one element, which can be a scalar
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
      {"array_length", kArraySize, {Kind::kArray}, Kind::kInteger},
      {"array_get", kArrayGet, {Kind::kArray, Kind::kInteger}, Kind::kElement},
      {"array_set", kArraySet, {Kind::kArray, Kind::kInteger, Kind::kElement}, Kind::kArray},
      {"array_push", kArrayAppend, {Kind::kArray, Kind::kElement}, Kind::kArray},
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
      return "a tensor of one real number or boolean";
    default:
      return "a scalar";
  }
}

bool has_kind(const TypeRef& type, Kind kind) {
  if (kind == Kind::kArray) return type.is<ArrayType>();
  if (kind == Kind::kScalar) return type.is<ScalarType>();
  const auto* tensor = type_as<TensorType>(type);
  if (!tensor || !is_scalar_dtype(tensor->dtype)) return false;
  return !tensor->dims_known || !proves_differ(product(tensor->dims.to_vector()), 1);
}

// Whether a value of the one type may have the other at run time. A type variable may be any type.
bool may_be(const TypeRef& a, const TypeRef& b, const Variances& variances) {
  const auto any = [](std::string_view) { return true; };
  if (mentions_type_var(a, any) || mentions_type_var(b, any)) return true;
  std::vector<std::pair<Dim, Dim>> unproved;
  return fits(a, b, variances, &unproved) || fits(b, a, variances, &unproved);
}

// Checks the operands, of which an absent one is anything; `fits` says whether a type may stand in
// the place of another. Returns what decides the kinds: `first`, or the first operand's type if
// `first` is null. `function` names the call in errors.
TypeRef check_operands(const Word& word, std::string_view function,
                       const std::vector<Operand>& args, TypeRef first,
                       const std::function<bool(const TypeRef&, const TypeRef&)>& fits) {
  for (size_t i = 0; i < args.size(); ++i) {
    if (!args[i]) continue;
    const TypeRef type = without_known_values(type_of(args[i]));
    const Kind kind = word.operands[i];
    if (!first && has_kind(type, kind)) first = type;
    // Null if any type of the kind will do.
    const TypeRef needed = first || kind == Kind::kString ? type_of_kind(kind, first) : nullptr;
    if (needed ? fits(type, needed) : has_kind(type, kind)) continue;
    throw Error(ErrorKind::Usage, cat(function, ": operand ", i, " has the wrong type"))
        .found(to_text(type))
        .expected(needed ? to_text(needed) : wanted(kind));
  }
  return first;
}

}  // namespace

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

Ref<const Call> value_call(std::string_view word, const std::vector<Operand>& args,
                           const Variances& variances) {
  const Word* found = find_word(word);
  TENON_ASSERT(found, "no function on values is called ", word);
  if (args.size() != found->operands.size()) {
    throw Error(ErrorKind::Usage, cat(word, " has the wrong number of operands"))
        .found(cat(args.size()))
        .expected(cat(found->operands.size()));
  }
  for (size_t i = 0; i < args.size(); ++i) {
    if (!args[i]) throw Error(ErrorKind::Usage, cat(word, ": operand ", i, " is absent"));
  }
  const TypeRef first =
      check_operands(*found, word, args, nullptr, [&](const TypeRef& type, const TypeRef& needed) {
        return is_subtype(type, needed, variances);
      });
  return make_call(CalleeKind::kPacked, found->function, args, {},
                   type_of_kind(found->result, first));
}

void check_value_call(const Call& call, const Variances& variances) {
  const auto word = std::ranges::find(words(), call.callee.view(), &Word::function);
  if (word == words().end()) return;
  // A new array may hold more than the operands do: an element of another size, for one.
  TypeRef first;
  if (word->result == Kind::kArray && call.result_type.is<ArrayType>()) first = call.result_type;
  first = check_operands(
      *word, cat("'", call.callee, "'"), call.args.to_vector(), first,
      [&](const TypeRef& type, const TypeRef& needed) { return may_be(type, needed, variances); });
  const TypeRef result = type_of_kind(word->result, first);
  if (!may_be(result, call.result_type, variances)) {
    throw Error(ErrorKind::Usage, cat("'", call.callee, "': the result has the wrong type"))
        .found(to_text(call.result_type))
        .expected(to_text(result));
  }
}

Ref<const Call> empty_array(const TypeRef& element) {
  return make_call(CalleeKind::kPacked, kArrayEmpty, {}, {}, array_type(element));
}

}  // namespace tenon::graph
