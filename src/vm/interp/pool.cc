#include "vm/interp/pool.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

#include "device/call_context.h"
#include "device/device.h"
#include "support/failures.h"
#include "support/text.h"
#include "vm/isa/limits.h"

namespace tenon::vm {
namespace {

constexpr size_t kMinBlock = 64;
// Free memory that a pool may keep regardless of its use.
constexpr size_t kKeepAlways = size_t{16} << 20;
thread_local char thread_mark;

uint16_t gap_of(size_t alignment) {
  return static_cast<uint16_t>(alignment <= kDataAlignment ? 0 : alignment);
}

void fill(PoolBlock* block) {
  std::memset(block->data, kPoison, block->capacity);
}

}  // namespace

Pool::Pool(DLDevice device) : device_(device) {}

const void* Pool::this_thread() {
  return &thread_mark;
}

// Sizes 64, 80, 96, 112, 128, 160, ...: class 4k + s is (4 + s) << (k + 4).
uint32_t Pool::class_of(size_t bytes) {
  size_t n = std::max(bytes, kMinBlock) - 1;
  auto power = static_cast<uint32_t>(std::bit_width(n)) - 3;  // n >> power is in 4..7
  return 4 * (power - 4) + static_cast<uint32_t>(n >> power) - 4 + 1;
}

size_t Pool::class_size(uint32_t size_class) {
  return size_t{4 + size_class % 4} << (size_class / 4 + 4);
}

size_t Pool::new_capacity(uint32_t size_class, size_t alignment) {
  const size_t unit = std::max<size_t>(1, gap_of(alignment));
  return (class_size(size_class) + unit - 1) & ~(unit - 1);
}

void Pool::begin_call(size_t cap, size_t outside) {
  collect();
  ++call_;
  used_.set(0);
  outside_.store(outside, std::memory_order_relaxed);
  peak_.set(0);
  asked_.set(0);
  asked_peak_.set(0);
  cap_ = cap;
}

bool Pool::is_of_call(const StorageObj& storage) const {
  if (!(storage.flags & StorageObj::kIsPooled)) return false;
  const auto& block = static_cast<const PoolBlock&>(storage);
  return block.pool == this && block.call == call_ && block.maker == maker();
}

bool Pool::count_outside(size_t bytes) {
  size_t outside = outside_.load(std::memory_order_relaxed);
  do {
    size_t counted = outside + used();
    if (cap_ && (counted > cap_ || bytes > cap_ - counted)) return false;
  } while (!outside_.compare_exchange_weak(outside, outside + bytes, std::memory_order_relaxed));
  return true;
}

[[gnu::cold]] void Pool::fail_cap(size_t bytes) const {
  fail_cap(cat(bytes_text(bytes), " more, in addition to ", bytes_text(counted()), " in use"));
}

[[gnu::cold]] void Pool::fail_cap(std::string_view found) const {
  throw failure("the call would exceed its memory limit", found, cat("at most ", bytes_text(cap_)))
      .stopped_by(StopCause::Memory)
      .help("raise the call's memory limit");
}

PoolBlock* Pool::find_free(uint32_t size_class) {
  if (!free_[size_class]) {
    const uint32_t last = std::min(size_class + 3, kClasses - 1);  // less than twice the size
    do {
      if (size_class == last) return nullptr;
      ++size_class;
    } while (!free_[size_class]);
  }
  PoolBlock* block = free_[size_class];
  free_[size_class] = block->next;
  cached_ -= block->capacity;
  return block;
}

PoolBlock* Pool::allocate(size_t bytes, size_t alignment) {
  if (bytes > kMaxStorageBytes) {
    if (cap_) fail_cap(bytes);
    throw Error(ErrorKind::Runtime, cat("a storage block of ", bytes, " bytes is too large"));
  }
  if (returned_.load(std::memory_order_relaxed)) [[unlikely]]
    collect();
  uint32_t size_class = class_of(bytes);
  PoolBlock* block = alignment <= kDataAlignment ? find_free(size_class) : nullptr;
  if (cap_) {
    const size_t weight = block ? weight_of(block)
                                : weight_of(new_capacity(size_class, alignment), gap_of(alignment));
    if (weight > *left()) [[unlikely]] {
      if (block) keep(block);
      fail_cap(bytes);
    }
  }
  if (!block) block = new_block(size_class, bytes, alignment);
  used_ += weight_of(block);
  if (used() > peak_.get()) {
    peak_.set(used());
    high_.raise_to(used());
  }
  asked_ += bytes;
  asked_peak_.raise_to(asked_.get());
  allocations_ += 1;
  block->counts = Object::kCountsOfNew;
  block->size = bytes;
  block->call = call_;
  block->maker = maker();
  ++blocks_out_;
  return block;
}

void Pool::make_slot(const Tensor& tensor) {
  auto* whole = tensor->owner.as<StorageObj>();
  if (!whole || !is_of_call(*whole)) return;
  PoolBlock* slot = new_header(tensor.data(), static_cast<size_t>(tensor.bytes()));
  if (!slot) return;  // not poisoned then, which no program depends on
  slot->counts = Object::kCountsOfNew;
  slot->size = slot->capacity;
  slot->call = call_;
  slot->maker = maker();
  fill(slot);
  slot->owner = std::exchange(tensor->owner, Ref<Object>::adopt(slot));
}

PoolBlock* Pool::new_header(void* data, size_t capacity) {
  auto* block = new (std::nothrow) PoolBlock;
  if (!block) return nullptr;
  block->type_index = PoolBlock::kTypeIndex;
  block->deleter = &delete_block;
  block->data = data;
  block->device = device_;
  block->flags = StorageObj::kIsPooled;
  block->pool = this;
  block->capacity = capacity;
  return block;
}

[[gnu::cold]] PoolBlock* Pool::new_block(uint32_t size_class, size_t bytes, size_t alignment) {
  bool cacheable = alignment <= kDataAlignment && !naive_;
  size_t capacity = new_capacity(size_class, alignment);
  make_room(capacity);
  const DeviceTable& table = device_table(device_);
  void* memory = table.allocate(device_.device_id, capacity, std::max(alignment, kDataAlignment));
  if (!memory) {
    trim();
    memory = table.allocate(device_.device_id, capacity, std::max(alignment, kDataAlignment));
  }
  if (!memory) {
    throw Error(ErrorKind::Runtime,
                cat(to_text(device_), " has no ", bytes, " bytes of memory left"));
  }
  PoolBlock* block = new_header(memory, capacity);
  if (!block) {
    table.free(device_.device_id, memory, capacity);
    throw Error(ErrorKind::Runtime, "out of memory");
  }
  block->size_class = static_cast<uint16_t>(cacheable ? size_class : kClasses);
  block->gap = gap_of(alignment);
  system_allocations_ += 1;
  const size_t now = allocated_.fetch_add(capacity, std::memory_order_relaxed) + capacity;
  allocated_peak_.raise_to(now);
  return block;
}

// Called before requesting more memory from the device: frees unused blocks, largest first, down to
// the peak of memory ever in use.
void Pool::make_room(size_t bytes) {
  size_t keep = std::max(high_.get(), kKeepAlways);
  while (cached_.get() + bytes > keep && cached_.get() > 0) {
    uint32_t c = kClasses - 1;
    while (!free_[c]) --c;
    PoolBlock* block = free_[c];
    free_[c] = block->next;
    cached_ -= block->capacity;
    free_block(block);
  }
}

void Pool::free_block(PoolBlock* block) {
  allocated_.fetch_sub(block->capacity, std::memory_order_relaxed);
  device_table(device_).free(device_.device_id, block->data, block->capacity);
  delete block;
}

PoolStats Pool::stats() const {
  return {.allocated = allocated_.load(std::memory_order_relaxed),
          .peak = allocated_peak_.get(),
          .pooled = cached_.get() + returned_bytes_.load(std::memory_order_relaxed),
          .call_peak = peak_.get(),
          .allocations = allocations_.get(),
          .system_allocations = system_allocations_.get(),
          .call_bytes = asked_peak_.get()};
}

[[gnu::cold]] void Pool::trim() {
  collect();
  for (uint32_t c = 0; c < kClasses; ++c) {
    while (PoolBlock* block = free_[c]) {
      free_[c] = block->next;
      free_block(block);
    }
  }
  cached_.set(0);
}

// By the owner: puts the block into its class's free list, if it may stay.
void Pool::keep(PoolBlock* block) {
  if (block->size_class == kClasses) {
    free_block(block);
    return;
  }
  block->next = free_[block->size_class];
  free_[block->size_class] = block;
  cached_ += block->capacity;
}

[[gnu::cold]] void Pool::collect() {
  PoolBlock* list = returned_.exchange(nullptr, std::memory_order_acquire);
  while (list) {
    PoolBlock* next = list->next;
    returned_bytes_.fetch_sub(list->capacity, std::memory_order_relaxed);
    if (list->call == call_) discount(list);
    keep(list);
    list = next;
  }
}

void Pool::delete_block(void* self, int flags) {
  if (!(flags & Object::kFree)) return;  // the memory is returned with the object
  auto* block = static_cast<PoolBlock*>(static_cast<StorageObj*>(self));
  Pool* pool = block->pool;
  if (pool->poisons()) fill(block);
  if (block->owner) {  // a slot, which keeps its block alive
    delete block;
    return;
  }
  const void* const owner = pool->owner_.load(std::memory_order_acquire);
  if (owner == &thread_mark) {
    if (block->call == pool->call_) pool->discount(block);
    pool->keep(block);
    --pool->blocks_out_;
    return;
  }
  if (pool->closed_.load(std::memory_order_acquire) || (!owner && block->size_class == kClasses)) {
    pool->free_block(block);  // no later call counts it as its own
  } else {
    pool->returned_bytes_.fetch_add(block->capacity, std::memory_order_relaxed);
    PoolBlock* head = pool->returned_.load(std::memory_order_relaxed);
    do block->next = head;
    while (!pool->returned_.compare_exchange_weak(head, block, std::memory_order_acq_rel,
                                                  std::memory_order_relaxed));
  }
  pool->drop(1);
}

void Pool::close() {
  owner_.store(nullptr, std::memory_order_release);
  closed_.store(true, std::memory_order_release);
  trim();
  drop(kOfMachine - blocks_out_);
}

void Pool::drop(int64_t references) {
  if (holders_.fetch_sub(references, std::memory_order_acq_rel) != references) return;
  // This is the last reference, so no block can be returned any more.
  PoolBlock* list = returned_.exchange(nullptr, std::memory_order_acquire);
  while (list) {
    PoolBlock* next = list->next;
    free_block(list);
    list = next;
  }
  trim();
  delete this;
}

}  // namespace tenon::vm
