#include "codegen/llvm/memory.h"

#include <algorithm>
#include <numeric>

#include "codegen/llvm/element.h"
#include "loop/scalar_ops.h"
#include "support/error.h"
#include "support/rounding.h"

namespace tenon::codegen {

namespace {

// In elements. Multiples of larger ones could overflow; lanes that far apart are addressed one by
// one.
constexpr int64_t kFarthest = int64_t{1} << 40;
// Vectors from which the elements of lanes near each other are picked. More would cost as much as
// reading them one by one.
constexpr int64_t kMostPieces = 4;

// Adds `offsets` times `scale` to `sum`. False if one is too far away.
bool add_scaled(const LaneOffsets& offsets, int64_t scale, LaneOffsets* sum) {
  if (offsets.empty()) return true;
  sum->resize(offsets.size());
  for (size_t lane = 0; lane < offsets.size(); ++lane) {
    int64_t& total = (*sum)[lane];
    int64_t step = 0;
    if (__builtin_mul_overflow(offsets[lane], scale, &step) ||
        __builtin_add_overflow(total, step, &total) || total > kFarthest || total < -kFarthest) {
      return false;
    }
  }
  return true;
}

}  // namespace

// ---- addresses

MemoryWriter::Address MemoryWriter::address(
    const loop::Buffer& buffer, llvm::ArrayRef<const LaneOffsets*> lanes,
    llvm::function_ref<llvm::Value*(size_t k, bool per_lane)> index) {
  const size_t rank = buffer.shape.size();
  const size_t count = lanes.size();
  TENON_ASSERT(count == rank || count == 1, "kernel '", f_.kernel.name, "' reads buffer '",
               buffer.name, "' of rank ", rank, " with ", count, " indices");
  // The distance between the elements of an axis.
  std::vector<llvm::Value*> scales(count, b_.getInt64(1));
  for (size_t k = count; k-- > 1;)
    scales[k - 1] = f_.entry.CreateMul(scales[k], f_.dim(buffer.shape[k]), "", true, true);

  Address at{nullptr, LaneOffsets{}};
  for (size_t k = 0; k < count && at.lanes; ++k) {
    if (lanes[k] != nullptr && stride_of(*lanes[k]) == 0) continue;
    auto* scale = llvm::dyn_cast<llvm::ConstantInt>(scales[k]);
    if (lanes[k] == nullptr || scale == nullptr ||
        !add_scaled(*lanes[k], scale->getSExtValue(), &*at.lanes)) {
      at.lanes = std::nullopt;
    }
  }
  const bool fits = f_.kernel.in_bounds;  // otherwise, inactive lanes may overflow
  for (size_t k = 0; k < count; ++k) {
    llvm::Value* position = index(k, !at.lanes);
    llvm::Value* scale = at.lanes ? scales[k] : f_.all_lanes(scales[k]);
    llvm::Value* term = b_.CreateMul(position, scale, "", false, fits);
    at.offset = at.offset ? b_.CreateAdd(at.offset, term, "", false, fits) : term;
  }
  if (at.offset == nullptr) at.offset = b_.getInt64(0);
  return at;
}

llvm::Value* MemoryWriter::extent(const loop::Buffer& buffer, int32_t axis) {
  if (axis >= 0) return f_.dim(buffer.shape[static_cast<size_t>(axis)]);
  // The buffer exists, so the product doesn't overflow.
  llvm::Value* count = f_.entry.getInt64(1);
  for (const Dim& d : buffer.shape) count = f_.entry.CreateMul(count, f_.dim(d));
  return count;
}

void MemoryWriter::require_inside(Value index, llvm::Value* extent, const loop::Buffer& buffer,
                                  int32_t axis) {
  const bool lanes = index.lanes || f_.lanes.mask != nullptr;
  llvm::Value* found = lanes ? f_.broadcast(index) : index.v;
  f_.stop_if(b_.CreateICmpUGE(found, lanes ? f_.all_lanes(extent) : extent),
             vm::KernelError::OutsideBuffer, found, extent, argument_of(buffer), axis);
}

// The index of a buffer among the kernel's arguments; -1 for scratch.
int32_t MemoryWriter::argument_of(const loop::Buffer& buffer) const {
  int32_t argument = 0;
  for (const auto* list : {&f_.kernel.inputs, &f_.kernel.outputs}) {
    for (const auto& b : *list) {
      if (b.get() == &buffer) return argument;
      ++argument;
    }
  }
  return -1;
}

MemoryWriter::Elements MemoryWriter::elements(const loop::Buffer& buffer) const {
  auto place = f_.env.places.find(&buffer);
  TENON_ASSERT(place != f_.env.places.end(), "kernel '", f_.kernel.name, "' accesses buffer '",
               buffer.name, "', which is not in scope");
  return {buffer, memory_type(f_.m, buffer.dtype), place->second,
          llvm::Align(static_cast<uint64_t>(buffer.dtype.bytes()))};
}

// Per-lane scratch is laid out as [element][lane].
MemoryWriter::Address MemoryWriter::of_lanes(const loop::Buffer& buffer, Address at) {
  const unsigned lanes = facts_.lanes_of(buffer);
  if (lanes == 1 || !f_.in_lanes()) return at;
  if (at.lanes) {
    LaneOffsets own(f_.lanes.width);
    std::iota(own.begin(), own.end(), 0);
    if (add_scaled(*at.lanes, lanes, &own))
      return {b_.CreateMul(at.offset, b_.getInt64(lanes)), own};
  }
  llvm::Value* lane = f_.lane_numbers();
  return {b_.CreateAdd(b_.CreateMul(every_lane(at), f_.all_lanes(b_.getInt64(lanes))), lane), {}};
}

// The offset in one lane, for known lanes.
llvm::Value* MemoryWriter::nth_lane(const Address& at, unsigned lane) {
  const int64_t distance = at.lanes->empty() ? 0 : (*at.lanes)[lane];
  return b_.CreateAdd(at.offset, b_.getInt64(static_cast<uint64_t>(distance)), "", false, true);
}

// The offsets in all lanes, as a vector.
llvm::Value* MemoryWriter::every_lane(const Address& at) {
  if (!at.lanes) return at.offset;
  if (at.lanes->empty()) return f_.all_lanes(at.offset);
  std::vector<llvm::Constant*> distances;
  for (const int64_t d : *at.lanes) distances.push_back(b_.getInt64(static_cast<uint64_t>(d)));
  return b_.CreateAdd(f_.all_lanes(at.offset), llvm::ConstantVector::get(distances));
}

llvm::Value* MemoryWriter::element(const Elements& e, llvm::Value* offset) {
  return b_.CreateInBoundsGEP(e.type, e.data, offset);
}

// The address of lane 0, which may be outside the buffer if that lane is inactive.
llvm::Value* MemoryWriter::first_of_row(const Elements& e, llvm::Value* offset) {
  if (f_.lanes.mask != nullptr && !f_.kernel.in_bounds) return b_.CreateGEP(e.type, e.data, offset);
  return element(e, offset);
}

llvm::Value* MemoryWriter::place(const loop::Buffer& buffer, const Address& at) {
  return element(elements(buffer), at.offset);
}

// ---- loads

Value MemoryWriter::load(const loop::Buffer& buffer, Address at) {
  const Elements e = elements(buffer);
  at = of_lanes(buffer, at);
  const bool one = is_one_element(at);
  llvm::Value* v = one ? load_one(e, at.offset) : load_lanes(e, at);
  return {from_memory(f_.m, b_, v, buffer.dtype), !one};
}

std::optional<Value> MemoryWriter::load_words(const loop::Buffer& buffer, const Address& at) {
  if (facts_.lanes_of(buffer) > 1 || at.stride() != loop::kBytesPerWord) return std::nullopt;
  const Elements e = elements(buffer);
  auto* words = llvm::FixedVectorType::get(b_.getInt32Ty(), f_.lanes.width);
  llvm::Value* const where = first_of_row(e, at.offset);
  llvm::Value* const mask = f_.lanes.mask;
  if (mask == nullptr)
    return Value{read(b_.CreateAlignedLoad(words, where, e.alignment), buffer), true};
  auto* none = llvm::Constant::getNullValue(words);
  return Value{read(b_.CreateMaskedLoad(words, where, e.alignment, mask, none), buffer), true};
}

llvm::Value* MemoryWriter::load_one(const Elements& e, llvm::Value* offset) {
  return read(b_.CreateAlignedLoad(e.type, element(e, offset), e.alignment), e.buffer);
}

llvm::Value* MemoryWriter::load_lanes(const Elements& e, const Address& at) {
  auto* vector = llvm::FixedVectorType::get(e.type, f_.lanes.width);
  llvm::Value* mask = f_.lanes.mask;
  if (at.stride() == 1) {
    llvm::Value* where = first_of_row(e, at.offset);
    if (mask == nullptr) return read(b_.CreateAlignedLoad(vector, where, e.alignment), e.buffer);
    return read(
        b_.CreateMaskedLoad(vector, where, e.alignment, mask, llvm::Constant::getNullValue(vector)),
        e.buffer);
  }
  if (llvm::Value* const picked = at.lanes ? load_pieces(e, at) : nullptr) return picked;
  if (at.lanes && mask == nullptr) {
    // Scalar loads cost as much as a gather and need no vectors of addresses.
    llvm::Value* result = llvm::PoisonValue::get(vector);
    for (unsigned lane = 0; lane < f_.lanes.width; ++lane)
      result = b_.CreateInsertElement(result, load_one(e, nth_lane(at, lane)), lane);
    return result;
  }
  return read(
      b_.CreateMaskedGather(vector, b_.CreateGEP(e.type, e.data, every_lane(at)), e.alignment, mask,
                            mask ? llvm::Constant::getNullValue(vector) : nullptr),
      e.buffer);
}

// Reads the elements from the first to the last of the active lanes', all of which are inside the
// buffer, as a few vectors, and picks those of the lanes; inactive ones are 0. Null if that takes
// too many, or if it isn't known which lanes are active.
llvm::Value* MemoryWriter::load_pieces(const Elements& e, const Address& at) {
  const auto active = active_lanes();
  if (!active || active->empty()) return nullptr;
  const auto offset_in = [&](size_t lane) { return at.lanes->empty() ? 0 : (*at.lanes)[lane]; };
  int64_t least = offset_in(active->front()), greatest = least;
  for (const size_t lane : *active) {
    least = std::min(least, offset_in(lane));
    greatest = std::max(greatest, offset_in(lane));
  }
  const int64_t span = greatest - least + 1;
  int64_t size = f_.lanes.width;
  while (size > span) size /= 2;
  const int64_t count = ceil_div(span, size);
  if (size < 2 || count > kMostPieces) return nullptr;
  auto* vector = llvm::FixedVectorType::get(e.type, static_cast<unsigned>(size));
  const size_t width = f_.lanes.width;
  llvm::Value* picked = nullptr;
  for (int64_t piece = 0; piece < count; ++piece) {
    // The last ends with the greatest, so that nothing beyond is read.
    const int64_t first = std::min(least + piece * size, greatest + 1 - size);
    std::vector<int> from_piece(width, static_cast<int>(size)), merged(width);
    std::iota(merged.begin(), merged.end(), 0);
    bool any = false;
    for (const size_t lane : *active) {
      const int64_t offset = offset_in(lane);
      if (std::min((offset - least) / size, count - 1) != piece) continue;
      from_piece[lane] = static_cast<int>(offset - first);
      merged[lane] = static_cast<int>(width + lane);
      any = true;
    }
    if (!any) continue;
    // In a kernel that isn't in bounds, the first lane's offset may have wrapped if it is inactive.
    llvm::Value* const where =
        element(e, b_.CreateAdd(at.offset, b_.getInt64(static_cast<uint64_t>(first)), "", false,
                                f_.kernel.in_bounds));
    llvm::Value* const loaded = read(b_.CreateAlignedLoad(vector, where, e.alignment), e.buffer);
    llvm::Value* const own =
        b_.CreateShuffleVector(loaded, llvm::Constant::getNullValue(vector), from_piece);
    picked = picked ? b_.CreateShuffleVector(picked, own, merged) : own;
  }
  return picked;
}

// The active lanes, if they are known.
std::optional<std::vector<size_t>> MemoryWriter::active_lanes() const {
  const auto* const mask = llvm::dyn_cast_or_null<llvm::Constant>(f_.lanes.mask);
  if (f_.lanes.mask != nullptr && mask == nullptr) return std::nullopt;
  std::vector<size_t> active;
  for (unsigned lane = 0; lane < f_.lanes.width; ++lane) {
    const llvm::Constant* const bit = mask ? mask->getAggregateElement(lane) : nullptr;
    if (mask != nullptr && bit == nullptr) return std::nullopt;
    if (mask == nullptr || bit->isOneValue()) active.push_back(lane);
  }
  return active;
}

// Uninitialised scratch has no fixed value: a value computed from it could differ between its check
// and its use, so it is frozen in checked kernels.
llvm::Value* MemoryWriter::read(llvm::Instruction* load, const loop::Buffer& buffer) {
  alias_.annotate(load, buffer);
  return f_.kernel.in_bounds ? load : b_.CreateFreeze(load);
}

void MemoryWriter::prefetch(const loop::Buffer& buffer, Address at) {
  constexpr uint32_t kForReading = 0, kSecondLevel = 2, kData = 1;
  const Elements e = elements(buffer);
  b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {e.data->getType()},
                     {b_.CreateGEP(e.type, e.data, at.offset), b_.getInt32(kForReading),
                      b_.getInt32(kSecondLevel), b_.getInt32(kData)});
}

// ---- stores

void MemoryWriter::store(const loop::Buffer& buffer, Address at, Value value) {
  const Elements e = elements(buffer);
  at = of_lanes(buffer, at);
  if (!is_one_element(at) || value.lanes)
    return store_lanes(e, at, to_memory(f_.m, b_, f_.broadcast(value), buffer.dtype));
  llvm::Value* where = element(e, at.offset);
  alias_.annotate(
      b_.CreateAlignedStore(to_memory(f_.m, b_, value.v, buffer.dtype), where, e.alignment),
      buffer);
}

void MemoryWriter::store_lanes(const Elements& e, const Address& at, llvm::Value* lanes) {
  llvm::Value* mask = f_.lanes.mask;
  if (at.stride() == 1) {
    llvm::Value* where = first_of_row(e, at.offset);
    llvm::Instruction* store =
        mask
            ? static_cast<llvm::Instruction*>(b_.CreateMaskedStore(lanes, where, e.alignment, mask))
            : b_.CreateAlignedStore(lanes, where, e.alignment);
    return alias_.annotate(store, e.buffer);
  }
  if (at.lanes && mask == nullptr) {
    for (unsigned lane = 0; lane < f_.lanes.width; ++lane) {
      llvm::Value* where = element(e, nth_lane(at, lane));
      alias_.annotate(
          b_.CreateAlignedStore(b_.CreateExtractElement(lanes, lane), where, e.alignment),
          e.buffer);
    }
    return;
  }
  alias_.annotate(b_.CreateMaskedScatter(lanes, b_.CreateGEP(e.type, e.data, every_lane(at)),
                                         e.alignment, mask),
                  e.buffer);
}

}  // namespace tenon::codegen
