// Scalar operators: the element expression of the operator's entry, with one instruction per
// operation, on integers and booleans in registers.
#include <algorithm>
#include <unordered_map>

#include "codegen/bytecode/comparison.h"
#include "codegen/bytecode/lower_function.h"
#include "graph/ir/check.h"
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

// One call: its operands and the operator's element expression over them.
class FunctionLowering::ScalarLowering {
 public:
  ScalarLowering(FunctionLowering& function, const Call& call, const Operator& op)
      : function_(function), code_(function.code_), call_(call) {
    std::vector<ExprRef> elements(std::max(call.args.size(), op.operands.size()));
    for (size_t i = 0; i < call.args.size(); ++i) {
      if (!call.args[i]) continue;
      elements[i] = loop::var(op.operands[i].name, type_of(call.args[i]).as<ScalarType>()->dtype);
      operands_[elements[i].get()] = &call.args[i];
    }
    root_ = op.element(InferContext(call, nullptr), elements);
  }

  // Emits the expression, whose value goes to `dst`.
  void lower(Arg dst) {
    loop::post_order(root_, [&](const ExprRef& e) {
      if (e == root_ || is_ready(e)) return;
      const Arg result = temporary();
      emit(*e, result);
      computed_[e.get()] = result;
    });
    if (is_ready(root_)) {
      code_.emit(Opcode::Move, {dst, value_of(root_)});
    } else {
      emit(*root_, dst);
    }
  }

 private:
  // Whether the expression needs no instruction: an operand or a literal.
  bool is_ready(const ExprRef& e) const {
    return operands_.contains(e.get()) || loop::as_int(e).has_value();
  }

  // A subexpression as an operand that is read as an integer. With `keeps_truth`, a constant
  // boolean stays one.
  Arg part(const ExprRef& e, bool keeps_truth) {
    if (auto it = operands_.find(e.get()); it != operands_.end()) {
      return keeps_truth ? function_.in_register(*it->second) : function_.integer(*it->second);
    }
    if (auto it = computed_.find(e.get()); it != computed_.end()) return it->second;
    const int64_t known = *loop::as_int(e);
    if (!e->dtype.is_bool()) return function_.integer(constant_int(known));
    return keeps_truth ? function_.in_register(constant_bool(known != 0)) : Arg::imm(known);
  }

  // A subexpression as an operand of any type.
  Arg value_of(const ExprRef& e) {
    auto it = operands_.find(e.get());
    return it != operands_.end() ? function_.value(*it->second) : part(e, /*keeps_truth=*/true);
  }

  Arg temporary() { return code_.make(/*owns=*/false); }

  void emit(const loop::Expr& e, Arg to) {
    if (is_float_operation(e)) {
      function_.refuse(cat(call_.callee, " on floating-point scalars is ", kOnlyChecked),
                       "use a tensor of rank 0 instead, such as tensor[f32]");
    }
    switch (e.kind) {
      case ExprKind::kUnary:
        return unary(static_cast<const loop::Unary&>(e), to);
      case ExprKind::kBinary:
        return binary(static_cast<const loop::Binary&>(e), to);
      case ExprKind::kCast: {
        const Arg a = part(static_cast<const loop::Cast&>(e).a, /*keeps_truth=*/false);
        return code_.emit(Opcode::Narrow, {to, a, Arg::dtype(e.dtype)});
      }
      case ExprKind::kSelect:
        return select(static_cast<const loop::Select&>(e), to);
      case ExprKind::kVar:
      case ExprKind::kLiteral:
      case ExprKind::kDimValue:
      case ExprKind::kLoad:
      case ExprKind::kCheckedIndex:
        break;
    }
    TENON_ASSERT(false, "an element of a scalar that loads");
  }

  void unary(const loop::Unary& e, Arg to) {
    const Arg a = part(e.a, e.dtype.is_bool());
    switch (e.op) {
      case UnaryOp::kNeg:
        return code_.emit(Opcode::Sub, {to, Arg::imm(0), a});
      case UnaryOp::kNot:
      case UnaryOp::kBitNot:
        return code_.emit(Opcode::Not, {to, a});
      case UnaryOp::kAbs: {  // the maximum of a and -a, which wraps
        const Arg negated = temporary();
        code_.emit(Opcode::Sub, {negated, Arg::imm(0), a});
        return code_.emit(Opcode::Max, {to, a, negated});
      }
      case UnaryOp::kSign: {
        const Arg below = temporary();
        code_.emit(Opcode::Min, {below, a, Arg::imm(1)});
        return code_.emit(Opcode::Max, {to, below, Arg::imm(-1)});
      }
      default:
        refuse_operator();
    }
  }

  void binary(const loop::Binary& e, Arg to) {
    std::optional<Opcode> opcode = opcode_of(e.op);
    if (!opcode) refuse_operator();
    const bool keeps_truth = e.dtype.is_bool() && !info(e.op).tests;
    Arg a = part(e.a, keeps_truth), b = part(e.b, keeps_truth);
    if (const auto exchanged = exchange(*opcode); a.is(vm::ArgKind::Immediate) && exchanged) {
      opcode = exchanged;
      std::swap(a, b);
    }
    code_.emit(*opcode, {to, a, b});
  }

  void select(const loop::Select& e, Arg to) {
    const Arg condition = part(e.condition, /*keeps_truth=*/true);
    const Arg if_true = value_of(e.if_true), if_false = value_of(e.if_false);
    code_.emit(Opcode::Select, {to, condition, if_true, if_false});
  }

  [[noreturn]] void refuse_operator() const {
    function_.refuse(cat("operator ", call_.callee, " is not defined on scalars in registers"));
  }

  FunctionLowering& function_;
  VirtualCode& code_;
  const Call& call_;
  ExprRef root_;
  std::unordered_map<const loop::Expr*, const Operand*> operands_;  // by the variable for them
  std::unordered_map<const loop::Expr*, Arg> computed_;             // subexpressions of root_
};

void FunctionLowering::lower_scalar_op(const Call& call, const TypeRef& type, Arg dst) {
  const Operator* op = OperatorTable::global().find(call.callee);
  TENON_ASSERT(type.as<ScalarType>() && op && op->element, "operator ", call.callee,
               " was not lowered; its result is ", to_text(type));
  if (!dst.is_none()) ScalarLowering(*this, call, *op).lower(dst);
}

}  // namespace tenon::codegen
