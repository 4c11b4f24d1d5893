// Walking and rewriting expressions: iteratively, visiting each shared node once.
#pragma once

#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "loop/kernel.h"

namespace tenon::loop {

// Calls `f` with each direct operand, in evaluation order.
template <class F>
void for_operands(const Expr& e, F&& f) {
  switch (e.kind) {
    case ExprKind::kVar:
    case ExprKind::kLiteral:
    case ExprKind::kDimValue:
      return;
    case ExprKind::kLoad:
      for (const ExprRef& index : static_cast<const Load&>(e).indices) f(index);
      return;
    case ExprKind::kUnary:
      return f(static_cast<const Unary&>(e).a);
    case ExprKind::kBinary:
      f(static_cast<const Binary&>(e).a);
      return f(static_cast<const Binary&>(e).b);
    case ExprKind::kSelect:
      f(static_cast<const Select&>(e).condition);
      f(static_cast<const Select&>(e).if_true);
      return f(static_cast<const Select&>(e).if_false);
    case ExprKind::kCast:
      return f(static_cast<const Cast&>(e).a);
    case ExprKind::kCheckedIndex:
      return f(static_cast<const CheckedIndex&>(e).index);
  }
}
// The operands as a list.
std::vector<ExprRef> operands(const Expr& e);
// The same node with other operands, folded; `e` itself if none differs.
ExprRef with_operands(const ExprRef& e, const std::vector<ExprRef>& operands);

// Calls `visit` once for every node of `root` (including itself) that isn't in `seen`, operands
// first.
using Seen = std::unordered_set<const Expr*>;
void post_order(const ExprRef& root, const std::function<void(const ExprRef&)>& visit, Seen* seen);
void post_order(const ExprRef& root, const std::function<void(const ExprRef&)>& visit);

// The number of nodes, counted up to `most`.
int64_t count_nodes(const ExprRef& root, int64_t most);

// Rebuilds expressions bottom-up. `leave` gets each node with rebuilt operands and returns its
// replacement (the node itself to keep it). Results are cached between calls.
class Rewriter {
 public:
  explicit Rewriter(std::function<ExprRef(const ExprRef& node)> leave) : leave_(std::move(leave)) {}
  ExprRef operator()(const ExprRef& root);

 private:
  std::function<ExprRef(const ExprRef&)> leave_;
  std::unordered_map<const Expr*, std::pair<ExprRef, ExprRef>>
      done_;  // the key, kept alive, and the result
  Seen seen_;
};

using VarMap = std::unordered_map<const Var*, ExprRef>;
ExprRef substitute(const ExprRef& e, const VarMap& values);

// Whether any of the variables occurs in `e`.
bool depends_on(const ExprRef& e, const std::unordered_set<const Var*>& vars);
bool depends_on(const ExprRef& e, const Ref<const Var>& v);

// Whether evaluating `e` can fail, but for accesses outside of buffers.
bool any_can_fail(const ExprRef& e);

// Every expression of a stage.
std::vector<ExprRef> stage_exprs(const Stage& s);
// Visits every node of a stage's expressions once, operands first.
void for_each_expr(const Stage& s, const std::function<void(const ExprRef&)>& visit);
// The same for its loads.
void for_each_load(const Stage& s, const std::function<void(const Load&)>& visit);

// Every expression directly in the statement (not in its body).
std::vector<ExprRef> direct_exprs(const Stmt& s);
// The direct sub-statements.
std::vector<StmtRef> direct_bodies(const Stmt& s);
// Visits every statement from `root` down, parents first.
void for_each_stmt(const StmtRef& root, const std::function<void(const StmtRef&)>& visit);

}  // namespace tenon::loop
