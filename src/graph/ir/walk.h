// Walks over the parts of a right-hand side: its operands, its blocks and the names in it.
#pragma once

#include <tuple>
#include <type_traits>
#include <vector>

#include "graph/ir/expr.h"
#include "support/poll.h"

namespace tenon::graph {

namespace detail {

// The members of a kind of right-hand side that hold operands, each an Operand or an
// Array<Operand>, and those that hold blocks, each a BlockRef or an Array<BlockRef>.
template <class Node, class Operands, class Blocks>
struct Parts {
  using Kind = Node;
  Operands operands;
  Blocks blocks;
};
template <class Node, class... Operands, class... Blocks>
constexpr auto parts(const std::tuple<Operands...>& operands, const std::tuple<Blocks...>& blocks) {
  return Parts<Node, std::tuple<Operands...>, std::tuple<Blocks...>>{operands, blocks};
}

// Every kind of right-hand side. Members are in the order of evaluation.
inline constexpr std::tuple kRightHandSides = {
    parts<Call>(std::tuple(&Call::closure, &Call::args), {}),
    parts<FunctionExpr>({}, std::tuple(&FunctionExpr::body)),
    parts<If>(std::tuple(&If::condition), std::tuple(&If::then_block, &If::else_block)),
    parts<Loop>(std::tuple(&Loop::init), std::tuple(&Loop::condition, &Loop::body)),
    parts<Match>(std::tuple(&Match::value), std::tuple(&Match::arms)),
    parts<Tuple>(std::tuple(&Tuple::fields), {}),
    parts<Field>(std::tuple(&Field::tuple), {}),
    parts<Construct>(std::tuple(&Construct::fields), {}),
    parts<Closure>(std::tuple(&Closure::captures), {}),
    parts<Size>({}, {}),
    parts<MatchShape>(std::tuple(&MatchShape::value), {}),
    parts<Check>({}, {}),
};

// Calls `f(node, parts)` with the right-hand side as its own type and its row of the table.
template <class F>
void with_parts(const ExprRef& value, const F& f) {
  auto try_kind = [&](const auto& parts) {
    using Kind = typename std::remove_cvref_t<decltype(parts)>::Kind;
    if (value->type_index != Kind::kTypeIndex) return false;
    f(static_cast<const Kind&>(*value), parts);
    return true;
  };
  TENON_ASSERT(value, "a binding without a right-hand side");
  const bool known =
      std::apply([&](const auto&... parts) { return (try_kind(parts) || ...); }, kRightHandSides);
  TENON_ASSERT(known, "no right-hand side has the type ", value->type_index);
}

template <class Part, class F>
void for_each_item(const Part& part, const F& f) {
  if constexpr (std::is_same_v<Part, Operand> || std::is_same_v<Part, BlockRef>) {
    f(part);
  } else {
    for (const auto& item : part) f(item);
  }
}

template <class Part, class F>
void map_item(Part& part, const F& f) {
  if constexpr (std::is_same_v<Part, Operand> || std::is_same_v<Part, BlockRef>) {
    part = f(part);
  } else {
    part = part.map(f);
  }
}

}  // namespace detail

// Whether the node is of a kind that can be bound to a variable: not a variable or constant. Walks
// require it.
inline bool is_right_hand_side(const ExprRef& value) {
  return std::apply(
      [&](const auto&... parts) {
        return (value.is<typename std::remove_cvref_t<decltype(parts)>::Kind>() || ...);
      },
      detail::kRightHandSides);
}
inline constexpr char kNoRightHandSide[] =
    "a variable or a constant can't be bound to another variable: use it itself";

// Whether the block's result is what this binding, its last, binds.
inline bool is_result(const Block& block, const Binding& binding) {
  return &binding == block.bindings.back().get() &&
         block.result.get() == static_cast<const Object*>(binding.var.get());
}

// Calls `f` on each operand of a right-hand side, including absent ones, but not those in nested
// blocks.
template <class F>
void for_each_operand(const ExprRef& value, const F& f) {
  poll();
  detail::with_parts(value, [&](const auto& node, const auto& parts) {
    std::apply([&](auto... member) { (detail::for_each_item(node.*member, f), ...); },
               parts.operands);
  });
}

// Calls `f` on each direct block of a right-hand side.
template <class F>
void for_each_block(const ExprRef& value, const F& f) {
  poll();
  detail::with_parts(value, [&](const auto& node, const auto& parts) {
    std::apply([&](auto... member) { (detail::for_each_item(node.*member, f), ...); },
               parts.blocks);
  });
}

// The right-hand side with `f(operand)` in place of each operand; blocks are shared.
template <class F>
ExprRef map_operands(const ExprRef& value, const F& f) {
  ExprRef mapped;
  detail::with_parts(value, [&](const auto& node, const auto& parts) {
    auto copy = make<std::remove_cvref_t<decltype(node)>>(node);
    std::apply([&](auto... member) { (detail::map_item((*copy).*member, f), ...); },
               parts.operands);
    mapped = copy;
  });
  return mapped;
}

// The right-hand side with `f(block)` in place of each direct block.
template <class F>
ExprRef map_blocks(const ExprRef& value, const F& f) {
  ExprRef mapped;
  detail::with_parts(value, [&](const auto& node, const auto& parts) {
    auto copy = make<std::remove_cvref_t<decltype(node)>>(node);
    std::apply([&](auto... member) { (detail::map_item((*copy).*member, f), ...); }, parts.blocks);
    mapped = copy;
  });
  return mapped;
}

// The variables that a right-hand side brings into its blocks: a loop's, and those of patterns.
// Not the parameters of a function literal, whose body is not part of the function around it.
std::vector<VarRef> block_variables(const ExprRef& value);
// Adds the symbols in the sizes, types and attributes that a right-hand side states, except those
// of variables and nested blocks.
void collect_symbols(const ExprRef& value, SymbolSet* symbols);

}  // namespace tenon::graph
