// Scalar operators: the element expression of the operator's entry, with one instruction per
// operation, on integers and booleans in registers.
#include <algorithm>
#include <unordered_map>

#include "codegen/bytecode/comparison.h"
#include "codegen/bytecode/lower_function.h"
#include "graph/ir/op.h"
#include "loop/walk.h"

namespace tenon::codegen {

using namespace graph;  // NOLINT: this file is about graph IR only
using loop::BinaryOp;
using loop::ExprKind;
using loop::ExprRef;
using loop::UnaryOp;
using vm::Arg;
using vm::Opcode;

namespace {

// The instruction for an operation on two integers or booleans.
std::optional<Opcode> opcode_of(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd:
      return Opcode::Add;
    case BinaryOp::kSub:
      return Opcode::Sub;
    case BinaryOp::kMul:
      return Opcode::Mul;
    case BinaryOp::kDiv:
      return Opcode::TruncDiv;
    case BinaryOp::kFloorDiv:
      return Opcode::FloorDiv;
    case BinaryOp::kMod:
      return Opcode::FloorMod;
    case BinaryOp::kRem:
      return Opcode::TruncMod;
    case BinaryOp::kMin:
      return Opcode::Min;
    case BinaryOp::kMax:
      return Opcode::Max;
    case BinaryOp::kEq:
      return Opcode::Eq;
    case BinaryOp::kNe:
      return Opcode::Ne;
    case BinaryOp::kLt:
      return Opcode::Lt;
    case BinaryOp::kLe:
      return Opcode::Le;
    case BinaryOp::kAnd:
      return Opcode::And;
    case BinaryOp::kOr:
      return Opcode::Or;
    case BinaryOp::kXor:
      return Opcode::Xor;
    case BinaryOp::kShl:
      return Opcode::Shl;
    case BinaryOp::kShr:  // arithmetic: scalars' only integer type is the signed i64
      return Opcode::Ashr;
    case BinaryOp::kPow:
    case BinaryOp::kAtan2:
      break;
  }
  return std::nullopt;
}

bool is_float_operation(const loop::Expr& e) {
  if (e.kind == ExprKind::kSelect) return false;  // selects values of any type
  bool found = e.dtype.is_float();
  loop::for_operands(e, [&](const ExprRef& x) { found = found || x->dtype.is_float(); });
  return found;
}

}  // namespace

void FunctionLowering::lower_scalar_op(const Call& call, const TypeRef& type, Arg dst) {
  const Operator* op = OperatorTable::global().find(call.callee);
  TENON_ASSERT(type.as<ScalarType>() && op && op->element, "operator ", call.callee,
               " was not lowered; its result is ", to_text(type));
  if (dst.is_none()) return;
  std::unordered_map<const loop::Expr*, const Operand*> operands;
  std::vector<ExprRef> elements(std::max(call.args.size(), op->operands.size()));
  for (size_t i = 0; i < call.args.size(); ++i) {
    if (!call.args[i]) continue;
    elements[i] = loop::var(op->operands[i].name, type_of(call.args[i]).as<ScalarType>()->dtype);
    operands[elements[i].get()] = &call.args[i];
  }
  const ExprRef root = op->element(InferContext(call, nullptr), elements);

  std::unordered_map<const loop::Expr*, Arg> computed;  // subexpressions of the root
  // A subexpression as an operand read as an integer; a constant boolean must not become one.
  auto part = [&](const ExprRef& e, bool keeps_truth) {
    if (auto it = operands.find(e.get()); it != operands.end()) {
      return keeps_truth ? in_register(*it->second) : integer(*it->second);
    }
    if (auto it = computed.find(e.get()); it != computed.end()) return it->second;
    const int64_t known = *loop::as_int(e);
    if (!e->dtype.is_bool()) return integer(constant_int(known));
    return keeps_truth ? in_register(constant_bool(known != 0)) : Arg::imm(known);
  };
  auto part_value = [&](const ExprRef& e) {
    auto it = operands.find(e.get());
    return it != operands.end() ? value(*it->second) : part(e, true);
  };
  auto temporary = [&] { return code_.make(/*owns=*/false); };
  auto undefined = [&] {
    refuse(cat("operator ", call.callee, " is not defined on scalars in registers"));
  };
  auto unary = [&](const loop::Unary& e, Arg to) {
    const Arg a = part(e.a, e.dtype.is_bool());
    if (e.op == UnaryOp::kNeg) {
      code_.emit(Opcode::Sub, {to, Arg::imm(0), a});
    } else if (e.op == UnaryOp::kNot || e.op == UnaryOp::kBitNot) {
      code_.emit(Opcode::Not, {to, a});
    } else if (e.op == UnaryOp::kAbs) {  // the maximum of a and -a, which wraps
      const Arg negated = temporary();
      code_.emit(Opcode::Sub, {negated, Arg::imm(0), a});
      code_.emit(Opcode::Max, {to, a, negated});
    } else if (e.op == UnaryOp::kSign) {
      const Arg below = temporary();
      code_.emit(Opcode::Min, {below, a, Arg::imm(1)});
      code_.emit(Opcode::Max, {to, below, Arg::imm(-1)});
    } else {
      undefined();
    }
  };
  auto binary = [&](const loop::Binary& e, Arg to) {
    std::optional<Opcode> opcode = opcode_of(e.op);
    if (!opcode) undefined();
    const bool keeps_truth = e.dtype.is_bool() && !info(e.op).tests;
    Arg a = part(e.a, keeps_truth), b = part(e.b, keeps_truth);
    if (const auto exchanged = exchange(*opcode); a.is(vm::ArgKind::Immediate) && exchanged) {
      opcode = exchanged;
      std::swap(a, b);
    }
    code_.emit(*opcode, {to, a, b});
  };
  auto emit = [&](const loop::Expr& e, Arg to) {
    if (is_float_operation(e)) {
      refuse(cat(call.callee,
                 " on floating-point scalars is parsed and checked, but not run by this version"),
             "use a tensor of rank 0 instead, such as tensor[f32]");
    }
    if (e.kind == ExprKind::kUnary) return unary(static_cast<const loop::Unary&>(e), to);
    if (e.kind == ExprKind::kBinary) return binary(static_cast<const loop::Binary&>(e), to);
    if (e.kind == ExprKind::kCast) {
      code_.emit(Opcode::Narrow,
                 {to, part(static_cast<const loop::Cast&>(e).a, false), Arg::dtype(e.dtype)});
      return;
    }
    TENON_ASSERT(e.kind == ExprKind::kSelect, "an element of a scalar that loads");
    const auto& s = static_cast<const loop::Select&>(e);
    code_.emit(Opcode::Select,
               {to, part(s.condition, true), part_value(s.if_true), part_value(s.if_false)});
  };
  loop::post_order(root, [&](const ExprRef& e) {
    if (e == root || operands.contains(e.get()) || loop::as_int(e)) return;
    const Arg result = temporary();
    emit(*e, result);
    computed[e.get()] = result;
  });
  if (operands.contains(root.get()) || loop::as_int(root)) {
    code_.emit(Opcode::Move, {dst, part_value(root)});
  } else {
    emit(*root, dst);
  }
}

}  // namespace tenon::codegen
