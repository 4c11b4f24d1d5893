// Walking and rewriting expressions: iteratively, and each shared node once.
#pragma once

#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "loop/kernel.h"

namespace tenon::loop {

// The direct operands, in the order of evaluation.
std::vector<ExprRef> operands(const Expr& e);
// The same node with other operands, folded; `e` itself if none differs.
ExprRef with_operands(const ExprRef& e, const std::vector<ExprRef>& operands);

// Calls `visit` once for every node below and including `root` that isn't in `seen`, operands
// first.
using Seen = std::unordered_set<const Expr*>;
void post_order(const ExprRef& root, const std::function<void(const ExprRef&)>& visit, Seen* seen);
void post_order(const ExprRef& root, const std::function<void(const ExprRef&)>& visit);

// Rebuilds expressions bottom-up. `leave` gets each node, its operands rebuilt, and returns what
// takes its place (the node itself to keep it). Results are remembered between calls.
class Rewriter {
 public:
  explicit Rewriter(std::function<ExprRef(const ExprRef& node)> leave) : leave_(std::move(leave)) {}
  ExprRef operator()(const ExprRef& root);

 private:
  std::function<ExprRef(const ExprRef&)> leave_;
  std::unordered_map<const Expr*, std::pair<ExprRef, ExprRef>> done_;  // the key kept alive; result
  Seen seen_;
};

using VarMap = std::unordered_map<const Var*, ExprRef>;
ExprRef substitute(const ExprRef& e, const VarMap& values);

// Does any of the variables occur in `e`?
bool depends_on(const ExprRef& e, const std::unordered_set<const Var*>& vars);
bool depends_on(const ExprRef& e, const Ref<const Var>& v);

// Every expression of a stage.
std::vector<ExprRef> stage_exprs(const Stage& s);

// Every expression that stands directly in the statement (not those of its body).
std::vector<ExprRef> direct_exprs(const Stmt& s);
// The statements directly below.
std::vector<StmtRef> direct_bodies(const Stmt& s);
// Every statement below and including `root`, parents first.
void for_each_stmt(const StmtRef& root, const std::function<void(const StmtRef&)>& visit);

}  // namespace tenon::loop
