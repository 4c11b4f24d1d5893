// The field tables of this folder's types.
#include "loop/types.h"

#include "loop/kernel.h"
#include "loop/recurrence.h"
#include "object/reflect.h"

namespace tenon::loop {

const TypeInfo& Buffer::type_info() {
  static const Field fields[] = {field("name", &Buffer::name, kIgnored),
                                 field("dtype", &Buffer::dtype), field("shape", &Buffer::shape)};
  static const TypeInfo info = type_of<Buffer>("loop.Buffer", fields, nullptr, kVariable);
  return info;
}

const TypeInfo& Expr::type_info() {
  static const Field fields[] = {field("dtype", &Expr::dtype)};
  static const TypeInfo info = type_of<Expr>("loop.Expr", fields);
  return info;
}
const TypeInfo& Var::type_info() {
  static const Field fields[] = {field("name", &Var::name, kIgnored)};
  static const TypeInfo info = type_of<Var>("loop.Var", fields, &Expr::type_info(), kVariable);
  return info;
}
const TypeInfo& Literal::type_info() {
  static const Field fields[] = {field("bits", &Literal::bits)};
  static const TypeInfo info = type_of<Literal>("loop.Literal", fields, &Expr::type_info());
  return info;
}
const TypeInfo& DimValue::type_info() {
  static const Field fields[] = {field("dim", &DimValue::dim)};
  static const TypeInfo info = type_of<DimValue>("loop.DimValue", fields, &Expr::type_info());
  return info;
}
const TypeInfo& Load::type_info() {
  static const Field fields[] = {field("buffer", &Load::buffer), field("indices", &Load::indices)};
  static const TypeInfo info = type_of<Load>("loop.Load", fields, &Expr::type_info());
  return info;
}
const TypeInfo& Unary::type_info() {
  static constexpr const char* kNames[] = {
#define TENON_UNARY(op, word, operands, result, cost) word,
#define TENON_BINARY(op, word, operands, result, fails, integer_cost, float_cost)
#include "loop/scalar_ops.def"
#undef TENON_UNARY
#undef TENON_BINARY
  };
  static const Field fields[] = {field("op", &Unary::op, kNames), field("a", &Unary::a)};
  static const TypeInfo info = type_of<Unary>("loop.Unary", fields, &Expr::type_info());
  return info;
}
const TypeInfo& Binary::type_info() {
  static constexpr const char* kNames[] = {
#define TENON_UNARY(op, word, operands, result, cost)
#define TENON_BINARY(op, word, operands, result, fails, integer_cost, float_cost) word,
#include "loop/scalar_ops.def"
#undef TENON_UNARY
#undef TENON_BINARY
  };
  static const Field fields[] = {field("op", &Binary::op, kNames), field("a", &Binary::a),
                                 field("b", &Binary::b)};
  static const TypeInfo info = type_of<Binary>("loop.Binary", fields, &Expr::type_info());
  return info;
}
const TypeInfo& Select::type_info() {
  static const Field fields[] = {field("condition", &Select::condition),
                                 field("if_true", &Select::if_true),
                                 field("if_false", &Select::if_false)};
  static const TypeInfo info = type_of<Select>("loop.Select", fields, &Expr::type_info());
  return info;
}
const TypeInfo& Cast::type_info() {
  static const Field fields[] = {field("a", &Cast::a), field("keeps_bits", &Cast::keeps_bits)};
  static const TypeInfo info = type_of<Cast>("loop.Cast", fields, &Expr::type_info());
  return info;
}
const TypeInfo& CheckedIndex::type_info() {
  static const Field fields[] = {field("index", &CheckedIndex::index),
                                 field("extent", &CheckedIndex::extent)};
  static const TypeInfo info =
      type_of<CheckedIndex>("loop.CheckedIndex", fields, &Expr::type_info());
  return info;
}

const TypeInfo& Stage::type_info() {
  static const Field fields[] = {field("kind", &Stage::kind, kStageNames),
                                 field("out", &Stage::out, kBinds),
                                 field("axes", &Stage::axes, kBinds),
                                 field("reduce_axes", &Stage::reduce_axes, kBinds),
                                 field("reduce_extents", &Stage::reduce_extents),
                                 field("body", &Stage::body, kOptional),
                                 field("reduction", &Stage::reduction, kReductionNames),
                                 field("accumulate", &Stage::accumulate),
                                 field("padding_is_skippable", &Stage::padding_is_skippable),
                                 field("may_use_winograd", &Stage::may_use_winograd),
                                 field("scan_axis", &Stage::scan_axis),
                                 field("scatter_indices", &Stage::scatter_indices),
                                 field("update", &Stage::update, kOptional)};
  static const TypeInfo info = type_of<Stage>("loop.Stage", fields);
  return info;
}
const TypeInfo& KernelInterface::type_info() {
  static const Field fields[] = {field("inputs", &KernelInterface::inputs, kBinds),
                                 field("outputs", &KernelInterface::outputs, kBinds),
                                 field("integers", &KernelInterface::integers),
                                 field("in_place", &KernelInterface::in_place)};
  static const TypeInfo info = type_of<KernelInterface>("loop.KernelInterface", fields);
  return info;
}
const TypeInfo& Compute::type_info() {
  static const Field fields[] = {field("stages", &Compute::stages)};
  static const TypeInfo info =
      type_of<Compute>("loop.Compute", fields, &KernelInterface::type_info());
  return info;
}
const TypeInfo& Recurrence::type_info() {
  static const Field fields[] = {
      field("step", &Recurrence::step), field("trip_count", &Recurrence::trip_count),
      field("counter", &Recurrence::counter), field("states", &Recurrence::states),
      field("rows", &Recurrence::rows)};
  static const TypeInfo info =
      type_of<Recurrence>("loop.Recurrence", fields, &KernelInterface::type_info());
  return info;
}

const TypeInfo& Stmt::type_info() {
  static const TypeInfo info = type_of<Stmt>("loop.Stmt", {});
  return info;
}
const TypeInfo& Seq::type_info() {
  static const Field fields[] = {field("body", &Seq::body)};
  static const TypeInfo info = type_of<Seq>("loop.Seq", fields, &Stmt::type_info());
  return info;
}
const TypeInfo& For::type_info() {
  static const Field fields[] = {field("begin", &For::begin), field("extent", &For::extent),
                                 field("loop", &For::loop, kForNames),
                                 field("var", &For::var, kBinds), field("body", &For::body)};
  static const TypeInfo info = type_of<For>("loop.For", fields, &Stmt::type_info());
  return info;
}
const TypeInfo& Store::type_info() {
  static const Field fields[] = {field("buffer", &Store::buffer), field("indices", &Store::indices),
                                 field("value", &Store::value)};
  static const TypeInfo info = type_of<Store>("loop.Store", fields, &Stmt::type_info());
  return info;
}
const TypeInfo& If::type_info() {
  static const Field fields[] = {field("condition", &If::condition),
                                 field("then_body", &If::then_body),
                                 field("else_body", &If::else_body, kOptional)};
  static const TypeInfo info = type_of<If>("loop.If", fields, &Stmt::type_info());
  return info;
}
const TypeInfo& Let::type_info() {
  static const Field fields[] = {field("value", &Let::value), field("var", &Let::var, kBinds),
                                 field("body", &Let::body)};
  static const TypeInfo info = type_of<Let>("loop.Let", fields, &Stmt::type_info());
  return info;
}
const TypeInfo& Prefetch::type_info() {
  static const Field fields[] = {field("buffer", &Prefetch::buffer),
                                 field("indices", &Prefetch::indices)};
  static const TypeInfo info = type_of<Prefetch>("loop.Prefetch", fields, &Stmt::type_info());
  return info;
}
const TypeInfo& Alloc::type_info() {
  static const Field fields[] = {field("buffer", &Alloc::buffer, kBinds),
                                 field("body", &Alloc::body)};
  static const TypeInfo info = type_of<Alloc>("loop.Alloc", fields, &Stmt::type_info());
  return info;
}
const TypeInfo& Kernel::type_info() {
  static const Field fields[] = {field("name", &Kernel::name, kIgnored),
                                 field("body", &Kernel::body)};
  static const TypeInfo info =
      type_of<Kernel>("loop.Kernel", fields, &KernelInterface::type_info());
  return info;
}

void register_loop_types() {
  register_types({&DimNode::type_info(),   &Buffer::type_info(),
                  &Expr::type_info(),      &Var::type_info(),
                  &Literal::type_info(),   &DimValue::type_info(),
                  &Load::type_info(),      &Unary::type_info(),
                  &Binary::type_info(),    &Select::type_info(),
                  &Cast::type_info(),      &CheckedIndex::type_info(),
                  &Stage::type_info(),     &KernelInterface::type_info(),
                  &Compute::type_info(),   &Stmt::type_info(),
                  &Seq::type_info(),       &For::type_info(),
                  &Store::type_info(),     &If::type_info(),
                  &Let::type_info(),       &Alloc::type_info(),
                  &Prefetch::type_info(),  &Kernel::type_info(),
                  &Recurrence::type_info()});
}

}  // namespace tenon::loop
