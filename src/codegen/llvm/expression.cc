// Scalar expressions of loop IR as LLVM values: of one element, or of all lanes of a vector loop.
#include <cstring>
#include <limits>
#include "codegen/llvm/lower.h"

#include "support/error.h"

namespace tenon::codegen {

using loop::BinaryOp;
using loop::ExprKind;
using loop::UnaryOp;

namespace {

constexpr int kMaxDepth = 2000;  // of nested expressions: what the native stack can take

// The operands that are always computed with `e`, and those that only may be.
template <class F>
void for_operands(const loop::Expr& e, F&& f) {
  switch (e.kind) {
    case ExprKind::kVar:
    case ExprKind::kLiteral:
    case ExprKind::kDimValue:
      return;
    case ExprKind::kLoad:
      for (const auto& i : static_cast<const loop::Load&>(e).indices) f(*i);
      return;
    case ExprKind::kUnary:
      return f(*static_cast<const loop::Unary&>(e).a);
    case ExprKind::kBinary:
      f(*static_cast<const loop::Binary&>(e).a);
      return f(*static_cast<const loop::Binary&>(e).b);
    case ExprKind::kSelect:
      f(*static_cast<const loop::Select&>(e).condition);
      f(*static_cast<const loop::Select&>(e).if_true);
      return f(*static_cast<const loop::Select&>(e).if_false);
    case ExprKind::kCast:
      return f(*static_cast<const loop::Cast&>(e).a);
    case ExprKind::kCheckedIndex:
      return f(*static_cast<const loop::CheckedIndex&>(e).index);
  }
}

bool is_division(BinaryOp op) {
  return op == BinaryOp::kDiv || op == BinaryOp::kFloorDiv || op == BinaryOp::kMod ||
         op == BinaryOp::kRem;
}

std::optional<int64_t> literal_value(const loop::Expr& e) {
  if (e.kind == ExprKind::kLiteral && !e.dtype.is_float())
    return static_cast<const loop::Literal&>(e).bits;
  if (e.kind == ExprKind::kDimValue) return static_cast<const loop::DimValue&>(e).dim.as_const();
  return std::nullopt;
}

// The nodes that evaluating `e` always evaluates.
void always_computed(const loop::Expr& e, std::unordered_set<const loop::Expr*>* nodes) {
  if (e.kind == ExprKind::kLiteral || e.kind == ExprKind::kVar || !nodes->insert(&e).second) return;
  if (e.kind == ExprKind::kSelect)
    return always_computed(*static_cast<const loop::Select&>(e).condition, nodes);
  for_operands(e, [&](const loop::Expr& a) { always_computed(a, nodes); });
}

[[noreturn]] void no_code(std::string_view what, DataType t) {
  throw Error(ErrorKind::Unsupported, cat("no code for ", what, " of ", t));
}

bool is_16_bit_float(DataType t) {
  return t.is_float() && t.bits == 16;
}

}  // namespace

// ---- what is known of an expression before it is emitted ----------------------------------------

bool BodyWriter::varies(const loop::Expr& e) {
  if (lane_var_ == nullptr || e.kind == ExprKind::kLiteral) return false;
  auto [it, is_new] = varies_.try_emplace(&e, false);
  if (!is_new) return it->second;
  bool result = false;
  if (e.kind == ExprKind::kVar) {
    const auto* var = static_cast<const loop::Var*>(&e);
    if (var == lane_var_) {
      result = true;
    } else if (auto let = let_values_.find(var); let != let_values_.end()) {
      result = varies(*let->second);
    }
  } else {
    if (e.kind == ExprKind::kLoad) {
      auto place = places_.find(static_cast<const loop::Load&>(e).buffer.get());
      result = place != places_.end() && place->second.lanes > 1;
    }
    for_operands(e, [&](const loop::Expr& a) { result = varies(a) || result; });
  }
  return varies_[&e] = result;
}

bool BodyWriter::can_fail(const loop::Expr& e) {
  if (e.kind == ExprKind::kLoad || e.kind == ExprKind::kCheckedIndex) return true;
  if (e.kind == ExprKind::kLiteral || e.kind == ExprKind::kVar) return false;
  auto [it, is_new] = can_fail_.try_emplace(&e, false);
  if (!is_new) return it->second;
  bool result = false;
  if (e.kind == ExprKind::kBinary && !e.dtype.is_float()) {
    const auto& binary = static_cast<const loop::Binary&>(e);
    result = is_division(binary.op) && literal_value(*binary.b).value_or(0) == 0;
  }
  for_operands(e, [&](const loop::Expr& a) { result = can_fail(a) || result; });
  return can_fail_[&e] = result;
}

bool BodyWriter::nonnegative(const loop::Expr& e) {
  auto it = nonnegative_.find(&e);
  if (it != nonnegative_.end()) return it->second;
  const bool result = find_nonnegative(e);
  nonnegative_[&e] = result;
  return result;
}

// Of index arithmetic, whose values are far from overflow: literals are kept small for that.
bool BodyWriter::find_nonnegative(const loop::Expr& e) {
  switch (e.kind) {
    case ExprKind::kLiteral: {
      auto v = literal_value(e);
      return v && *v >= 0 && *v < (int64_t{1} << 32);
    }
    case ExprKind::kDimValue:
      return proves_nonnegative(static_cast<const loop::DimValue&>(e).dim);
    case ExprKind::kVar: {
      const auto* var = static_cast<const loop::Var*>(&e);
      if (auto let = let_values_.find(var); let != let_values_.end())
        return nonnegative(*let->second);
      return nonnegative_vars_.count(var) != 0;
    }
    case ExprKind::kCheckedIndex:
      return true;
    case ExprKind::kBinary: {
      const auto& b = static_cast<const loop::Binary&>(e);
      if (!e.dtype.is_int()) return false;
      switch (b.op) {
        case BinaryOp::kAdd:
        case BinaryOp::kMul:
        case BinaryOp::kMin:
        case BinaryOp::kFloorDiv:
        case BinaryOp::kDiv:
          return nonnegative(*b.a) && nonnegative(*b.b);
        case BinaryOp::kMod:
          return nonnegative(*b.b);
        default:
          return false;
      }
    }
    default:
      return false;
  }
}

// A divisor of the value in lane 0. Looks through few levels, as index arithmetic has.
int64_t BodyWriter::first_lane_multiple(const loop::Expr& e, int levels) {
  if (levels == 0) return 1;
  constexpr int64_t kAny = int64_t{1} << 30;
  auto gcd = [](int64_t a, int64_t b) {
    while (b != 0) std::swap(a %= b, b);
    return a;
  };
  if (auto v = literal_value(e))
    return *v == 0 ? kAny : gcd(kAny, *v < 0 && *v != INT64_MIN ? -*v : *v);
  if (e.kind == ExprKind::kVar) {
    const auto* var = static_cast<const loop::Var*>(&e);
    if (var == lane_var_) return lane_begin_multiple_;
    if (auto let = let_values_.find(var); let != let_values_.end())
      return first_lane_multiple(*let->second, levels - 1);
    return 1;
  }
  if (e.kind != ExprKind::kBinary) return 1;
  const auto& b = static_cast<const loop::Binary&>(e);
  if (b.op == BinaryOp::kAdd || b.op == BinaryOp::kSub)
    return gcd(first_lane_multiple(*b.a, levels - 1), first_lane_multiple(*b.b, levels - 1));
  if (b.op == BinaryOp::kMul) {
    int64_t product = first_lane_multiple(*b.a, levels - 1);
    int64_t other = first_lane_multiple(*b.b, levels - 1);
    return other >= kAny / product ? kAny : product * other;
  }
  return 1;
}

std::optional<int64_t> BodyWriter::lane_stride(const loop::Expr& e) {
  if (!varies(e)) return 0;
  auto it = lane_strides_.find(&e);
  if (it != lane_strides_.end()) return it->second;
  const auto result = find_lane_stride(e);
  lane_strides_[&e] = result;
  return result;
}

std::optional<int64_t> BodyWriter::find_lane_stride(const loop::Expr& e) {
  if (e.kind == ExprKind::kVar) {
    const auto* var = static_cast<const loop::Var*>(&e);
    if (var == lane_var_) return 1;
    if (auto let = let_values_.find(var); let != let_values_.end())
      return lane_stride(*let->second);
    return std::nullopt;
  }
  if (e.kind != ExprKind::kBinary || e.dtype != i64) return std::nullopt;
  const auto& b = static_cast<const loop::Binary&>(e);
  auto left = lane_stride(*b.a), right = lane_stride(*b.b);
  if (!left || !right) return std::nullopt;
  auto small = [](int64_t v) { return v > -(1 << 24) && v < (1 << 24); };
  if (!small(*left) || !small(*right)) return std::nullopt;
  switch (b.op) {
    case BinaryOp::kAdd:
      return *left + *right;
    case BinaryOp::kSub:
      return *left - *right;
    case BinaryOp::kMul: {
      auto factor = literal_value(*b.b);
      if (*right == 0 && factor && small(*factor)) return *left * *factor;
      factor = literal_value(*b.a);
      if (*left == 0 && factor && small(*factor)) return *right * *factor;
      return std::nullopt;
    }
    // All lanes lie within one period where the first is on a multiple of the width.
    case BinaryOp::kFloorDiv:
    case BinaryOp::kMod: {
      auto period = literal_value(*b.b);
      if (!period || *period <= 0 || *left != 1 || *period % width_ != 0 ||
          first_lane_multiple(*b.a) % width_ != 0)
        return std::nullopt;
      return b.op == BinaryOp::kMod ? 1 : 0;
    }
    default:
      return std::nullopt;
  }
}

// ---- evaluation ---------------------------------------------------------------------------------

int BodyWriter::nesting(const loop::Expr& e, int level) {
  if (e.kind == ExprKind::kLiteral || e.kind == ExprKind::kVar) return 1;
  auto it = nesting_.find(&e);
  int depth = 1;
  if (it != nesting_.end()) {
    depth = it->second;
  } else {
    if (level < kMaxDepth)
      for_operands(
          e, [&](const loop::Expr& a) { depth = std::max(depth, 1 + nesting(a, level + 1)); });
    nesting_[&e] = depth;
  }
  if (level + depth > kMaxDepth)
    throw Error(ErrorKind::Unsupported,
                cat("kernel '", kernel_.name, "' nests expressions too deeply"))
        .expected(cat("at most ", kMaxDepth, " levels"));
  return depth;
}

Value BodyWriter::evaluate(const loop::ExprRef& e) {
  nesting(*e, 0);
  memo_.emplace_back();
  Value result = value(*e);
  memo_.pop_back();
  return result;
}

Value BodyWriter::value(const loop::Expr& e) {
  if (e.kind == ExprKind::kLiteral) return literal(static_cast<const loop::Literal&>(e));
  if (e.kind == ExprKind::kVar) {
    auto it = vars_.find(static_cast<const loop::Var*>(&e));
    TENON_ASSERT(it != vars_.end(), "kernel '", kernel_.name, "' uses variable '",
                 static_cast<const loop::Var&>(e).name, "' outside its scope");
    return it->second;
  }
  for (auto scope = memo_.rbegin(); scope != memo_.rend(); ++scope) {
    auto it = scope->find(&e);
    if (it != scope->end()) return it->second;
  }
  const bool guard = mask_ != nullptr && can_fail(e) && !varies(e);
  Value result = guard ? guarded_by_lanes(e) : compute(e);
  memo_.back()[&e] = result;
  return result;
}

Value BodyWriter::compute(const loop::Expr& e) {
  switch (e.kind) {
    case ExprKind::kDimValue:
      return {dim(static_cast<const loop::DimValue&>(e).dim)};
    case ExprKind::kLoad:
      return load(static_cast<const loop::Load&>(e));
    case ExprKind::kUnary:
      return unary(static_cast<const loop::Unary&>(e));
    case ExprKind::kBinary:
      return binary(static_cast<const loop::Binary&>(e));
    case ExprKind::kSelect:
      return select(static_cast<const loop::Select&>(e));
    case ExprKind::kCast: {
      const auto& c = static_cast<const loop::Cast&>(e);
      Value a = value(*c.a);
      return {convert(a.v, c.a->dtype, c.dtype), a.lanes};
    }
    case ExprKind::kCheckedIndex:
      return checked_index(static_cast<const loop::CheckedIndex&>(e));
    case ExprKind::kVar:
    case ExprKind::kLiteral:
      break;
  }
  throw Error(ErrorKind::Internal, cat("kernel '", kernel_.name, "' holds an unknown expression"));
}

llvm::Value* BodyWriter::dim(const Dim& d) {
  if (auto c = d.as_const()) return entry_.getInt64(static_cast<uint64_t>(*c));
  auto [it, is_new] = dims_.try_emplace(&d.node());
  if (is_new)
    it->second = DimWriter(entry_, [this](std::string_view name) {
                   auto s = symbols_.find(name);
                   TENON_ASSERT(s != symbols_.end(), "kernel '", kernel_.name,
                                "' doesn't bind symbol '", name, "'");
                   return s->second;
                 }).write(d);
  return dims_[&d.node()];
}

llvm::Value* BodyWriter::broadcast(Value v) {
  return v.lanes ? v.v : all_lanes(v.v);
}

llvm::Value* BodyWriter::all_lanes(llvm::Value* scalar) {
  return b_.CreateVectorSplat(width_, scalar);
}

llvm::Value* BodyWriter::mask_and(llvm::Value* condition) {
  return mask_ ? b_.CreateAnd(mask_, condition) : condition;
}

llvm::Value* BodyWriter::active(llvm::Value* lanes) {
  return lanes->getType()->isVectorTy() ? mask_and(lanes) : lanes;
}

llvm::Value* BodyWriter::per_lane(
    llvm::ArrayRef<llvm::Value*> operands,
    const std::function<llvm::Value*(llvm::ArrayRef<llvm::Value*>)>& f) {
  if (!operands[0]->getType()->isVectorTy()) return f(operands);
  llvm::Value* result = nullptr;
  for (unsigned lane = 0; lane < width_; ++lane) {
    llvm::SmallVector<llvm::Value*, 4> scalars;
    for (llvm::Value* operand : operands) scalars.push_back(b_.CreateExtractElement(operand, lane));
    llvm::Value* element = f(scalars);
    if (result == nullptr)
      result = llvm::PoisonValue::get(llvm::FixedVectorType::get(element->getType(), width_));
    result = b_.CreateInsertElement(result, element, lane);
  }
  return result;
}

Value BodyWriter::guarded_by_lanes(const loop::Expr& e) {
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* some = block("some.lane");
  llvm::BasicBlock* after = block("after");
  b_.CreateCondBr(b_.CreateOrReduce(mask_), some, after);
  b_.SetInsertPoint(some);
  llvm::Value* outer = std::exchange(mask_, nullptr);
  memo_.emplace_back();
  llvm::Value* v = value(e).v;
  memo_.pop_back();
  mask_ = outer;
  some = b_.GetInsertBlock();
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
  llvm::PHINode* result = b_.CreatePHI(v->getType(), 2);
  result->addIncoming(llvm::Constant::getNullValue(v->getType()), before);
  result->addIncoming(v, some);
  return {result};
}

// ---- memory -------------------------------------------------------------------------------------

llvm::Type* BodyWriter::register_type(DataType t) const {
  if (t.lanes == 1) {
    if (t.is_bool()) return m_.i1;
    if (t.is_int() && (t.bits == 8 || t.bits == 16 || t.bits == 32 || t.bits == 64))
      return llvm::IntegerType::get(m_.context, t.bits);
    if (t == f32 || t == f16 || t == bf16) return llvm::Type::getFloatTy(m_.context);
    if (t == f64) return llvm::Type::getDoubleTy(m_.context);
  }
  no_code("elements", t);
}

llvm::Type* BodyWriter::memory_type(DataType t) const {
  if (t.is_bool()) return m_.i8;
  if (is_16_bit_float(t)) return m_.i16;
  return register_type(t);
}

llvm::Value* BodyWriter::from_memory(llvm::Value* v, DataType t) {
  if (t.is_bool()) return b_.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType()));
  if (t == f16) return m_.math.from_half({&b_, v}).v;
  if (t == bf16) return m_.math.from_bfloat({&b_, v}).v;
  return v;
}

llvm::Value* BodyWriter::to_memory(llvm::Value* v, DataType t) {
  if (t.is_bool()) return b_.CreateZExt(v, Num{&b_, v}.shape_of(m_.i8));
  if (t == f16) return m_.math.to_half({&b_, v}).v;
  if (t == bf16) return m_.math.to_bfloat({&b_, v}).v;
  return v;
}

llvm::Value* BodyWriter::rounded(llvm::Value* v, DataType t) {
  return is_16_bit_float(t) ? from_memory(to_memory(v, t), t) : v;
}

llvm::Value* BodyWriter::first_lane(const loop::Expr& e) {
  if (!varies(e)) return value(e).v;
  if (e.kind == ExprKind::kVar) {
    const auto* var = static_cast<const loop::Var*>(&e);
    return var == lane_var_ ? lane_begin_ : let_first_lanes_.at(var);
  }
  const auto& binary = static_cast<const loop::Binary&>(e);
  return integer_binary(binary, first_lane(*binary.a), first_lane(*binary.b));
}

BodyWriter::Address BodyWriter::address(const loop::Buffer& buffer,
                                        const Array<loop::ExprRef>& indices) {
  const size_t rank = buffer.shape.size();
  const bool flat = indices.size() == 1 && rank != 1;
  TENON_ASSERT(flat || indices.size() == rank, "kernel '", kernel_.name, "' reads buffer '",
               buffer.name, "' of rank ", rank, " with ", indices.size(), " indices");
  // Strides of the dimensions, in elements.
  std::vector<llvm::Value*> strides(indices.size(), b_.getInt64(1));
  for (size_t k = indices.size(); k-- > 1;)
    strides[k - 1] = entry_.CreateMul(strides[k], dim(buffer.shape[k]), "", true, true);

  std::optional<int64_t> stride = 0;
  for (size_t k = 0; k < indices.size() && stride; ++k) {
    auto index_stride = lane_stride(*indices[k]);
    auto* constant = llvm::dyn_cast<llvm::ConstantInt>(strides[k]);
    if (index_stride == 0) continue;
    if (!index_stride || !constant) {
      stride = std::nullopt;
    } else {
      *stride += *index_stride * constant->getSExtValue();
    }
  }
  llvm::Value* offset = nullptr;
  for (size_t k = 0; k < indices.size(); ++k) {
    llvm::Value* index;
    llvm::Value* scale = strides[k];
    if (stride) {
      index = first_lane(*indices[k]);
    } else {
      index = broadcast(value(*indices[k]));
      scale = all_lanes(scale);
    }
    llvm::Value* term = b_.CreateMul(index, scale, "", false, true);
    offset = offset ? b_.CreateAdd(offset, term, "", false, true) : term;
  }
  if (offset == nullptr) offset = b_.getInt64(0);
  return {offset, stride};
}

Value BodyWriter::load(const loop::Load& e) {
  const loop::Buffer& buffer = *e.buffer;
  auto it = places_.find(&buffer);
  TENON_ASSERT(it != places_.end(), "kernel '", kernel_.name, "' reads buffer '", buffer.name,
               "', which is not in scope");
  const Place place = it->second;
  llvm::Type* element = memory_type(buffer.dtype);
  const llvm::Align alignment(static_cast<uint64_t>(buffer.dtype.bytes()));
  auto scalar_load = [&](llvm::Value* offset) {
    llvm::LoadInst* v =
        b_.CreateAlignedLoad(element, b_.CreateInBoundsGEP(element, place.data, offset), alignment);
    annotate(v, buffer);
    return from_memory(v, buffer.dtype);
  };
  if (lane_var_ == nullptr) return {scalar_load(address(buffer, e.indices).offset)};

  Address at = address(buffer, e.indices);
  auto* vector = llvm::FixedVectorType::get(element, width_);
  if (place.lanes > 1) {  // scratch of the lanes: [element][lane]
    if (at.stride) {
      at.offset = b_.CreateMul(at.offset, b_.getInt64(place.lanes));
      *at.stride = *at.stride * place.lanes + 1;
    } else {
      llvm::Value* lane = b_.CreateStepVector(llvm::FixedVectorType::get(m_.i64, width_));
      at.offset = b_.CreateAdd(b_.CreateMul(at.offset, all_lanes(b_.getInt64(place.lanes))), lane);
    }
  }
  if (at.stride == 0 && mask_ == nullptr) return {scalar_load(at.offset)};
  if (at.stride == 1) {
    llvm::Value* where = b_.CreateInBoundsGEP(element, place.data, at.offset);
    llvm::Instruction* v;
    if (mask_ == nullptr) {
      v = b_.CreateAlignedLoad(vector, where, alignment);
    } else {
      v = b_.CreateMaskedLoad(vector, where, alignment, mask_,
                              llvm::Constant::getNullValue(vector));
    }
    annotate(v, buffer);
    return {from_memory(v, buffer.dtype), true};
  }
  if (at.stride && mask_ == nullptr) {
    // A known stride: scalar loads, which cost what a gather does and need no addresses in vectors.
    llvm::Value* result = llvm::PoisonValue::get(vector);
    for (unsigned lane = 0; lane < width_; ++lane) {
      llvm::Value* offset = b_.CreateAdd(
          at.offset, b_.getInt64(static_cast<uint64_t>(*at.stride * lane)), "", false, true);
      llvm::LoadInst* v = b_.CreateAlignedLoad(
          element, b_.CreateInBoundsGEP(element, place.data, offset), alignment);
      annotate(v, buffer);
      result = b_.CreateInsertElement(result, v, lane);
    }
    return {from_memory(result, buffer.dtype), true};
  }
  llvm::Value* offsets = at.offset;
  if (at.stride) {
    llvm::Value* lane = b_.CreateStepVector(llvm::FixedVectorType::get(m_.i64, width_));
    offsets =
        b_.CreateAdd(all_lanes(at.offset),
                     b_.CreateMul(lane, all_lanes(b_.getInt64(static_cast<uint64_t>(*at.stride)))));
  }
  llvm::Instruction* v =
      b_.CreateMaskedGather(vector, b_.CreateGEP(element, place.data, offsets), alignment, mask_,
                            mask_ ? llvm::Constant::getNullValue(vector) : nullptr);
  annotate(v, buffer);
  return {from_memory(v, buffer.dtype), true};
}

Value BodyWriter::checked_index(const loop::CheckedIndex& e) {
  Value a = value(*e.index);
  const bool is_signed = e.index->dtype.is_signed_int();
  Num index = {&b_, convert(a.v, e.index->dtype, i64)};
  llvm::Value* extent = dim(e.extent);
  llvm::Value* limit = a.lanes ? all_lanes(extent) : extent;
  llvm::Value* adjusted = index.v;
  if (is_signed && !nonnegative(*e.index)) {
    llvm::Value* negative = b_.CreateICmpSLT(index.v, index.i(0).v);
    adjusted = b_.CreateSelect(negative, b_.CreateAdd(index.v, limit), index.v);
  }
  stop_if(b_.CreateICmpUGE(adjusted, limit), vm::KernelError::IndexOutOfRange, index.v, extent);
  return {adjusted, a.lanes};
}

// ---- operators ----------------------------------------------------------------------------------

Value BodyWriter::literal(const loop::Literal& e) {
  llvm::Type* type = register_type(e.dtype);
  if (!e.dtype.is_float())
    return {llvm::ConstantInt::get(
        type, static_cast<uint64_t>(e.bits) & (e.dtype.is_bool() ? 1 : ~uint64_t{0}))};
  double v;
  std::memcpy(&v, &e.bits, sizeof v);
  return {llvm::ConstantFP::get(type, v)};
}

Value BodyWriter::unary(const loop::Unary& e) {
  Value a = value(*e.a);
  Num x = {&b_, a.v};
  const DataType t = e.a->dtype;
  auto done = [&](Num r) { return Value{r.v, a.lanes}; };
  if (e.op == UnaryOp::kNot || e.op == UnaryOp::kBitNot) return done(!x);
  if (!t.is_float()) {
    switch (e.op) {
      case UnaryOp::kNeg:
        return done(sub(x.i(0), x));
      case UnaryOp::kAbs:
        if (!t.is_signed_int()) return a;
        return {b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x.v, b_.getFalse()), a.lanes};
      case UnaryOp::kSign: {
        Num positive = {&b_, b_.CreateZExt(b_.CreateICmpNE(x.v, x.i(0).v), x.type())};
        if (!t.is_signed_int()) return done(positive);
        return done(pick({&b_, b_.CreateICmpSLT(x.v, x.i(0).v)}, x.i(~uint64_t{0}), positive));
      }
      case UnaryOp::kFloor:
      case UnaryOp::kCeil:
      case UnaryOp::kTrunc:
      case UnaryOp::kRoundEven:
        return a;
      case UnaryOp::kIsNan:
      case UnaryOp::kIsInf:
        return done({&b_, llvm::Constant::getNullValue(x.shape_of(m_.i1))});
      default:
        no_code("a function of real numbers", t);
    }
  }
  Num result = x;
  switch (e.op) {
    case UnaryOp::kNeg:
      return done(-x);
    case UnaryOp::kAbs:
      return done(absolute(x));
    case UnaryOp::kSign:
      return done(pick(x > 0.0, 1.0, pick(x < 0.0, -1.0, x)));
    case UnaryOp::kIsNan:
      return done(is_nan(x));
    case UnaryOp::kIsInf:
      return done(absolute(x) == std::numeric_limits<double>::infinity());
    case UnaryOp::kFloor:
    case UnaryOp::kCeil:
    case UnaryOp::kTrunc:
    case UnaryOp::kRoundEven:
      result = m_.math.round(e.op, x);
      break;
    case UnaryOp::kSqrt:
      result = square_root(x);
      break;
    default:
      result = m_.math.unary(e.op, x);
  }
  return {rounded(result.v, t), a.lanes};
}

Value BodyWriter::binary(const loop::Binary& e) {
  Value a = value(*e.a), b = value(*e.b);
  const bool lanes = a.lanes || b.lanes;
  llvm::Value* x = lanes ? broadcast(a) : a.v;
  llvm::Value* y = lanes ? broadcast(b) : b.v;
  if (e.a->dtype.is_float()) return {float_binary(e, x, y), lanes};
  return {integer_binary(e, x, y), lanes};
}

llvm::Value* BodyWriter::float_binary(const loop::Binary& e, llvm::Value* a, llvm::Value* b) {
  const DataType t = e.a->dtype;
  Num x = {&b_, a}, y = {&b_, b};
  auto known_number = [](llvm::Value* v) {
    auto* c = llvm::dyn_cast<llvm::Constant>(v);
    if (c != nullptr && c->getType()->isVectorTy()) c = c->getSplatValue();
    auto* number = llvm::dyn_cast_or_null<llvm::ConstantFP>(c);
    return number != nullptr && !number->isNaN();
  };
  switch (e.op) {
    case BinaryOp::kEq:
      return b_.CreateFCmpOEQ(a, b);
    case BinaryOp::kNe:
      return b_.CreateFCmpUNE(a, b);
    case BinaryOp::kLt:
      return b_.CreateFCmpOLT(a, b);
    case BinaryOp::kLe:
      return b_.CreateFCmpOLE(a, b);
    case BinaryOp::kAdd:
      return rounded(b_.CreateFAdd(a, b), t);
    case BinaryOp::kSub:
      return rounded(b_.CreateFSub(a, b), t);
    case BinaryOp::kMul:
      return rounded(b_.CreateFMul(a, b), t);
    case BinaryOp::kDiv:
      return rounded(b_.CreateFDiv(a, b), t);
    case BinaryOp::kFloorDiv:
      return rounded(m_.math.round(UnaryOp::kFloor, x / y).v, t);
    // The hardware's minimum gives its second operand where one is NaN: a number first.
    case BinaryOp::kMin:
    case BinaryOp::kMax: {
      auto better = [&](Num p, Num q) { return e.op == BinaryOp::kMin ? p < q : p > q; };
      if (known_number(b)) return pick(better(y, x), y, x).v;
      if (known_number(a)) return pick(better(x, y), x, y).v;
      return pick(is_nan(x), x, pick(better(x, y), x, y)).v;
    }
    case BinaryOp::kPow:
    case BinaryOp::kAtan2:
      return rounded(m_.math.binary(e.op, x, y).v, t);
    case BinaryOp::kRem:
    case BinaryOp::kMod: {
      Num r = {&b_, per_lane({a, b}, [&](llvm::ArrayRef<llvm::Value*> p) {
                 return m_.math.binary(BinaryOp::kRem, {&b_, p[0]}, {&b_, p[1]}).v;
               })};
      if (e.op == BinaryOp::kRem) return r.v;  // exact in t
      Num wrong_side = ((r < 0.0) & (y > 0.0)) | ((r > 0.0) & (y < 0.0));
      return rounded(pick(wrong_side, r + y, r).v, t);
    }
    default:
      no_code(cat("operator ", e.op), t);
  }
}

llvm::Value* BodyWriter::integer_binary(const loop::Binary& e, llvm::Value* a, llvm::Value* b) {
  const DataType t = e.a->dtype;
  const bool is_signed = t.is_signed_int();
  const bool index = t == i64 && nonnegative(e);  // far from overflow
  Num y = {&b_, b};
  switch (e.op) {
    case BinaryOp::kAdd:
      return b_.CreateAdd(a, b, "", false, index);
    case BinaryOp::kSub:
      return b_.CreateSub(a, b);
    case BinaryOp::kMul:
      return b_.CreateMul(a, b, "", false, index);
    case BinaryOp::kDiv:
    case BinaryOp::kFloorDiv:
    case BinaryOp::kMod:
    case BinaryOp::kRem:
      return integer_division(e, a, b);
    case BinaryOp::kMin:
      return b_.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, a,
                                      b);
    case BinaryOp::kMax:
      return b_.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, a,
                                      b);
    case BinaryOp::kEq:
      return b_.CreateICmpEQ(a, b);
    case BinaryOp::kNe:
      return b_.CreateICmpNE(a, b);
    case BinaryOp::kLt:
      return is_signed ? b_.CreateICmpSLT(a, b) : b_.CreateICmpULT(a, b);
    case BinaryOp::kLe:
      return is_signed ? b_.CreateICmpSLE(a, b) : b_.CreateICmpULE(a, b);
    case BinaryOp::kAnd:
      return b_.CreateAnd(a, b);
    case BinaryOp::kOr:
      return b_.CreateOr(a, b);
    case BinaryOp::kXor:
      return b_.CreateXor(a, b);
    case BinaryOp::kShl:
    case BinaryOp::kShr: {
      Num inside = below(y, t.bits);
      Num amount = pick(inside, y, y.i(0));
      llvm::Value* shifted = e.op == BinaryOp::kShl ? b_.CreateShl(a, amount.v)
                             : is_signed            ? b_.CreateAShr(a, amount.v)
                                                    : b_.CreateLShr(a, amount.v);
      return pick(inside, y.with(shifted), y.i(0)).v;
    }
    case BinaryOp::kPow:
      return per_lane({a, b}, [&](llvm::ArrayRef<llvm::Value*> p) {
        return m_.math.integer_power({&b_, p[0]}, {&b_, p[1]}, is_signed).v;
      });
    default:
      no_code(cat("operator ", e.op), t);
  }
}

llvm::Value* BodyWriter::integer_division(const loop::Binary& e, llvm::Value* a, llvm::Value* b) {
  const DataType t = e.a->dtype;
  Num x = {&b_, a}, y = {&b_, b};
  const bool remainder = e.op == BinaryOp::kMod || e.op == BinaryOp::kRem;
  auto* constant = llvm::dyn_cast<llvm::Constant>(b);
  if (constant != nullptr && constant->getType()->isVectorTy())
    constant = constant->getSplatValue();
  auto* known = llvm::dyn_cast_or_null<llvm::ConstantInt>(constant);
  if (known == nullptr || known->isZero()) {
    Num zero = same(y, 0);
    stop_if(zero.v, vm::KernelError::DivisionByZero, nullptr, nullptr);
    if (mask_ != nullptr) y = pick(zero, y.i(1), y);
  }
  const bool plain = t.is_unsigned_int() || t.is_bool() || (nonnegative(*e.a) && nonnegative(*e.b));
  if (plain) return remainder ? b_.CreateURem(x.v, y.v) : b_.CreateUDiv(x.v, y.v);

  const bool floors = e.op == BinaryOp::kFloorDiv || e.op == BinaryOp::kMod;
  if (floors && known != nullptr && known->getValue().isStrictlyPositive() &&
      known->getValue().isPowerOf2()) {
    if (remainder) return (x & (known->getZExtValue() - 1)).v;
    return ashr(x, known->getValue().logBase2()).v;
  }
  // The one quotient that overflows is that by -1, which is a negation.
  Num minus_one = same(y, ~uint64_t{0});
  Num divisor = known != nullptr && !known->isMinusOne() ? y : pick(minus_one, y.i(1), y);
  Num quotient = {&b_, b_.CreateSDiv(x.v, divisor.v)};
  Num rest = sub(x, mul(quotient, divisor));
  quotient = pick(minus_one, sub(x.i(0), x), quotient);
  rest = pick(minus_one, x.i(0), rest);
  if (!floors) return remainder ? rest.v : quotient.v;
  Num wrong_side = (!same(rest, 0)) & Num{&b_, b_.CreateICmpSLT((rest ^ y).v, x.i(0).v)};
  return remainder ? pick(wrong_side, add(rest, y), rest).v
                   : pick(wrong_side, sub(quotient, 1), quotient).v;
}

llvm::Value* BodyWriter::convert(llvm::Value* v, DataType from, DataType to) {
  Num x = {&b_, v};
  llvm::Type* type = x.shape_of(register_type(to));
  register_type(from);
  if (from == to) return v;
  if (to.is_bool())
    return from.is_float() ? b_.CreateFCmpUNE(v, x.f(0).v) : b_.CreateICmpNE(v, x.i(0).v);
  const bool from_signed = from.is_signed_int();
  if (!from.is_float()) {
    if (to.is_float())
      return rounded(from_signed ? b_.CreateSIToFP(v, type) : b_.CreateUIToFP(v, type), to);
    return b_.CreateIntCast(v, type, from_signed);
  }
  if (to.is_int())
    return b_.CreateIntrinsic(
        to.is_signed_int() ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat,
        {type, v->getType()}, {v});
  if (to == f64) return b_.CreateFPExt(v, type);
  if (from == f64) return to == f32 ? x.to_f32().v : rounded(m_.math.round_to_odd(x).v, to);
  return rounded(v, to);
}

// ---- choices ------------------------------------------------------------------------------------

Value BodyWriter::select(const loop::Select& e) {
  Value condition = value(*e.condition);
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition.v))
    return value(known->isOne() ? *e.if_true : *e.if_false);
  const bool guarded = can_fail(*e.if_true) || can_fail(*e.if_false);

  if (condition.lanes) {
    auto side = [&](const loop::Expr& s, llvm::Value* mask) {
      if (!can_fail(s)) return broadcast(value(s));
      llvm::Value* outer = std::exchange(mask_, mask_and(mask));
      memo_.emplace_back();
      llvm::Value* v = broadcast(value(s));
      memo_.pop_back();
      mask_ = outer;
      return v;
    };
    llvm::Value* yes = side(*e.if_true, condition.v);
    llvm::Value* no = side(*e.if_false, b_.CreateNot(condition.v));
    return {b_.CreateSelect(condition.v, yes, no), true};
  }
  if (!guarded) {
    Value yes = value(*e.if_true), no = value(*e.if_false);
    const bool lanes = yes.lanes || no.lanes;
    return {
        b_.CreateSelect(condition.v, lanes ? broadcast(yes) : yes.v, lanes ? broadcast(no) : no.v),
        lanes};
  }
  // What both sides compute anyway is computed once, before: a chain of choices over a shared value
  // would otherwise double in size with each link.
  std::unordered_set<const loop::Expr*> yes_nodes, no_nodes;
  always_computed(*e.if_true, &yes_nodes);
  always_computed(*e.if_false, &no_nodes);
  std::vector<const loop::Expr*> pending = {e.if_true.get()};
  std::unordered_set<const loop::Expr*> seen;
  while (!pending.empty()) {
    const loop::Expr* node = pending.back();
    pending.pop_back();
    if (yes_nodes.count(node) == 0 || !seen.insert(node).second) continue;
    if (no_nodes.count(node) != 0) {
      value(*node);
    } else if (node->kind == ExprKind::kSelect) {
      pending.push_back(static_cast<const loop::Select*>(node)->condition.get());
    } else {
      for_operands(*node, [&](const loop::Expr& a) { pending.push_back(&a); });
    }
  }
  llvm::BasicBlock* blocks[2] = {block("yes"), block("no")};
  llvm::BasicBlock* after = block("chosen");
  b_.CreateCondBr(condition.v, blocks[0], blocks[1]);
  const bool lanes = varies(*e.if_true) || varies(*e.if_false);
  llvm::Value* values[2];
  for (int i = 0; i < 2; ++i) {
    b_.SetInsertPoint(blocks[i]);
    memo_.emplace_back();
    Value v = value(i == 0 ? *e.if_true : *e.if_false);
    values[i] = lanes ? broadcast(v) : v.v;
    memo_.pop_back();
    blocks[i] = b_.GetInsertBlock();
    b_.CreateBr(after);
  }
  b_.SetInsertPoint(after);
  llvm::PHINode* result = b_.CreatePHI(values[0]->getType(), 2);
  result->addIncoming(values[0], blocks[0]);
  result->addIncoming(values[1], blocks[1]);
  return {result, lanes};
}

}  // namespace tenon::codegen
