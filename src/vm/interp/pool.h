// A pool of storage blocks, one per machine and device. It is counted and outlives its machine
// while a block does. A free on the thread that runs the machine goes to the free lists; one from
// any other thread goes to a return list, which the next allocation empties.
//
// Blocks come in classes, four to a power of two, and an allocation takes a free block of less than
// twice its size, so a block wastes at most half of itself and usually an eighth. What lies free is
// bounded by the most that was in use at once, so that a stream of different sizes leaves memory
// flat.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "object/tensor.h"

namespace tenon::vm {

class Pool;

// A block is the storage object itself: it is handed out again with its memory.
struct PoolBlock : StorageObj {
  static constexpr int32_t kTypeIndex = TypeIndex::Storage;
  static constexpr int32_t kTypeLast = kTypeIndex;
  Pool* pool = nullptr;
  PoolBlock* next = nullptr;
  size_t capacity = 0;  // bytes of memory, the size of its class
  uint32_t size_class = 0;
  uint32_t call = 0;   // the machine's call that it counts for
  uint64_t maker = 0;  // the Program for which it was allocated
};

class Pool {
 public:
  explicit Pool(DLDevice device);
  // The machine's own hold on the pool; the blocks in use are its others.
  void close();

  // The thread that may use the free lists, as `this_thread()` names it; null for none.
  void set_owner(const void* thread) { owner_.store(thread, std::memory_order_release); }
  static const void* this_thread();

  // A block of at least `bytes`, at a multiple of `alignment` (a power of two). A Runtime error
  // when the cap would be passed or the device has no memory. The count of one is the caller's.
  PoolBlock* allocate(size_t bytes, size_t alignment);

  // Memory in use by blocks of the current call.
  size_t used() const { return used_.load(std::memory_order_relaxed); }
  size_t peak() const { return peak_; }      // of `used` since begin_call
  size_t cached() const { return cached_; }  // in the free lists
  // The Program whose code runs, by its number: blocks are allocated for it.
  void set_maker(uint64_t program) { maker_.store(program, std::memory_order_relaxed); }
  uint64_t maker() const { return maker_.load(std::memory_order_relaxed); }
  // Whether the current call allocated it here, for the Program whose code runs now. Any thread.
  bool is_of_call(const StorageObj& storage) const;
  // Starts a call: what is in use from before belongs to the host and doesn't count. `cap` is what
  // the call may use, 0 for no cap; `outside` counts against it as well (the stack).
  void begin_call(size_t cap = 0, size_t outside = 0);
  void set_cap(size_t cap) { cap_ = cap; }
  size_t cap() const { return cap_; }
  // All that counts against the cap, and what is left of it; none where there is no cap.
  size_t counted() const { return used() + outside_.load(std::memory_order_relaxed); }
  std::optional<size_t> left() const {
    if (!cap_) return std::nullopt;
    return cap_ - std::min(cap_, counted());
  }
  // Counts memory that isn't a block's (stack, objects, workspace of kernels); false when the cap
  // would be passed. From any thread.
  bool count_outside(size_t bytes);
  void discount_outside(size_t bytes) { outside_.fetch_sub(bytes, std::memory_order_relaxed); }
  // Throws what a call fails with that asks for so many bytes too many.
  [[noreturn]] void fail_cap(size_t bytes) const;
  // Frees what lies in the free lists.
  void trim();

  // Poisoning: memory reads as kPoison again from when it is freed.
  void set_poison(bool on) { poison_.store(on, std::memory_order_relaxed); }
  bool poisons() const { return poison_.load(std::memory_order_relaxed); }
  // Gives a tensor that nobody shares yet a storage of its own within the one that it lies in,
  // where that is of the current call: its bytes are poison now, and again when the last tensor
  // over them is gone. A block that several values of a memory plan share hides nothing then.
  void put_in_slot(const Tensor& tensor);

 private:
  static constexpr uint32_t kClasses = 4 * 48;
  static void delete_block(void* self, int flags);
  static uint32_t class_of(size_t bytes);
  static size_t class_size(uint32_t size_class);

  void take_back(PoolBlock* block);
  void collect();
  void free_block(PoolBlock* block);
  void make_room(size_t bytes);
  PoolBlock* find_free(uint32_t size_class);
  PoolBlock* new_block(uint32_t size_class, size_t bytes, size_t alignment);
  PoolBlock* new_header(void* data, size_t capacity);  // null without memory for it
  void drop();
  ~Pool() = default;

  DLDevice device_;
  std::atomic<const void*> owner_{nullptr};
  std::atomic<PoolBlock*> returned_{nullptr};
  std::atomic<uint64_t> holders_{1};
  std::atomic<bool> closed_{false}, poison_{false};

  // Of the owner.
  uint32_t call_ = 1;
  // What a block counts for: many small ones take more for their headers than for their bytes.
  static size_t weight_of(const PoolBlock* b) { return b->capacity + sizeof(PoolBlock); }
  void use(size_t bytes) { used_.store(used() + bytes, std::memory_order_relaxed); }
  void unuse(size_t bytes) { used_.store(used() - bytes, std::memory_order_relaxed); }
  size_t peak_ = 0, high_ = 0, cached_ = 0;
  size_t cap_ = 0;
  std::atomic<uint64_t> maker_{0};
  std::atomic<size_t> used_{0};     // written by the owner alone, read by threads that help it
  std::atomic<size_t> outside_{0};  // written by all of them
  uint64_t occupied_[kClasses / 64] = {};  // classes whose list isn't empty
  PoolBlock* free_[kClasses] = {};
};

}  // namespace tenon::vm
