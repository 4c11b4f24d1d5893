#include <algorithm>
#include <unordered_map>

#include "codegen/llvm/lower.h"
#include "loop/walk.h"
#include "support/error.h"

namespace tenon::codegen {

namespace {

constexpr int kMaxDepth = 2000;  // of nested expressions; kCompileStack suffices for it

}  // namespace

void check_nesting(const loop::Kernel& kernel) {
  std::unordered_map<const loop::Expr*, int> depths;
  loop::Seen seen;
  auto check = [&](const loop::ExprRef& root) {
    loop::post_order(
        root,
        [&](const loop::ExprRef& e) {
          int depth = depths[e.get()];  // for a variable, the depth of its `let` value
          loop::for_operands(
              *e, [&](const loop::ExprRef& a) { depth = std::max(depth, depths.at(a.get())); });
          depths[e.get()] = depth + 1;
          if (depth < kMaxDepth) return;
          throw Error(ErrorKind::Unsupported,
                      cat("kernel '", kernel.name, "' nests expressions too deeply"))
              .expected(cat("at most ", kMaxDepth, " levels"));
        },
        &seen);
  };
  loop::for_each_stmt(kernel.body, [&](const loop::StmtRef& s) {
    for (const loop::ExprRef& e : loop::direct_exprs(*s)) check(e);
    if (s->kind != loop::StmtKind::kLet) return;
    const auto& let = static_cast<const loop::Let&>(*s);
    depths[let.var.get()] = depths.at(let.value.get());
  });
}

}  // namespace tenon::codegen
