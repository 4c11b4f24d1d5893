// Sequences and optional values.

#include <algorithm>

#include "graph/ir/value_words.h"
#include "import/onnx/container.h"
#include "import/onnx/loop_builder.h"

namespace tenon::onnx {

namespace {

using graph::TypeRef;

// More pieces are split off in a loop.
constexpr int64_t kMostPieces = 64;

Operand sequence_in(NodeContext& cx, size_t i) {
  Operand x = cx.in(i);
  if (!is_sequence(x)) {
    cx.invalid(cat("an operand of type ", to_text(graph::type_of(x))), "a sequence");
  }
  return x;
}

// The element type of a model's type, as a tensor type of any rank.
TypeRef any_tensor(NodeContext& cx, const ValueType& type) {
  const auto dtype = dtype_of(type.element);
  if (!dtype) cx.unsupported(cat(data_type_name(type.element), " is not implemented"));
  return graph::tensor_type_unknown(*dtype);
}

// ---- positions ----

// A known position counted from the front. `most` is the greatest one.
std::optional<int64_t> known_position(NodeContext& cx, const Operand& position, int64_t length,
                                      int64_t most) {
  const auto list = cx.ints(position);
  if (!list || list->size() != 1) return std::nullopt;
  const int64_t p = (*list)[0];
  if (p < -length || p > most) {
    cx.invalid(cat("position ", p, " in a sequence of ", length),
               most < -length ? "a sequence with elements" : cat(-length, " to ", most));
  }
  return p < 0 ? p + length : p;
}

// The position that operand i names, an i64 scalar counted from the front. It is out of range where
// the operand is.
Operand position_of(NodeContext& cx, size_t i, const Operand& sequence) {
  const Operand position = cx.in(i);
  if (auto p = cx.number(position)) {
    const Operand known = graph::constant_int(cx.to_integer(*p, "a position"));
    return *p >= 0 ? known : cx.add(length_of(cx, sequence), known);
  }
  const Operand p = word(cx, "to_scalar", {cx.cast(position, i64)});
  return cx.op("where",
               {cx.op("less", {p, graph::constant_int(0)}), cx.add(p, length_of(cx, sequence)), p});
}

// ---- operators on sequences ----

Operands sequence_construct(NodeContext& cx) {
  if (cx.count() == 0) cx.invalid("no operand", "one or more tensors");
  for (size_t i = 0; i < cx.count(); ++i) cx.in(i);
  return {sequence_of(cx, cx.all())};
}

Operands sequence_empty(NodeContext& cx) {
  return {empty_sequence(cx, graph::tensor_type_unknown(cx.attr_dtype("dtype", f32)))};
}

Operands sequence_at(NodeContext& cx) {
  const Operand sequence = sequence_in(cx, 0);
  if (const auto known = known_elements(cx, sequence)) {
    const auto length = static_cast<int64_t>(known->size());
    if (const auto p = known_position(cx, cx.in(1), length, length - 1)) {
      return {(*known)[static_cast<size_t>(*p)]};
    }
  }
  return {element_at(cx, sequence, position_of(cx, 1, sequence))};
}

Operands sequence_length(NodeContext& cx) {
  const Operand sequence = sequence_in(cx, 0);
  if (const auto known = known_elements(cx, sequence)) {
    return {cx.integer(static_cast<int64_t>(known->size()))};
  }
  return {word(cx, "to_tensor", {length_of(cx, sequence)})};
}

Operands sequence_insert(NodeContext& cx) {
  const Operand sequence = sequence_in(cx, 0), x = cx.in(1);
  if (!cx.has(2)) return {with_last(cx, sequence, x)};
  if (auto known = known_elements(cx, sequence)) {
    const auto length = static_cast<int64_t>(known->size());
    if (const auto p = known_position(cx, cx.in(2), length, length)) {
      if (*p == length) return {with_last(cx, sequence, x)};
      known->insert(known->begin() + *p, x);
      return {sequence_of(cx, *known)};
    }
  }
  const Operand p = position_of(cx, 2, sequence);
  const Operand front = word(cx, "array_slice", {sequence, graph::constant_int(0), p});
  const Operand back = word(cx, "array_slice", {sequence, p, length_of(cx, sequence)});
  const Operand with_x = with_last(cx, front, x);
  // In a loop that begins without elements, x tells what the sequence holds.
  return {word(cx, "array_concat", {with_x, as_type(cx, back, graph::type_of(with_x))})};
}

Operands sequence_erase(NodeContext& cx) {
  const Operand sequence = sequence_in(cx, 0);
  if (auto known = known_elements(cx, sequence)) {
    const auto length = static_cast<int64_t>(known->size());
    const Operand last = cx.integer(-1);
    if (const auto p = known_position(cx, cx.has(1) ? cx.in(1) : last, length, length - 1)) {
      known->erase(known->begin() + *p);
      if (known->empty()) {
        return {empty_sequence(cx, closed(held_type(graph::type_of(sequence))))};
      }
      return {sequence_of(cx, *known)};
    }
  }
  const Operand length = length_of(cx, sequence);
  const Operand p =
      cx.has(1) ? position_of(cx, 1, sequence) : cx.add(length, graph::constant_int(-1));
  const Operand front = word(cx, "array_slice", {sequence, graph::constant_int(0), p});
  const Operand back =
      word(cx, "array_slice", {sequence, cx.add(p, graph::constant_int(1)), length});
  return {word(cx, "array_concat", {front, back})};
}

// ---- between tensors and sequences ----

// Pieces of `size` elements along the axis, of which the last may have fewer.
Operand split_evenly(NodeContext& cx, const Operand& x, int64_t axis, const Dim& size,
                     bool keepdims) {
  const Dims dims = cx.dims(x);
  const Dim whole = dims[static_cast<size_t>(axis)];
  cx.b.check(graph::CheckKind::kLessEqual, 1, size, "SplitToSequence: the size of a piece");
  const Dim count = ceildiv(whole, size);
  auto piece = [&](const Dim& i) {
    const Operand y = cx.slice(x, axis, i * size, min(size, whole - i * size));
    return keepdims ? y : cx.squeeze(y, {axis});
  };
  const auto known = count.as_const();
  if (known && *known > 0 && *known <= kMostPieces) {
    Operands pieces;
    for (int64_t i = 0; i < *known; ++i) pieces.push_back(piece(i));
    return sequence_of(cx, pieces);
  }
  const TypeRef element = graph::tensor_type_of_rank(cx.dtype(x), cx.rank(x) - (keepdims ? 0 : 1));
  const Operand all = sequence_by_loop(
      cx, element, size_scalar(cx, count), {}, {}, {},
      [&](const Operands& vars) { return Operands{piece(cx.b.elements_of(vars[0])[0])}; });
  return cx.b.field(all, 1);
}

// Pieces of the sizes in `sizes`, a list.
Operand split_by_sizes(NodeContext& cx, const Operand& x, int64_t axis, const Operand& sizes) {
  const Dim whole = cx.dims(x)[static_cast<size_t>(axis)];
  const auto count = cx.dims(sizes)[0].as_const();
  constexpr const char* kSum = "SplitToSequence: the sum of the sizes";
  if (count && *count > 0 && *count <= kMostPieces) {
    Operands pieces;
    Dim start = 0;
    for (const Dim& size : cx.elements(sizes)) {
      cx.b.check(graph::CheckKind::kLessEqual, start + size, whole, kSum);
      pieces.push_back(cx.slice(x, axis, start, size));
      start = start + size;
    }
    cx.b.check(graph::CheckKind::kEqual, start, whole, kSum);
    return sequence_of(cx, pieces);
  }
  const TypeRef i64_type = graph::tensor_type(i64, {});
  const TypeRef element = graph::tensor_type_of_rank(cx.dtype(x), cx.rank(x));
  const Operand list = cx.cast(sizes, i64);
  const Operand all = sequence_by_loop(
      cx, element, size_scalar(cx, cx.dims(sizes)[0]), {"start"}, {i64_type}, {cx.integer(0)},
      [&](const Operands& vars) {
        const Operand size =
            cx.op("gather", {list, word(cx, "to_tensor", {vars[0]})}, graph::attrs({{"axis", 0}}));
        const Dim start = cx.elements(vars[2])[0], n = cx.elements(size)[0];
        cx.b.check(graph::CheckKind::kLessEqual, start + n, whole, kSum);
        return Operands{cx.slice(x, axis, start, n), cx.add(vars[2], size)};
      });
  cx.b.check(graph::CheckKind::kEqual, cx.elements(cx.b.field(all, 2))[0], whole, kSum);
  return cx.b.field(all, 1);
}

Operands split_to_sequence(NodeContext& cx) {
  const Operand x = cx.in(0);
  const int64_t axis = cx.axis(cx.attr_int("axis", 0), cx.rank(x));
  const bool keepdims = cx.attr_bool("keepdims", true);
  if (!cx.has(1)) return {split_evenly(cx, x, axis, 1, keepdims)};
  const Operand split = cx.in(1);
  const int64_t rank = cx.rank(split);
  if (rank > 1) cx.invalid(cat("a split of rank ", rank), "a size, or a list of sizes");
  if (rank == 1) return {split_by_sizes(cx, x, axis, split)};
  return {split_evenly(cx, x, axis, cx.elements(split)[0], true)};
}

struct Elements {
  Operand sequence;
  DataType dtype;
  int64_t rank;

  // The element at an index, with fresh symbols for its sizes.
  Operand at(NodeContext& cx, const Operand& index) const {
    Dims dims;
    for (int64_t i = 0; i < rank; ++i) dims.push_back(cx.b.fresh_symbol("d"));
    return cx.b.match_shape(word(cx, "array_get", {sequence, index}), dims);
  }
};

// All elements, one after the other along the axis. Neighbours are joined until one is left, which
// copies each element about log(n) times.
Operand joined(NodeContext& cx, const Elements& elements, int64_t axis) {
  const TypeRef type = graph::tensor_type_of_rank(elements.dtype, elements.rank);
  const TypeRef parts = graph::array_type(type);
  const Operand one = graph::constant_int(1), zero = graph::constant_int(0);
  const Operand all = cx.b.loop(
      {"parts"}, {parts}, {elements.sequence},
      [&](const Operands& vars) {
        return cx.op("less", {one, length_of(cx, vars[0])});
      },
      [&](const Operands& vars) {
        const Elements now = {vars[0], elements.dtype, elements.rank};
        const Operand length = length_of(cx, vars[0]);
        const Operand pairs = cx.b.loop(
            {"i", "joined"}, {graph::scalar_type(i64), parts}, {zero, empty_sequence(cx, type)},
            [&](const Operands& pair) {
              return cx.op("less", {cx.add(pair[0], one), length});
            },
            [&](const Operands& pair) {
              const Operand left = now.at(cx, pair[0]), right = now.at(cx, cx.add(pair[0], one));
              return cx.b.tuple(
                  {cx.add(pair[0], graph::constant_int(2)),
                   word(cx, "array_push", {pair[1], cx.concat({left, right}, axis)})});
            });
        const Operand left_over = word(cx, "array_slice", {vars[0], cx.b.field(pairs, 0), length});
        return word(cx, "array_concat", {cx.b.field(pairs, 1), left_over});
      });
  return Elements{all, elements.dtype, elements.rank}.at(cx, zero);
}

// All elements, which have one shape, along a new first axis.
Operand stacked(NodeContext& cx, const Elements& elements) {
  const Operand first = elements.at(cx, graph::constant_int(0));
  const Dims dims = cx.dims(first);
  auto rows = [&](const Operand& x) {
    Dims all = {cx.b.fresh_symbol("k")};
    all.insert(all.end(), dims.begin(), dims.end());
    return cx.b.match_shape(x, all);
  };
  const Operand length = length_of(cx, elements.sequence), one = graph::constant_int(1);
  const Operand all = cx.b.loop(
      {"i", "rows"},
      {graph::scalar_type(i64), graph::tensor_type_of_rank(elements.dtype, elements.rank + 1)},
      {one, cx.unsqueeze(first, {0})},
      [&](const Operands& vars) {
        return cx.op("less", {vars[0], length});
      },
      [&](const Operands& vars) {
        const Operand so_far = rows(vars[1]);
        const Operand row =
            cx.b.match_shape(word(cx, "array_get", {elements.sequence, vars[0]}), dims);
        return cx.b.tuple({cx.add(vars[0], one), cx.op("append", {so_far, row})});
      });
  return rows(cx.b.field(all, 1));
}

Operands concat_from_sequence(NodeContext& cx) {
  const Operand sequence = sequence_in(cx, 0);
  const bool new_axis = cx.attr_bool("new_axis", false);
  const int64_t given_axis = cx.attr_int("axis");
  const auto known = known_elements(cx, sequence);
  if (known && known->empty()) cx.invalid("a sequence without elements", "one or more");
  if (held_type(graph::type_of(sequence)).is<graph::TypeVar>()) return {imaginary(cx.b)};
  const TypeRef held = closed(held_type(graph::type_of(sequence)));
  const auto* element = graph::type_as<graph::TensorType>(held);
  if (element == nullptr || element->rank < 0) {
    cx.unsupported("elements whose rank is known only at run time not implemented");
  }
  const int64_t axis = cx.axis(given_axis, element->rank + (new_axis ? 1 : 0));
  if (known) {
    Operands parts = *known;
    for (Operand& part : parts) part = new_axis ? cx.unsqueeze(part, {axis}) : part;
    return {cx.concat(parts, axis)};
  }
  const Operand length = word(cx, "to_tensor", {length_of(cx, sequence)});
  cx.b.check(graph::CheckKind::kLessEqual, 1, cx.b.elements_of(length)[0],
             "ConcatFromSequence: the length of the sequence");
  const Elements elements = {sequence, element->dtype, element->rank};
  if (!new_axis) return {joined(cx, elements, axis)};
  return {cx.with_first_at(stacked(cx, elements), axis)};
}

// The body's results for the elements of the first operand, and of the others that are sequences.
Operands sequence_map(NodeContext& cx) {
  const Graph& body = cx.attr_graph("body");
  const Operand first = sequence_in(cx, 0);
  LoopSpec spec;
  const auto all = known_elements(cx, first);
  if (all) spec.count = static_cast<int64_t>(all->size());
  spec.limit = all ? cx.integer(static_cast<int64_t>(all->size()))
                   : word(cx, "to_tensor", {length_of(cx, first)});
  for (const Value& output : body.outputs) {
    // The first element gives the type; the model's counts where there is none.
    const DataType dtype = dtype_of(output.type.element).value_or(f32);
    spec.init.push_back(empty_sequence(cx, graph::tensor_type_unknown(dtype)));
  }
  if (all && all->empty()) return spec.init;
  spec.step = [&](const Operand& index, const Operands& made) -> std::optional<LoopStep> {
    Operands inputs;
    const Operand at = word(cx, "to_scalar", {index});
    const auto place = cx.ints(index);
    for (size_t i = 0; i < cx.count(); ++i) {
      const Operand x = cx.in(i);
      const auto known = place && is_sequence(x) ? known_elements(cx, x) : std::nullopt;
      if (known && (*place)[0] < static_cast<int64_t>(known->size())) {
        inputs.push_back((*known)[static_cast<size_t>((*place)[0])]);
      } else {
        inputs.push_back(is_sequence(x) ? cx.with_symbols(element_at(cx, x, at)) : x);
      }
    }
    const auto results = cx.run_graph(body, inputs);
    if (!results) return std::nullopt;
    LoopStep step;
    for (size_t k = 0; k < made.size(); ++k) {
      const auto before = known_elements(cx, made[k]);
      const Operand y = (*results)[k];
      step.states.push_back(before && before->empty() ? sequence_of(cx, {y})
                                                      : with_last(cx, made[k], y));
    }
    return step;
  };
  return build_loop(cx, spec).states;
}

// ---- optional values ----

// The type that a model's type has at least, for an absent value.
TypeRef least_type(NodeContext& cx, const ValueType& type) {
  if (type.kind == ValueType::kTensor) return any_tensor(cx, type);
  if (type.kind == ValueType::kSequence) return graph::array_type(least_type(cx, *type.held));
  if (type.kind == ValueType::kOptional) return option_type(least_type(cx, *type.held));
  cx.unsupported("type: only tensors, sequences and optional values are implemented");
}

Operands optional(NodeContext& cx) {
  const ValueType* type = cx.attr_type("type");
  if (cx.has(0)) return {some(cx, cx.in(0))};
  if (type == nullptr) cx.invalid("neither an operand nor the attribute 'type'", "one of them");
  return {none(cx, least_type(cx, *type))};
}

Operands optional_has_element(NodeContext& cx) {
  return {cx.has(0) ? has_value(cx, cx.in(0)) : cx.scalar(boolean, 0)};
}

Operands optional_get_element(NodeContext& cx) {
  return {value_of(cx, cx.in(0))};
}

}  // namespace

void register_sequence(OpTable& t) {
  t.add("SequenceConstruct", 11, sequence_construct);
  t.add("SequenceEmpty", 11, sequence_empty);
  t.add("SequenceAt", 11, sequence_at);
  t.add("SequenceLength", 11, sequence_length);
  t.add("SequenceInsert", 11, sequence_insert);
  t.add("SequenceErase", 11, sequence_erase);
  t.add("SplitToSequence", 11, split_to_sequence);
  t.add("ConcatFromSequence", 11, concat_from_sequence);
  t.add("SequenceMap", 17, sequence_map);
  t.add("Optional", 15, optional);
  t.add("OptionalHasElement", 15, optional_has_element);
  t.add("OptionalGetElement", 15, optional_get_element);
}

}  // namespace tenon::onnx
