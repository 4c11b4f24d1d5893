// A pool of storage blocks, one per machine and device. It is reference-counted and outlives its
// machine while one of its blocks lives. A block freed on the thread that runs the machine goes to
// a free list; a block freed on any other thread goes to a return list, which the next allocation
// empties.
//
// Blocks have size classes, four per power of two, and an allocation takes a free block of less
// than twice its size, so a block wastes at most half of itself and usually an eighth. Free memory
// is bounded by the peak of memory in use, so that a sequence of varying sizes doesn't make memory
// grow. A naive pool keeps nothing: each block comes from the device and goes back to it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "object/tensor.h"

namespace tenon::vm {

class Pool;

// A block is the storage object itself: both are reused together.
struct PoolBlock : StorageObj {
  static constexpr int32_t kTypeIndex = TypeIndex::Storage;
  static constexpr int32_t kTypeLast = kTypeIndex;
  Pool* pool = nullptr;
  PoolBlock* next = nullptr;
  // Its size in bytes: that of its class, rounded up to its alignment if that is above
  // kDataAlignment. Such a block is freed instead of kept for reuse.
  size_t capacity = 0;
  uint16_t size_class = 0;
  uint16_t gap = 0;    // bytes that aligning it may waste; 0 up to kDataAlignment
  uint32_t call = 0;   // the call that it counts for
  uint64_t maker = 0;  // the Program that it was allocated for
};

// What a pool has done. Sizes are in bytes.
struct PoolStats {
  size_t allocated = 0;           // memory from the device: blocks in use and pooled ones
  size_t peak = 0;                // the most that was ever allocated
  size_t pooled = 0;              // blocks that are free for reuse
  size_t call_peak = 0;           // the most that the last call used at once, with headers
  size_t allocations = 0;         // blocks handed out
  size_t system_allocations = 0;  // of these, blocks that were new from the device
  size_t call_bytes = 0;          // as call_peak, but what the blocks were asked for
};

// A count that one thread at a time changes and any thread may read.
class PoolCount {
 public:
  size_t get() const { return n_.load(std::memory_order_relaxed); }
  void set(size_t n) { n_.store(n, std::memory_order_relaxed); }
  void operator+=(size_t n) { set(get() + n); }
  void operator-=(size_t n) { set(get() - n); }
  void raise_to(size_t n) {
    if (n > get()) set(n);
  }

 private:
  std::atomic<size_t> n_{0};
};

class Pool {
 public:
  explicit Pool(DLDevice device);
  // Drops the machine's own reference to the pool; blocks in use hold the others.
  void close();

  // Sets the thread that may use the free lists, as identified by `this_thread()`; null for none.
  void set_owner(const void* thread) { owner_.store(thread, std::memory_order_release); }
  static const void* this_thread();

  // A block of at least `bytes`, aligned to `alignment` (a power of two). A Runtime error if the
  // limit would be exceeded or the device has no memory. The caller owns the reference.
  PoolBlock* allocate(size_t bytes, size_t alignment);

  // Memory in blocks of the current call.
  size_t used() const { return used_.get(); }
  // Thread-safe.
  PoolStats stats() const;
  // The number of the Program whose code runs: blocks are allocated for it.
  void set_maker(uint64_t program) { maker_.store(program, std::memory_order_relaxed); }
  uint64_t maker() const { return maker_.load(std::memory_order_relaxed); }
  // Whether the current call allocated the storage here for the running Program. Thread-safe.
  bool is_of_call(const StorageObj& storage) const;
  // Starts a call: memory in use from before belongs to the host and isn't counted. `cap` is the
  // call's limit, 0 for none; `outside` (the stack) counts against it as well.
  void begin_call(size_t cap = 0, size_t outside = 0);
  void set_cap(size_t cap) { cap_ = cap; }
  size_t cap() const { return cap_; }
  // Everything that counts against the limit, and what is left of it; nullopt if there is no limit.
  size_t counted() const { return used() + outside_.load(std::memory_order_relaxed); }
  std::optional<size_t> left() const {
    if (!cap_) return std::nullopt;
    return cap_ - std::min(cap_, counted());
  }
  // Counts memory outside of blocks (stack, objects, workspace of kernels); returns false if the
  // limit would be exceeded. Thread-safe.
  bool count_outside(size_t bytes);
  void discount_outside(size_t bytes) { outside_.fetch_sub(bytes, std::memory_order_relaxed); }
  // Throws the error of a call that requests `bytes` beyond its limit.
  [[noreturn]] void fail_cap(size_t bytes) const;
  // The same, with what the call needs in words.
  [[noreturn]] void fail_cap(std::string_view found) const;
  // Returns free blocks to the device. By the owner, or while there is none.
  void trim();

  // Whether blocks are freed instead of kept for reuse. Before the first allocation.
  void set_naive(bool on) { naive_ = on; }

  // Whether to poison: fill memory with kPoison when it is freed.
  void set_poison(bool on) { poison_.store(on, std::memory_order_relaxed); }
  bool poisons() const { return poison_.load(std::memory_order_relaxed); }
  // Gives an unshared tensor a storage of its own within its storage, if that belongs to the
  // current call: its bytes are poisoned now, and again when the last tensor over them dies. This
  // detects errors in a block that several values of a memory plan share.
  void put_in_slot(const Tensor& tensor) {
    if (poisons()) [[unlikely]]
      make_slot(tensor);
  }

 private:
  static constexpr uint32_t kClasses = 4 * 48;
  static void delete_block(void* self, int flags);
  static uint32_t class_of(size_t bytes);
  static size_t class_size(uint32_t size_class);
  static size_t new_capacity(uint32_t size_class, size_t alignment);

  void keep(PoolBlock* block);
  void collect();
  void free_block(PoolBlock* block);
  void make_room(size_t bytes);
  PoolBlock* find_free(uint32_t size_class);
  PoolBlock* new_block(uint32_t size_class, size_t bytes, size_t alignment);
  PoolBlock* new_header(void* data, size_t capacity);  // null if out of memory
  void drop(int64_t references);
  void make_slot(const Tensor& tensor);
  ~Pool() = default;

  DLDevice device_;
  std::atomic<const void*> owner_{nullptr};
  std::atomic<PoolBlock*> returned_{nullptr};
  std::atomic<size_t> returned_bytes_{0};
  // The machine's reference and those of the blocks in use. While the machine lives, the blocks
  // that its thread handed out and took back are counted apart, without atomic operations.
  static constexpr int64_t kOfMachine = int64_t{1} << 62;
  std::atomic<int64_t> holders_{kOfMachine};
  std::atomic<bool> closed_{false}, poison_{false};
  bool naive_ = false;

  // Used by the owner only.
  int64_t blocks_out_ = 0;
  uint32_t call_ = 1;
  // What a block counts as: headers of many small blocks take more than their data, and so do the
  // gaps between highly aligned ones.
  static size_t weight_of(size_t capacity, size_t gap) {
    return capacity + gap + sizeof(PoolBlock);
  }
  static size_t weight_of(const PoolBlock* b) { return weight_of(b->capacity, b->gap); }
  void discount(const PoolBlock* block) {
    used_ -= weight_of(block);
    asked_ -= block->size;
  }
  PoolCount used_, peak_, asked_, asked_peak_, high_, cached_, allocations_, system_allocations_,
      allocated_peak_;
  std::atomic<size_t> allocated_{0};  // after the machine's end, any thread frees blocks
  size_t cap_ = 0;
  std::atomic<uint64_t> maker_{0};
  std::atomic<size_t> outside_{0};  // written by all threads
  PoolBlock* free_[kClasses] = {};
};

}  // namespace tenon::vm
