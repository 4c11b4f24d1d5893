// Scalar expressions of loop IR as LLVM values: of one element, or of all lanes of a vector loop.
#include <cstring>
#include <limits>

#include "codegen/llvm/lower.h"
#include "loop/walk.h"
#include "support/error.h"

namespace tenon::codegen {

using loop::BinaryOp;
using loop::ExprKind;
using loop::StmtKind;

namespace {

constexpr int kMaxDepth = 2000;  // of nested expressions: what the native stack can take

std::optional<int64_t> literal_value(const loop::Expr& e) {
  if (e.kind == ExprKind::kLiteral && !e.dtype.is_float())
    return static_cast<const loop::Literal&>(e).bits;
  if (e.kind == ExprKind::kDimValue) return static_cast<const loop::DimValue&>(e).dim.as_const();
  return std::nullopt;
}

// Made of literals and sizes alone.
bool is_size(const loop::Expr& e) {
  if (e.kind == ExprKind::kLiteral || e.kind == ExprKind::kDimValue) return true;
  return e.kind == ExprKind::kBinary && is_size(*static_cast<const loop::Binary&>(e).a) &&
         is_size(*static_cast<const loop::Binary&>(e).b);
}

// The nodes that evaluating `e` always evaluates.
void always_computed(const loop::Expr& e, std::unordered_set<const loop::Expr*>* nodes) {
  if (e.kind == ExprKind::kLiteral || e.kind == ExprKind::kVar || !nodes->insert(&e).second) return;
  if (e.kind == ExprKind::kSelect)
    return always_computed(*static_cast<const loop::Select&>(e).condition, nodes);
  loop::for_operands(e, [&](const loop::ExprRef& a) { always_computed(*a, nodes); });
}

}  // namespace

void check_nesting(const loop::Kernel& kernel) {
  std::unordered_map<const loop::Expr*, int> depths;
  loop::Seen seen;
  auto check = [&](const loop::ExprRef& root) {
    loop::post_order(
        root,
        [&](const loop::ExprRef& e) {
          int depth = depths[e.get()];  // of a variable, that of the value which `let` gave it
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
    if (s->kind != StmtKind::kLet) return;
    const auto& let = static_cast<const loop::Let&>(*s);
    depths[let.var.get()] = depths.at(let.value.get());
  });
}

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
    loop::for_operands(e, [&](const loop::ExprRef& a) { result = varies(*a) || result; });
  }
  return varies_[&e] = result;
}

bool BodyWriter::can_fail(const loop::Expr& e) {
  if (e.kind == ExprKind::kLoad || e.kind == ExprKind::kCheckedIndex) return true;
  if (e.kind == ExprKind::kLiteral || e.kind == ExprKind::kVar) return false;
  auto [it, is_new] = can_fail_.try_emplace(&e, false);
  if (!is_new) return it->second;
  bool result = false;
  if (e.kind == ExprKind::kBinary) {
    const auto& binary = static_cast<const loop::Binary&>(e);
    result =
        loop::can_fail(binary.op, binary.a->dtype) && literal_value(*binary.b).value_or(0) == 0;
  }
  loop::for_operands(e, [&](const loop::ExprRef& a) { result = can_fail(*a) || result; });
  return can_fail_[&e] = result;
}

bool BodyWriter::nonnegative(const loop::Expr& e) {
  auto it = nonnegative_.find(&e);
  if (it != nonnegative_.end()) return it->second;
  const bool result = find_nonnegative(e);
  nonnegative_[&e] = result;
  return result;
}

// Of index arithmetic, whose values are far from overflow: literals are kept small for that. That
// holds of kernels that are in bounds alone; elsewhere sums, products and loops may wrap.
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
      return kernel_.in_bounds && nonnegative_vars_.count(var) != 0;
    }
    case ExprKind::kCheckedIndex:
      return true;
    case ExprKind::kBinary: {
      const auto& b = static_cast<const loop::Binary&>(e);
      if (!e.dtype.is_int()) return false;
      switch (b.op) {
        case BinaryOp::kMul:
          // Strides are sizes; a product of variables is data, and may wrap.
          return kernel_.in_bounds && (is_size(*b.a) || is_size(*b.b)) && nonnegative(*b.a) &&
                 nonnegative(*b.b);
        case BinaryOp::kAdd:
          return kernel_.in_bounds && nonnegative(*b.a) && nonnegative(*b.b);
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

Value BodyWriter::evaluate(const loop::ExprRef& e) {
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
  const bool fits = kernel_.in_bounds;  // what masked lanes don't access may overflow elsewhere
  for (size_t k = 0; k < indices.size(); ++k) {
    llvm::Value* index;
    llvm::Value* scale = strides[k];
    if (!kernel_.in_bounds) {
      // What was checked is what is used: a second evaluation could read other elements.
      Value v = checked_access(*indices[k], buffer, flat ? -1 : static_cast<int32_t>(k));
      index = !stride ? broadcast(v) : v.lanes ? b_.CreateExtractElement(v.v, uint64_t{0}) : v.v;
    } else {
      index = stride ? first_lane(*indices[k]) : broadcast(value(*indices[k]));
    }
    if (!stride) scale = all_lanes(scale);
    llvm::Value* term = b_.CreateMul(index, scale, "", false, fits);
    offset = offset ? b_.CreateAdd(offset, term, "", false, fits) : term;
  }
  if (offset == nullptr) offset = b_.getInt64(0);
  return {offset, stride};
}

// The value of an index that nothing vouches for; stops the kernel unless it lies within the axis
// (-1: all elements), in the lanes that run.
Value BodyWriter::checked_access(const loop::Expr& index, const loop::Buffer& buffer,
                                 int32_t axis) {
  llvm::Value* extent = axis < 0 ? count_of(buffer) : dim(buffer.shape[static_cast<size_t>(axis)]);
  Value v = value(index);
  const bool lanes = v.lanes || mask_ != nullptr;
  llvm::Value* found = lanes ? broadcast(v) : v.v;
  stop_if(b_.CreateICmpUGE(found, lanes ? all_lanes(extent) : extent),
          vm::KernelError::OutsideBuffer, found, extent, argument_of(buffer), axis);
  return v;
}

// The place of a buffer among the kernel's arguments; -1 of scratch.
int32_t BodyWriter::argument_of(const loop::Buffer& buffer) const {
  int32_t argument = 0;
  for (const auto* list : {&kernel_.inputs, &kernel_.outputs}) {
    for (const auto& b : *list) {
      if (b.get() == &buffer) return argument;
      ++argument;
    }
  }
  return -1;
}

// The elements of a buffer, which the kernel has, so that their number doesn't overflow.
llvm::Value* BodyWriter::count_of(const loop::Buffer& buffer) {
  llvm::Value* count = entry_.getInt64(1);
  for (const Dim& d : buffer.shape) count = entry_.CreateMul(count, dim(d));
  return count;
}

// What was read of `buffer`. Scratch that nothing was written to holds no value at all, and what is
// computed of that need not be the same where it is checked and where it is used.
llvm::Value* BodyWriter::read_value(llvm::Instruction* read, const loop::Buffer& buffer) {
  annotate(read, buffer);
  return kernel_.in_bounds ? read : b_.CreateFreeze(read);
}

// The address of `offset`, which masked lanes may have anywhere.
llvm::Value* BodyWriter::element_address(llvm::Type* element, llvm::Value* data,
                                         llvm::Value* offset) {
  if (mask_ != nullptr && !kernel_.in_bounds) return b_.CreateGEP(element, data, offset);
  return b_.CreateInBoundsGEP(element, data, offset);
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
    return from_memory(read_value(v, buffer), buffer.dtype);
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
    llvm::Value* where = element_address(element, place.data, at.offset);
    llvm::Instruction* v;
    if (mask_ == nullptr) {
      v = b_.CreateAlignedLoad(vector, where, alignment);
    } else {
      v = b_.CreateMaskedLoad(vector, where, alignment, mask_,
                              llvm::Constant::getNullValue(vector));
    }
    return {from_memory(read_value(v, buffer), buffer.dtype), true};
  }
  if (at.stride && mask_ == nullptr) {
    // A known stride: scalar loads, which cost what a gather does and need no addresses in vectors.
    llvm::Value* result = llvm::PoisonValue::get(vector);
    for (unsigned lane = 0; lane < width_; ++lane) {
      llvm::Value* offset = b_.CreateAdd(
          at.offset, b_.getInt64(static_cast<uint64_t>(*at.stride * lane)), "", false, true);
      llvm::LoadInst* v = b_.CreateAlignedLoad(
          element, b_.CreateInBoundsGEP(element, place.data, offset), alignment);
      result = b_.CreateInsertElement(result, read_value(v, buffer), lane);
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
  return {from_memory(read_value(v, buffer), buffer.dtype), true};
}

Value BodyWriter::checked_index(const loop::CheckedIndex& e) {
  Value a = value(*e.index);
  const bool is_signed = e.index->dtype.is_signed_int();
  Num index = {&b_, convert(a.v, e.index->dtype, i64)};
  // Sizes from a hostile caller may leave less than nothing: that holds no index either, where a
  // comparison without signs would take all.
  llvm::Value* extent = dim(e.extent);
  if (!proves_nonnegative(e.extent))
    extent = entry_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, extent, entry_.getInt64(0));
  llvm::Value* limit = a.lanes ? all_lanes(extent) : extent;
  llvm::Value* adjusted = index.v;
  if (is_signed && !nonnegative(*e.index)) {
    llvm::Value* negative = b_.CreateICmpSLT(index.v, index.i(0).v);
    adjusted = b_.CreateSelect(negative, b_.CreateAdd(index.v, limit), index.v);
  }
  stop_if(b_.CreateICmpUGE(adjusted, limit), vm::KernelError::IndexOutOfRange, index.v, extent);
  return {adjusted, a.lanes};
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
      loop::for_operands(*node, [&](const loop::ExprRef& a) { pending.push_back(a.get()); });
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
