// Scalar operators: the element expression of the operator's entry, with one instruction per
// operation, on integers, booleans and floats in registers.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "codegen/bytecode/comparison.h"
#include "codegen/bytecode/lower_function.h"
#include "graph/ir/check.h"
#include "graph/ir/op.h"
#include "loop/scalar.h"
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

// None for an operation that has no instruction.
struct FloatOpcode {
  Opcode opcode = Opcode::None;
  bool rounds = false;  // of an f32's operation, the result is exact only after rounding
};
template <class Op>
struct Instructions {
  Op op;
  Opcode integers = Opcode::None;  // of 64 bits with a sign, or booleans
  bool wraps = false;              // of fewer bits, the result can leave their range
  FloatOpcode floats = {};
};

constexpr bool kWraps = true, kRounds = true;

constexpr Instructions<BinaryOp> kBinary[] = {
    {BinaryOp::kAdd, Opcode::Add, kWraps, {Opcode::FAdd, kRounds}},
    {BinaryOp::kSub, Opcode::Sub, kWraps, {Opcode::FSub, kRounds}},
    {BinaryOp::kMul, Opcode::Mul, kWraps, {Opcode::FMul, kRounds}},
    // The least number by -1.
    {BinaryOp::kDiv, Opcode::TruncDiv, kWraps, {Opcode::FDiv, kRounds}},
    {BinaryOp::kFloorDiv, Opcode::FloorDiv, kWraps},
    {BinaryOp::kMod, Opcode::FloorMod},
    {BinaryOp::kRem, Opcode::TruncMod, !kWraps, {Opcode::FRem}},
    {BinaryOp::kMin, Opcode::Min, !kWraps, {Opcode::FMin}},
    {BinaryOp::kMax, Opcode::Max, !kWraps, {Opcode::FMax}},
    {BinaryOp::kEq, Opcode::Eq, !kWraps, {Opcode::FEq}},
    {BinaryOp::kNe, Opcode::Ne, !kWraps, {Opcode::FEq}},  // and a negation
    {BinaryOp::kLt, Opcode::Lt, !kWraps, {Opcode::FLt}},
    {BinaryOp::kLe, Opcode::Le, !kWraps, {Opcode::FLe}},
    {BinaryOp::kAnd, Opcode::And},
    {BinaryOp::kOr, Opcode::Or},
    {BinaryOp::kXor, Opcode::Xor},
    {BinaryOp::kShl, Opcode::Shl, kWraps},
    {BinaryOp::kShr, Opcode::Ashr},
    {BinaryOp::kByteDot},
    {BinaryOp::kPow},
    {BinaryOp::kAtan2},
};
constexpr size_t kBinaryOps = 0
#define TENON_UNARY(...)
#define TENON_BINARY(...) +1
#include "loop/scalar_ops.def"
    ;
#undef TENON_UNARY
#undef TENON_BINARY
static_assert(std::size(kBinary) == kBinaryOps, "a row for each operation of scalar_ops.def");

constexpr Instructions<UnaryOp> kUnary[] = {
    {.op = UnaryOp::kNeg, .floats = {Opcode::FNeg}},
    {.op = UnaryOp::kAbs, .floats = {Opcode::FAbs}},
    {.op = UnaryOp::kFloor, .floats = {Opcode::FFloor}},
    {.op = UnaryOp::kCeil, .floats = {Opcode::FCeil}},
    {.op = UnaryOp::kTrunc, .floats = {Opcode::FTrunc}},
    {.op = UnaryOp::kRoundEven, .floats = {Opcode::FRound}},
    {.op = UnaryOp::kSqrt, .floats = {Opcode::FSqrt, kRounds}},
    {.op = UnaryOp::kSign, .floats = {Opcode::FSign}},
};

// One without instructions for an operation that has none.
template <class Op, size_t n>
Instructions<Op> row_of(const Instructions<Op> (&rows)[n], Op op) {
  const auto* const row = std::ranges::find(rows, op, &Instructions<Op>::op);
  return row == std::end(rows) ? Instructions<Op>{op} : *row;
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
    return operands_.contains(e.get()) || loop::as_int(e).has_value() ||
           (e->kind == ExprKind::kLiteral && e->dtype.is_float());
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
    if (it != operands_.end()) return function_.value(*it->second);
    if (e->kind == ExprKind::kLiteral && e->dtype.is_float()) {
      const double known = loop::as_float(static_cast<const loop::Literal&>(*e).bits);
      return function_.value(constant_float(e->dtype, known));
    }
    return part(e, /*keeps_truth=*/true);
  }

  Arg temporary() { return code_.make(/*owns=*/false); }

  void emit(const loop::Expr& e, Arg to) {
    switch (e.kind) {
      case ExprKind::kUnary:
        return unary(static_cast<const loop::Unary&>(e), to);
      case ExprKind::kBinary:
        return binary(static_cast<const loop::Binary&>(e), to);
      case ExprKind::kCast:
        return cast(static_cast<const loop::Cast&>(e), to);
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

  void cast(const loop::Cast& e, Arg to) {
    if (e.keeps_bits && (e.dtype.is_float() || e.a->dtype.is_float())) refuse_operator();
    if (!e.a->dtype.is_float()) {
      const Arg a = part(e.a, /*keeps_truth=*/false);
      if (e.dtype.is_float()) return integer_to_float(e, to, a);
      return code_.emit(Opcode::Narrow, {to, a, Arg::dtype(e.dtype)});
    }
    const Opcode opcode = e.dtype.is_float() ? Opcode::RoundFloat : Opcode::ToInteger;
    code_.emit(opcode, {to, value_of(e.a), Arg::dtype(e.dtype)});
  }

  // Rounds to f32 or f64 and from there to a narrower type, as kernels do.
  void integer_to_float(const loop::Cast& e, Arg to, Arg a) {
    const DataType computed = e.dtype == f64 ? f64 : f32;
    const Arg result = computed == e.dtype ? to : temporary();
    if (e.a->dtype != u64) {
      code_.emit(Opcode::ToFloat, {result, a, Arg::dtype(computed)});
    } else {
      // A number beyond 2^63 is twice its half, whose last bit also stands for the bit that is
      // lost, so that it is rounded the same way.
      const Arg half = temporary(), last = temporary(), sticky = temporary(), small = temporary(),
                big = temporary(), twice = temporary(), is_big = temporary();
      code_.emit(Opcode::Shr, {half, a, Arg::imm(1)});
      code_.emit(Opcode::And, {last, a, Arg::imm(1)});
      code_.emit(Opcode::Or, {sticky, half, last});
      code_.emit(Opcode::ToFloat, {small, a, Arg::dtype(computed)});
      code_.emit(Opcode::ToFloat, {big, sticky, Arg::dtype(computed)});
      code_.emit(Opcode::FAdd, {twice, big, big});
      code_.emit(Opcode::Lt, {is_big, a, Arg::imm(0)});
      code_.emit(Opcode::Select, {result, is_big, twice, small});
    }
    if (computed != e.dtype) code_.emit(Opcode::RoundFloat, {to, result, Arg::dtype(e.dtype)});
  }

  // Emits an operation on one or two floats, whose result has this type.
  void float_operation(FloatOpcode operation, DataType dtype, Arg to, Arg a, Arg b = Arg::none()) {
    if (operation.opcode == Opcode::None) refuse_operator();
    const bool rounds = operation.rounds && dtype != f64;
    const Arg result = rounds ? temporary() : to;
    if (b.is_none()) {
      code_.emit(operation.opcode, {result, a});
    } else {
      code_.emit(operation.opcode, {result, a, b});
    }
    if (rounds) code_.emit(Opcode::RoundFloat, {to, result, Arg::dtype(dtype)});
  }

  void float_unary(const loop::Unary& e, Arg to) {
    const Arg a = value_of(e.a);
    if (e.op == UnaryOp::kIsNan) {
      const Arg is_number = temporary();
      code_.emit(Opcode::FEq, {is_number, a, a});
      return code_.emit(Opcode::Not, {to, is_number});
    }
    if (e.op == UnaryOp::kIsInf) {
      const Arg absolute = temporary();
      code_.emit(Opcode::FAbs, {absolute, a});
      return code_.emit(Opcode::FEq,
                        {to, absolute, function_.value(constant_float(f64, INFINITY))});
    }
    float_operation(row_of(kUnary, e.op).floats, e.dtype, to, a);
  }

  void unary(const loop::Unary& e, Arg to) {
    if (e.a->dtype.is_float()) return float_unary(e, to);
    const Arg a = part(e.a, e.dtype.is_bool());
    const bool is_unsigned = e.a->dtype.is_unsigned_int();
    switch (e.op) {
      case UnaryOp::kNeg:
        return wrapped(e.dtype, to, [&](Arg result) {
          code_.emit(Opcode::Sub, {result, Arg::imm(0), a});
        });
      case UnaryOp::kNot:
        return code_.emit(Opcode::Not, {to, a});
      case UnaryOp::kBitNot:
        return wrapped(e.dtype, to, [&](Arg result) { code_.emit(Opcode::Not, {result, a}); });
      case UnaryOp::kAbs: {  // the maximum of a and -a, which wraps
        if (is_unsigned) return code_.emit(Opcode::Move, {to, a});
        const Arg negated = temporary();
        code_.emit(Opcode::Sub, {negated, Arg::imm(0), a});
        return wrapped(e.dtype, to, [&](Arg result) {
          code_.emit(Opcode::Max, {result, a, negated});
        });
      }
      case UnaryOp::kSign: {
        if (is_unsigned) {
          const Arg is_set = temporary();
          code_.emit(Opcode::Ne, {is_set, a, Arg::imm(0)});
          return code_.emit(Opcode::Narrow, {to, is_set, Arg::dtype(e.dtype)});
        }
        const Arg below = temporary();
        code_.emit(Opcode::Min, {below, a, Arg::imm(1)});
        return code_.emit(Opcode::Max, {to, below, Arg::imm(-1)});
      }
      case UnaryOp::kFloor:
      case UnaryOp::kCeil:
      case UnaryOp::kTrunc:
      case UnaryOp::kRoundEven:
        return code_.emit(Opcode::Move, {to, a});
      default:
        refuse_operator();
    }
  }

  // Emits an operation, and wraps its result to an integer type of fewer than 64 bits.
  template <class Emit>
  void wrapped(DataType dtype, Arg to, const Emit& emit) {
    const bool narrow = dtype.is_int() && dtype.bits < 64;
    const Arg result = narrow ? temporary() : to;
    emit(result);
    if (narrow) code_.emit(Opcode::Narrow, {to, result, Arg::dtype(dtype)});
  }

  void float_binary(const loop::Binary& e, Arg to) {
    const Arg a = value_of(e.a), b = value_of(e.b);
    if (e.op == BinaryOp::kNe) {
      const Arg equal = temporary();
      code_.emit(Opcode::FEq, {equal, a, b});
      return code_.emit(Opcode::Not, {to, equal});
    }
    if (e.op == BinaryOp::kFloorDiv) {
      const Arg quotient = temporary();
      code_.emit(Opcode::FDiv, {quotient, a, b});
      return float_operation({Opcode::FFloor, true}, e.dtype, to, quotient);
    }
    if (e.op == BinaryOp::kMod) return float_mod(e.dtype, to, a, b);
    float_operation(row_of(kBinary, e.op).floats, e.dtype, to, a, b);
  }

  // The remainder with the sign of b: b is added to one that isn't 0 and has the other sign.
  void float_mod(DataType dtype, Arg to, Arg a, Arg b) {
    const Arg zero = function_.value(constant_float(f64, 0));
    const Arg rem = temporary(), sum = temporary(), is_zero = temporary(), below = temporary(),
              b_below = temporary(), same = temporary(), keep = temporary();
    code_.emit(Opcode::FRem, {rem, a, b});
    float_operation({Opcode::FAdd, true}, dtype, sum, rem, b);
    code_.emit(Opcode::FEq, {is_zero, rem, zero});
    code_.emit(Opcode::FLt, {below, rem, zero});
    code_.emit(Opcode::FLt, {b_below, b, zero});
    code_.emit(Opcode::Eq, {same, below, b_below});
    code_.emit(Opcode::Or, {keep, same, is_zero});
    code_.emit(Opcode::Select, {to, keep, rem, sum});
  }

  void binary(const loop::Binary& e, Arg to) {
    if (e.a->dtype.is_float()) return float_binary(e, to);
    const Instructions<BinaryOp> row = row_of(kBinary, e.op);
    Opcode opcode = row.integers;
    if (opcode == Opcode::None) refuse_operator();
    const bool keeps_truth = e.dtype.is_bool() && !info(e.op).tests;
    Arg a = part(e.a, keeps_truth), b = part(e.b, keeps_truth);
    if (e.a->dtype == u64 && unsigned_binary(e.op, to, a, b)) return;
    if (e.op == BinaryOp::kShr) return shift_right(e.dtype, to, a, b);
    if (const auto exchanged = exchange(opcode); a.is(vm::ArgKind::Immediate) && exchanged) {
      opcode = *exchanged;
      std::swap(a, b);
    }
    const DataType dtype = row.wraps ? e.dtype : i64;
    wrapped(dtype, to, [&](Arg result) { code_.emit(opcode, {result, a, b}); });
  }

  // 0 for amounts that aren't below the number of bits.
  void shift_right(DataType dtype, Arg to, Arg a, Arg b) {
    if (dtype.is_unsigned_int()) return code_.emit(Opcode::Shr, {to, a, b});
    if (dtype == i64) return code_.emit(Opcode::Ashr, {to, a, b});
    const Arg shifted = temporary(), is_amount = temporary();
    code_.emit(Opcode::Ashr, {shifted, a, b});
    code_.emit(Opcode::Ult, {is_amount, b, Arg::imm(dtype.bits)});
    code_.emit(Opcode::Select, {to, is_amount, shifted, Arg::imm(0)});
  }

  // Emits an operation on numbers of u64 that differs from that on numbers of i64; false if it
  // doesn't differ.
  bool unsigned_binary(BinaryOp op, Arg to, Arg a, Arg b) {
    switch (op) {
      case BinaryOp::kLt:
        code_.emit(Opcode::Ult, {to, a, b});
        return true;
      case BinaryOp::kLe: {
        const Arg above = temporary();
        code_.emit(Opcode::Ult, {above, b, a});
        code_.emit(Opcode::Not, {to, above});
        return true;
      }
      case BinaryOp::kMin:
      case BinaryOp::kMax: {
        const bool least = op == BinaryOp::kMin;
        const Arg below = temporary();
        code_.emit(Opcode::Ult, {below, a, b});
        code_.emit(Opcode::Select, {to, below, least ? a : b, least ? b : a});
        return true;
      }
      case BinaryOp::kDiv:
      case BinaryOp::kFloorDiv:
        unsigned_division(to, Arg::none(), a, b);
        return true;
      case BinaryOp::kMod:
      case BinaryOp::kRem:
        unsigned_division(Arg::none(), to, a, b);
        return true;
      default:
        return false;
    }
  }

  // The quotient, or with `remainder` that, of numbers of u64 by instructions on numbers with a
  // sign (Hacker's Delight, 9-3): half of `a` is not negative; twice its quotient is the
  // quotient or one less. A divisor beyond 2^63 goes into `a` once or not at all.
  void unsigned_division(Arg quotient, Arg remainder, Arg a, Arg b) {
    const auto make = [&](Opcode opcode, Arg x, Arg y) {
      const Arg result = temporary();
      code_.emit(opcode, {result, x, y});
      return result;
    };
    const auto choose = [&](Arg condition, Arg x, Arg y) {
      const Arg result = temporary();
      code_.emit(Opcode::Select, {result, condition, x, y});
      return result;
    };
    const Arg half = make(Opcode::TruncDiv, make(Opcode::Shr, a, Arg::imm(1)), b);
    const Arg low = make(Opcode::Shl, half, Arg::imm(1));
    const Arg rest = make(Opcode::Sub, a, make(Opcode::Mul, low, b));
    const Arg is_big = make(Opcode::Lt, b, Arg::imm(0));
    const Arg less = make(Opcode::Ult, choose(is_big, a, rest), b);  // whether it is exact
    if (!quotient.is_none()) {
      const Arg above = make(Opcode::Add, low, Arg::imm(1));
      const Arg if_big = choose(less, Arg::imm(0), Arg::imm(1));
      code_.emit(Opcode::Select, {quotient, is_big, if_big, choose(less, low, above)});
    } else {
      const Arg start = choose(is_big, a, rest);
      code_.emit(Opcode::Select, {remainder, less, start, make(Opcode::Sub, start, b)});
    }
  }

  void select(const loop::Select& e, Arg to) {
    const Arg condition = part(e.condition, /*keeps_truth=*/true);
    const Arg if_true = value_of(e.if_true), if_false = value_of(e.if_false);
    code_.emit(Opcode::Select, {to, condition, if_true, if_false});
  }

  [[noreturn]] void refuse_operator() const {
    function_.refuse(cat(call_.callee, " on scalars is ", kOnlyChecked),
                     "use a tensor of rank 0 instead, such as tensor[f32]");
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
