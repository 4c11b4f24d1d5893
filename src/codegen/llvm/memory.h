// The addresses of elements, and how elements are read and written, by one lane or by all lanes of
// a vector loop. Private to this folder: it exposes LLVM types.
#pragma once

#include <optional>

#include "codegen/llvm/alias.h"
#include "codegen/llvm/facts.h"
#include "codegen/llvm/function.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace tenon::codegen {

class MemoryWriter {
 public:
  MemoryWriter(FunctionWriter& f, const Facts& facts, const AliasScopes& alias)
      : f_(f), b_(f.b), facts_(facts), alias_(alias) {}

  // The position of an access, in elements from the buffer's first.
  struct Address {
    llvm::Value* offset = nullptr;     // of lane 0 if `lanes` are known; otherwise one per lane
    std::optional<LaneOffsets> lanes;  // empty if all are at the same place

    std::optional<int64_t> stride() const { return lanes ? stride_of(*lanes) : std::nullopt; }
  };
  // The address at indices whose lanes have the offsets `lanes`, null where those aren't known: one
  // index per dimension, or a single index that counts elements in row-major order.
  // `index(k, per_lane)` emits index k: as a vector if `per_lane`, otherwise as a scalar, the value
  // in lane 0.
  Address address(const loop::Buffer& buffer, llvm::ArrayRef<const LaneOffsets*> lanes,
                  llvm::function_ref<llvm::Value*(size_t k, bool per_lane)> index);

  // The size of an axis or, for axis -1, the number of elements.
  llvm::Value* extent(const loop::Buffer& buffer, int32_t axis);
  // Stops the kernel unless 0 <= index < extent in the active lanes.
  void require_inside(Value index, llvm::Value* extent, const loop::Buffer& buffer, int32_t axis);

  // The address of an element, outside vector loops.
  llvm::Value* place(const loop::Buffer& buffer, const Address& at);
  Value load(const loop::Buffer& buffer, Address at);
  // An i32 for each lane, of which the lane's u8 at `at` is the first byte; nullopt if they aren't
  // side by side.
  std::optional<Value> load_words(const loop::Buffer& buffer, const Address& at);
  // Stores a value of the buffer's dtype.
  void store(const loop::Buffer& buffer, Address at, Value value);
  // Fetches the element in lane 0, which may be outside the buffer, into the second-level cache.
  void prefetch(const loop::Buffer& buffer, Address at);

 private:
  struct Elements {
    const loop::Buffer& buffer;
    llvm::Type* type;  // of an element in memory
    llvm::Value* data;
    llvm::Align alignment;
  };
  Elements elements(const loop::Buffer& buffer) const;
  bool is_one_element(const Address& at) const { return at.stride() == 0 && !f_.lanes.mask; }
  Address of_lanes(const loop::Buffer& buffer, Address at);
  llvm::Value* nth_lane(const Address& at, unsigned lane);
  llvm::Value* every_lane(const Address& at);
  llvm::Value* element(const Elements& e, llvm::Value* offset);
  llvm::Value* first_of_row(const Elements& e, llvm::Value* offset);

  llvm::Value* load_one(const Elements& e, llvm::Value* offset);
  llvm::Value* load_lanes(const Elements& e, const Address& at);
  llvm::Value* load_pieces(const Elements& e, const Address& at);
  std::optional<std::vector<size_t>> active_lanes() const;
  void store_lanes(const Elements& e, const Address& at, llvm::Value* lanes);
  llvm::Value* read(llvm::Instruction* load, const loop::Buffer& buffer);
  int32_t argument_of(const loop::Buffer& buffer) const;

  FunctionWriter& f_;
  Builder& b_;
  const Facts& facts_;
  const AliasScopes& alias_;
};

}  // namespace tenon::codegen
