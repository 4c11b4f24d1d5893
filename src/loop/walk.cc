#include "loop/walk.h"

#include "support/error.h"
#include "support/poll.h"

namespace tenon::loop {

std::vector<ExprRef> operands(const Expr& e) {
  std::vector<ExprRef> out;
  for_operands(e, [&](const ExprRef& operand) { out.push_back(operand); });
  return out;
}

ExprRef with_operands(const ExprRef& e, const std::vector<ExprRef>& ops) {
  if (operands(*e) == ops) return e;
  switch (e->kind) {
    case ExprKind::kVar:
    case ExprKind::kLiteral:
    case ExprKind::kDimValue:
      return e;
    case ExprKind::kLoad:
      return load(static_cast<const Load&>(*e).buffer, Array<ExprRef>(ops));
    case ExprKind::kUnary:
      return unary(static_cast<const Unary&>(*e).op, ops[0]);
    case ExprKind::kBinary:
      return binary(static_cast<const Binary&>(*e).op, ops[0], ops[1]);
    case ExprKind::kSelect:
      return select(ops[0], ops[1], ops[2]);
    case ExprKind::kCast:
      return static_cast<const Cast&>(*e).keeps_bits ? bit_cast(e->dtype, ops[0])
                                                     : cast(e->dtype, ops[0]);
    case ExprKind::kCheckedIndex:
      return checked_index(ops[0], static_cast<const CheckedIndex&>(*e).extent);
  }
  return e;
}

void post_order(const ExprRef& root, const std::function<void(const ExprRef&)>& visit, Seen* seen) {
  struct Frame {
    ExprRef node;
    std::vector<ExprRef> operands;
    size_t next = 0;
  };
  std::vector<Frame> stack;
  auto enter = [&](const ExprRef& e) {
    if (seen->insert(e.get()).second) stack.push_back({e, operands(*e)});
  };
  poll();
  Ticker ticker;
  enter(root);
  while (!stack.empty()) {
    ticker.tick();
    Frame& top = stack.back();
    if (top.next < top.operands.size()) {
      ExprRef operand = top.operands[top.next++];  // `enter` may move the frame
      enter(operand);
    } else {
      ExprRef node = std::move(top.node);
      stack.pop_back();
      visit(node);
    }
  }
}

void post_order(const ExprRef& root, const std::function<void(const ExprRef&)>& visit) {
  Seen seen;
  post_order(root, visit, &seen);
}

int64_t count_nodes(const ExprRef& root, int64_t most) {
  Seen seen;
  std::vector<const Expr*> open{root.get()};
  while (!open.empty() && static_cast<int64_t>(seen.size()) < most) {
    const Expr* e = open.back();
    open.pop_back();
    if (!seen.insert(e).second) continue;
    for_operands(*e, [&](const ExprRef& operand) { open.push_back(operand.get()); });
  }
  return static_cast<int64_t>(seen.size());
}

ExprRef Rewriter::operator()(const ExprRef& root) {
  post_order(
      root,
      [&](const ExprRef& e) {
        std::vector<ExprRef> ops = operands(*e);
        for (ExprRef& op : ops) op = done_.at(op.get()).second;
        done_.emplace(e.get(), std::pair(e, leave_(with_operands(e, ops))));
      },
      &seen_);
  return done_.at(root.get()).second;
}

ExprRef substitute(const ExprRef& e, const VarMap& values) {
  if (values.empty()) return e;
  Rewriter rewrite([&](const ExprRef& node) -> ExprRef {
    if (node->kind != ExprKind::kVar) return node;
    auto it = values.find(static_cast<const Var*>(node.get()));
    return it == values.end() ? node : it->second;
  });
  return rewrite(e);
}

bool depends_on(const ExprRef& e, const std::unordered_set<const Var*>& vars) {
  bool found = false;
  post_order(e, [&](const ExprRef& node) {
    found = found ||
            (node->kind == ExprKind::kVar && vars.contains(static_cast<const Var*>(node.get())));
  });
  return found;
}

bool any_can_fail(const ExprRef& e) {
  bool found = false;
  post_order(e, [&](const ExprRef& node) { found = found || can_fail(*node); });
  return found;
}

bool depends_on(const ExprRef& e, const Ref<const Var>& v) {
  return depends_on(e, std::unordered_set<const Var*>{v.get()});
}

std::vector<ExprRef> stage_exprs(const Stage& s) {
  std::vector<ExprRef> all{s.body};
  if (s.update) all.push_back(s.update);
  for (const ExprRef& i : s.scatter_indices) all.push_back(i);
  return all;
}

void for_each_expr(const Stage& s, const std::function<void(const ExprRef&)>& visit) {
  Seen seen;
  for (const ExprRef& root : stage_exprs(s)) post_order(root, visit, &seen);
}

void for_each_load(const Stage& s, const std::function<void(const Load&)>& visit) {
  for_each_expr(s, [&](const ExprRef& e) {
    if (e->kind == ExprKind::kLoad) visit(static_cast<const Load&>(*e));
  });
}

std::vector<ExprRef> direct_exprs(const Stmt& s) {
  switch (s.kind) {
    case StmtKind::kFor:
      return {static_cast<const For&>(s).begin, static_cast<const For&>(s).extent};
    case StmtKind::kStore: {
      std::vector<ExprRef> all = static_cast<const Store&>(s).indices.to_vector();
      all.push_back(static_cast<const Store&>(s).value);
      return all;
    }
    case StmtKind::kPrefetch:
      return static_cast<const Prefetch&>(s).indices.to_vector();
    case StmtKind::kIf:
      return {static_cast<const If&>(s).condition};
    case StmtKind::kLet:
      return {static_cast<const Let&>(s).value};
    case StmtKind::kSeq:
    case StmtKind::kAlloc:
      return {};
  }
  return {};
}

std::vector<StmtRef> direct_bodies(const Stmt& s) {
  switch (s.kind) {
    case StmtKind::kSeq:
      return static_cast<const Seq&>(s).body.to_vector();
    case StmtKind::kFor:
      return {static_cast<const For&>(s).body};
    case StmtKind::kStore:
    case StmtKind::kPrefetch:
      return {};
    case StmtKind::kIf: {
      const auto& i = static_cast<const If&>(s);
      if (i.else_body) return {i.then_body, i.else_body};
      return {i.then_body};
    }
    case StmtKind::kLet:
      return {static_cast<const Let&>(s).body};
    case StmtKind::kAlloc:
      return {static_cast<const Alloc&>(s).body};
  }
  return {};
}

void for_each_stmt(const StmtRef& root, const std::function<void(const StmtRef&)>& visit) {
  std::vector<StmtRef> stack{root};
  while (!stack.empty()) {
    StmtRef s = std::move(stack.back());
    stack.pop_back();
    visit(s);
    std::vector<StmtRef> below = direct_bodies(*s);
    stack.insert(stack.end(), std::make_move_iterator(below.rbegin()),
                 std::make_move_iterator(below.rend()));
  }
}

}  // namespace tenon::loop
