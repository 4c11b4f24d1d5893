// Walks over the parts of a right-hand side.
#pragma once

#include "graph/ir/expr.h"
#include "support/poll.h"

namespace tenon::graph {

// Calls `f` on each operand of a right-hand side, including absent ones, but not those in nested
// blocks.
template <class F>
void for_each_operand(const ExprRef& value, const F& f) {
  poll();
  if (auto* call = value.as<Call>()) {
    if (call->closure) f(call->closure);
    for (const Operand& arg : call->args) f(arg);
  } else if (auto* branch = value.as<If>()) {
    f(branch->condition);
  } else if (auto* loop = value.as<Loop>()) {
    for (const Operand& init : loop->init) f(init);
  } else if (auto* match = value.as<Match>()) {
    f(match->value);
  } else if (auto* tuple = value.as<Tuple>()) {
    for (const Operand& field : tuple->fields) f(field);
  } else if (auto* field = value.as<Field>()) {
    f(field->tuple);
  } else if (auto* construct = value.as<Construct>()) {
    for (const Operand& field : construct->fields) f(field);
  } else if (auto* bound = value.as<MatchShape>()) {
    f(bound->value);
  }
}

// Calls `f` on each direct block of a right-hand side.
template <class F>
void for_each_block(const ExprRef& value, const F& f) {
  poll();
  if (auto* branch = value.as<If>()) {
    f(branch->then_block);
    f(branch->else_block);
  } else if (auto* loop = value.as<Loop>()) {
    f(loop->condition);
    f(loop->body);
  } else if (auto* match = value.as<Match>()) {
    for (const BlockRef& arm : match->arms) f(arm);
  } else if (auto* function = value.as<FunctionExpr>()) {
    f(function->body);
  }
}

}  // namespace tenon::graph
