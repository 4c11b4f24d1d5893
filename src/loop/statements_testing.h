// For tests: statements and kernels, each in one call.
#pragma once

#include <string>
#include <vector>

#include "loop/kernel.h"

namespace tenon::loop {

inline StmtRef nest(const Ref<const Var>& v, const ExprRef& begin, const ExprRef& extent,
                    ForKind kind, const StmtRef& body) {
  auto f = make<For>();
  f->var = v;
  f->begin = begin;
  f->extent = extent;
  f->loop = kind;
  f->body = body;
  return f;
}
inline StmtRef put(const Ref<const Buffer>& b, const std::vector<ExprRef>& at, const ExprRef& v) {
  auto s = make<Store>();
  s->buffer = b;
  s->indices = Array<ExprRef>(at);
  s->value = v;
  return s;
}
inline StmtRef both(std::vector<StmtRef> body) {
  auto s = make<Seq>();
  s->body = Array<StmtRef>(body);
  return s;
}
inline StmtRef when(const ExprRef& c, const StmtRef& yes, const StmtRef& no = {}) {
  auto s = make<If>();
  s->condition = c;
  s->then_body = yes;
  s->else_body = no;
  return s;
}
inline StmtRef scratch(const Ref<const Buffer>& b, const StmtRef& body) {
  auto s = make<Alloc>();
  s->buffer = b;
  s->body = body;
  return s;
}
inline ExprRef less(const ExprRef& a, const ExprRef& b) {
  return binary(BinaryOp::kLt, a, b);
}

// Its accesses aren't known to be in bounds.
inline KernelRef kernel(const std::string& name, std::vector<Ref<const Buffer>> inputs,
                        std::vector<Ref<const Buffer>> outputs, const StmtRef& body,
                        std::vector<String> integers = {}) {
  auto k = make<Kernel>();
  k->name = name;
  k->inputs = Array<Ref<const Buffer>>(inputs);
  k->outputs = Array<Ref<const Buffer>>(outputs);
  k->integers = Array<String>(integers);
  k->body = body;
  return k;
}

}  // namespace tenon::loop
