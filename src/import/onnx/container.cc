#include "import/onnx/container.h"

#include <algorithm>

#include "graph/ir/packed_call.h"
#include "graph/ir/value_words.h"

namespace tenon::onnx {

namespace {

using graph::AdtType;
using graph::ArrayType;
using graph::Call;
using graph::CalleeKind;
using graph::Construct;
using graph::PatternRef;
using graph::TensorType;
using graph::TypeRef;
using graph::TypeVar;
using graph::VarRef;

constexpr std::string_view kOption = "option", kNone = "None", kSome = "Some", kMap = "map",
                           kMapOf = "Map";

// Longer sequences are not looked into.
constexpr size_t kMostKnown = 64;

bool is_option(const TypeRef& type) {
  const auto* adt = graph::type_as<AdtType>(type);
  return adt != nullptr && adt->name == kOption;
}

bool is_map_type(const TypeRef& type) {
  const auto* adt = graph::type_as<AdtType>(type);
  return adt != nullptr && adt->name == kMap;
}

// A type variable's name says what kind of value it stands for: "f32" is a tensor, "[f32" a
// sequence, "?f32" an optional value, "{i64,f32" a map, "" any value.
constexpr char kOfSequence = '[', kOfOption = '?', kOfMap = '{';

std::string kind_text(const TypeRef& type) {
  if (const auto* t = graph::type_as<TensorType>(type)) return to_text(t->dtype);
  if (const auto* v = graph::type_as<TypeVar>(type)) return v->name.str();
  if (is_map_type(type)) {
    const auto& parts = graph::type_as<AdtType>(type)->args;
    return cat(kOfMap, kind_text(parts[0]), ',', kind_text(parts[1]));
  }
  return cat(is_option(type) ? kOfOption : kOfSequence, kind_text(held_type(type)));
}

TypeRef open(const TypeRef& type) {
  return graph::type_var(kind_text(type));
}

// The least precise type for which a variable stands, itself open.
TypeRef of_kind(std::string_view kind) {
  if (kind.starts_with(kOfSequence)) return graph::array_type(graph::type_var(kind.substr(1)));
  if (kind.starts_with(kOfOption)) return option_type(graph::type_var(kind.substr(1)));
  if (kind.starts_with(kOfMap)) {
    const size_t comma = kind.find(',');
    return map_type(*parse_dtype(kind.substr(1, comma - 1)), *parse_dtype(kind.substr(comma + 1)));
  }
  const auto dtype = parse_dtype(kind);
  TENON_ASSERT(dtype, "a type variable '", kind, "' of no kind");
  return graph::tensor_type_unknown(*dtype);
}

const Call* call_of(const NodeContext& cx, const Operand& x, std::string_view packed) {
  return graph::as_packed(cx.b.definition_of(x), packed);
}

const Construct* constructed(const NodeContext& cx, const Operand& x) {
  return cx.b.definition_of(x).as<Construct>();
}

// The type and its parts with `change` applied to type variables.
TypeRef with_variables(const TypeRef& type, TypeRef (*change)(const TypeVar&)) {
  if (const auto* v = graph::type_as<TypeVar>(type)) return change(*v);
  if (type.is<ArrayType>()) return graph::array_type(with_variables(held_type(type), change));
  if (is_option(type)) return option_type(with_variables(held_type(type), change));
  return type;
}

Operand construct(const NodeContext& cx, std::string_view constructor,
                  const Array<TypeRef>& type_args, const Operands& fields) {
  auto value = make<Construct>();
  value->constructor = constructor;
  value->type_args = type_args;
  value->fields = Array<Operand>(fields);
  return cx.b.bind(value);
}

PatternRef variable(const VarRef& var) {
  auto out = make<graph::Pattern>();
  out->kind = graph::PatternKind::kVariable;
  out->var = var;
  return out;
}

// match x { None => { none() } Some(%held) => { some(%held) } }
Operand match_option(const NodeContext& cx, const Operand& x, const std::function<Operand()>& none,
                     const std::function<Operand(const Operand&)>& some) {
  auto match = make<graph::Match>();
  match->value = x;
  auto absent = make<graph::Pattern>();
  absent->kind = graph::PatternKind::kConstructor;
  absent->constructor = kNone;
  match->patterns.push_back(absent);
  cx.b.begin_block();
  match->arms.push_back(cx.b.finish_block(none()));
  cx.b.begin_block();
  const VarRef held = cx.b.block_var("held", held_type(graph::type_of(x)));
  auto present = make<graph::Pattern>();
  present->kind = graph::PatternKind::kConstructor;
  present->constructor = kSome;
  present->fields.push_back(variable(held));
  match->patterns.push_back(present);
  match->arms.push_back(cx.b.finish_block(some(held)));
  return cx.b.bind(match);
}

}  // namespace

bool is_imaginary(const Operand& x) {
  return x && graph::type_of(x).is<TypeVar>();
}

Operand imaginary(graph::Builder& builder) {
  return builder.block_var("none", graph::type_var(""));
}

// ---- types ----

bool is_sequence(const Operand& x) {
  return graph::type_of(x).is<ArrayType>();
}

bool is_optional(const Operand& x) {
  return is_option(graph::type_of(x));
}

bool holds_others(const TypeRef& type) {
  return type.is<ArrayType>() || is_option(type);
}

TypeRef held_type(const TypeRef& type) {
  if (const auto* array = graph::type_as<ArrayType>(type)) return array->element;
  TENON_ASSERT(is_option(type), "a ", to_text(type), " holds nothing");
  return graph::type_as<AdtType>(type)->args[0];
}

TypeRef option_type(const TypeRef& held) {
  return graph::adt_type(kOption, {held});
}

TypeRef open_type(const NodeContext& cx, const Operand& x) {
  const TypeRef type = graph::type_of(x);
  if (call_of(cx, x, graph::kArrayEmpty)) return graph::array_type(open(held_type(type)));
  if (const Construct* made = constructed(cx, x)) {
    return option_type(made->fields.empty() ? open(held_type(type))
                                            : open_type(cx, made->fields[0]));
  }
  return graph::without_known_values(type);
}

TypeRef join_open(const NodeContext& cx, const TypeRef& a, const TypeRef& b) {
  if (a.is<TypeVar>()) return b;
  if (b.is<TypeVar>()) return a;
  if (is_option(a) || is_option(b)) {
    const TypeRef held =
        join_open(cx, is_option(a) ? held_type(a) : a, is_option(b) ? held_type(b) : b);
    return held ? option_type(held) : nullptr;
  }
  if (a.is<ArrayType>() && b.is<ArrayType>()) {
    const TypeRef element = join_open(cx, held_type(a), held_type(b));
    return element ? graph::array_type(element) : nullptr;
  }
  return graph::join(a, b, cx.b.signatures().variances());
}

TypeRef closed(const TypeRef& type) {
  return with_variables(
      type, +[](const TypeVar& v) {
        return v.name.empty() ? graph::type_var("") : closed(of_kind(v.name.view()));
      });
}

TypeRef in_scope(const NodeContext& cx, const TypeRef& type) {
  return graph::erase_symbols(type, [&](std::string_view name) { return cx.b.in_scope(name); });
}

Operand as_type(const NodeContext& cx, const Operand& x, const TypeRef& type) {
  const TypeRef to = closed(type), from = graph::type_of(x);
  if (graph::is_subtype(from, to, cx.b.signatures().variances())) return x;
  if (graph::mentions_type_var(from, [](std::string_view) { return true; })) {
    return cx.b.block_var("none", to);
  }
  if (call_of(cx, x, graph::kArrayEmpty)) return empty_sequence(cx, held_type(to));
  if (is_option(to) && !is_option(from)) {
    return construct(cx, kSome, {held_type(to)}, {as_type(cx, x, held_type(to))});
  }
  if (const Construct* made = constructed(cx, x)) {
    if (made->fields.empty()) return none(cx, held_type(to));
    return construct(cx, kSome, {held_type(to)}, {as_type(cx, made->fields[0], held_type(to))});
  }
  return x;  // a tensor that is matched, or the caller's error
}

// ---- sequences ----

Operand empty_sequence(const NodeContext& cx, const TypeRef& element) {
  return cx.b.bind(graph::empty_array(element));
}

Operand sequence_of(const NodeContext& cx, const Operands& elements) {
  TypeRef element = open_type(cx, elements.at(0));
  for (const Operand& x : elements) {
    const TypeRef joined = join_open(cx, element, open_type(cx, x));
    if (!joined) {
      cx.invalid(cat("an element of type ", to_text(graph::type_of(x)), " in a sequence of ",
                     to_text(element)),
                 "elements of one type");
    }
    element = joined;
  }
  Operand out = empty_sequence(cx, element);
  for (const Operand& x : elements) out = word(cx, "array_push", {out, x});
  return out;
}

Operand with_last(const NodeContext& cx, const Operand& sequence, const Operand& element) {
  if (call_of(cx, sequence, graph::kArrayEmpty)) {
    const TypeRef held = held_type(graph::type_of(sequence));
    if (kind_text(held) == kind_text(graph::type_of(element))) return sequence_of(cx, {element});
  }
  const TypeRef type = graph::type_of(sequence);
  const TypeRef held = join_open(cx, held_type(type), open_type(cx, element));
  if (!held) {
    cx.invalid(cat("an element of type ", to_text(graph::type_of(element)), " for a sequence of ",
                   to_text(held_type(type))),
               "an element of the sequence's type");
  }
  return cx.b.call_packed(graph::kArrayAppend, {sequence, element}, graph::array_type(held));
}

std::optional<Operands> known_elements(const NodeContext& cx, const Operand& sequence) {
  Operands out;
  Operand rest = sequence;
  while (const Call* push = call_of(cx, rest, graph::kArrayAppend)) {
    if (out.size() == kMostKnown) return std::nullopt;
    out.push_back(push->args[1]);
    rest = push->args[0];
  }
  if (!call_of(cx, rest, graph::kArrayEmpty)) return std::nullopt;
  std::ranges::reverse(out);
  return out;
}

Operand length_of(const NodeContext& cx, const Operand& sequence) {
  return word(cx, "array_length", {sequence});
}

Operand element_at(const NodeContext& cx, const Operand& sequence, const Operand& index) {
  const TypeRef element = held_type(graph::type_of(sequence));
  if (element.is<TypeVar>()) return imaginary(cx.b);
  return word(cx, "array_get", {sequence, index});
}

Operand sequence_by_loop(const NodeContext& cx, const TypeRef& element, const Operand& count,
                         const std::vector<std::string>& names, const std::vector<TypeRef>& types,
                         const Operands& init,
                         const std::function<Operands(const Operands&)>& make) {
  std::vector<std::string> all = {"i", "pieces"};
  std::vector<TypeRef> all_types = {graph::scalar_type(i64), graph::array_type(element)};
  Operands first = {graph::constant_int(0), empty_sequence(cx, element)};
  all.insert(all.end(), names.begin(), names.end());
  all_types.insert(all_types.end(), types.begin(), types.end());
  first.insert(first.end(), init.begin(), init.end());
  return cx.b.loop(
      all, all_types, first,
      [&](const Operands& vars) {
        return cx.op("less", {vars[0], count});
      },
      [&](const Operands& vars) {
        Operands made = make(vars);  // the element, and the next values of the other variables
        Operands next = {cx.add(vars[0], graph::constant_int(1)),
                         word(cx, "array_push", {vars[1], made[0]})};
        next.insert(next.end(), made.begin() + 1, made.end());
        return cx.b.tuple(next);
      });
}

Operand word(const NodeContext& cx, std::string_view name, const Operands& args) {
  return cx.b.bind(graph::value_call(name, args, cx.b.signatures().variances()));
}

Operand size_scalar(const NodeContext& cx, const Dim& size) {
  return cx.b.bind(graph::make_size(size));
}

// ---- optional values ----

Operand some(const NodeContext& cx, const Operand& x) {
  return construct(cx, kSome, {graph::without_known_values(graph::type_of(x))}, {x});
}

Operand none(const NodeContext& cx, const TypeRef& held) {
  return construct(cx, kNone, {held}, {});
}

Operand has_value(const NodeContext& cx, const Operand& x) {
  const auto truth = [&](bool is) { return cx.scalar(boolean, is ? 1 : 0); };
  if (!is_optional(x)) return truth(true);
  if (const Construct* made = constructed(cx, x)) return truth(!made->fields.empty());
  return match_option(
      cx, x, [&] { return truth(false); }, [&](const Operand&) { return truth(true); });
}

Operand value_of(const NodeContext& cx, const Operand& x) {
  if (!is_optional(x)) return x;
  const Construct* made = constructed(cx, x);
  if (made && !made->fields.empty()) return made->fields[0];
  const TypeRef held = held_type(graph::type_of(x));
  if (held.is<TypeVar>()) return imaginary(cx.b);
  // The arm for an absent value needs a value of the type, which the check keeps from being used.
  const Operand count = match_option(
      cx, x, [&] { return cx.integer(0); }, [&](const Operand&) { return cx.integer(1); });
  cx.b.check(graph::CheckKind::kLessEqual, 1, cx.b.elements_of(count)[0],
             cat(cx.node().op, ": values in the optional"));
  return match_option(
      cx, x,
      [&] {
        return word(cx, "array_get", {empty_sequence(cx, held), graph::constant_int(0)});
      },
      [](const Operand& value) { return value; });
}

// ---- maps ----

bool is_map(const Operand& x) {
  return is_map_type(graph::type_of(x));
}

TypeRef map_type(const TypeRef& keys, const TypeRef& values) {
  return graph::adt_type(kMap, {keys, values});
}

TypeRef map_type(DataType key, DataType value) {
  return map_type(graph::tensor_type_of_rank(key, 1), graph::tensor_type_of_rank(value, 1));
}

Ref<const graph::AdtDefinition> map_definition() {
  auto constructor = make<graph::Constructor>();
  constructor->name = kMapOf;
  constructor->fields = {graph::type_var("K"), graph::type_var("V")};
  auto out = make<graph::AdtDefinition>();
  out->name = kMap;
  out->type_params = {String("K"), String("V")};
  out->constructors = {std::move(constructor)};
  return out;
}

void declare_maps(graph::Builder& builder) {
  if (declares_maps(builder)) return;
  graph::Signatures signatures = builder.signatures();
  signatures.add_type(map_definition());
  builder.set_signatures(std::move(signatures));
}

bool declares_maps(const graph::Builder& builder) {
  return builder.signatures().find_type(kMap) != nullptr;
}

Operand map_of(const NodeContext& cx, const Operand& keys, const Operand& values) {
  declare_maps(cx.b);
  const auto type = [](const Operand& x) { return graph::without_known_values(graph::type_of(x)); };
  return construct(cx, kMapOf, {type(keys), type(values)}, {keys, values});
}

MapParts parts_of_map(const NodeContext& cx, const Operand& x) {
  if (const Construct* made = constructed(cx, x)) return {made->fields[0], made->fields[1]};
  const auto& types = graph::type_as<AdtType>(graph::type_of(x))->args;
  auto match = make<graph::Match>();
  match->value = x;
  cx.b.begin_block();
  const VarRef keys = cx.b.block_var("keys", types[0]), values = cx.b.block_var("values", types[1]);
  auto both = make<graph::Pattern>();
  both->kind = graph::PatternKind::kConstructor;
  both->constructor = kMapOf;
  both->fields = {variable(keys), variable(values)};
  match->patterns.push_back(both);
  match->arms.push_back(cx.b.finish_block(cx.b.tuple({keys, values})));
  const Operand parts = cx.b.bind(match);
  const Dim count = cx.b.fresh_symbol("entries");
  return {cx.b.match_shape(cx.b.field(parts, 0), {count}),
          cx.b.match_shape(cx.b.field(parts, 1), {count})};
}

}  // namespace tenon::onnx
