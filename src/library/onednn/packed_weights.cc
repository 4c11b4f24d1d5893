#include "library/onednn/packed_weights.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <unordered_map>

#include "library/onednn/primitive_cache.h"
#include "object/file_bytes.h"
#include "support/error.h"
#include "support/poll.h"
#include "support/rounding.h"

namespace tenon::onednn {
namespace {

// A weak reference: it keeps only the object's header alive, so that its address isn't reused.
class WeakTensor {
 public:
  explicit WeakTensor(TensorObj* object) : object_(object) {
    __atomic_fetch_add(&object_->counts, Object::kOneWeak, __ATOMIC_RELAXED);
  }
  WeakTensor(WeakTensor&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  WeakTensor& operator=(WeakTensor&&) = delete;
  ~WeakTensor() {
    if (!object_) return;
    const uint64_t before =
        __atomic_fetch_sub(&object_->counts, Object::kOneWeak, __ATOMIC_ACQ_REL);
    if (before >> 32 == 1) object_->deleter(object_, Object::kFree);
  }
  bool alive() const { return object_->strong_count() != 0; }
  bool is(const TensorObj* object) const { return object_ == object; }

 private:
  TensorObj* object_;
};

// Created by the first call that needs it and filled by one of the calls that need it.
struct Slot {
  std::mutex mutex;
  std::shared_ptr<const void> packed;  // a dnnl::memory, or floats if the form has a `transform`
};

// What a constant was packed from and to.
struct Form {
  dnnl::memory::desc from, to;      // of a primitive's weights; of a transform's, `from` alone
  const void* transform = nullptr;  // by which, or null

  bool operator==(const Form&) const = default;
};

struct Packed {
  WeakTensor keeper;
  Form form;
  std::shared_ptr<Slot> slot;
};

struct Cache {
  std::mutex mutex;
  std::unordered_multimap<const void*, Packed> packed;  // by the elements' address
  std::atomic<int64_t> packings{0};
};

Cache& cache() {
  static Cache* const instance = new Cache;  // never destroyed: threads may outlive statics
  return *instance;
}

// The tensor that keeps a constant's elements alive, which with their address identifies them. It
// is another one than the constant if that is a view: of a file of weights, or of another library's
// tensor, for which each call makes a wrapper.
TensorObj* keeper_of(const Tensor& tensor) {
  auto* whole = tensor->owner.as<TensorObj>();
  return whole ? whole : tensor.get();
}

std::shared_ptr<const dnnl::memory> pack(void* elements, const dnnl::memory::desc& from,
                                         const dnnl::memory::desc& to) {
  struct Owned {
    std::shared_ptr<void> bytes;
    dnnl::memory memory;
  };
  auto owned = std::make_shared<Owned>();
  owned->bytes = allocate(to.get_size());
  owned->memory = dnnl::memory(to, cpu_engine(), owned->bytes.get());
  dnnl::stream stream(cpu_engine());
  dnnl::memory source(from, cpu_engine(), elements);
  dnnl::reorder(source, owned->memory).execute(stream, source, owned->memory);
  stream.wait();
  ++cache().packings;
  return {owned, &owned->memory};
}

std::shared_ptr<Slot> slot_of(const Tensor& weights, const void* elements, const Form& form) {
  TensorObj* keeper = keeper_of(weights);
  Cache& c = cache();
  std::lock_guard lock(c.mutex);
  auto [begin, end] = c.packed.equal_range(elements);
  for (auto it = begin; it != end; ++it) {
    const Packed& packed = it->second;
    if (packed.keeper.is(keeper) && packed.form == form) return packed.slot;
  }
  std::erase_if(c.packed, [](const auto& entry) { return !entry.second.keeper.alive(); });
  auto slot = std::make_shared<Slot>();
  c.packed.emplace(elements, Packed{WeakTensor(keeper), form, slot});
  return slot;
}

// Memory that is going to be written: this is cheaper than a fault for each page. Where the kernel
// can't, there are faults.
void map_pages_at_once([[maybe_unused]] char* memory, [[maybe_unused]] size_t bytes) {
#ifdef MADV_POPULATE_WRITE
  for (size_t done = 0; done < bytes; done += kPollBytes) {
    poll();
    madvise(memory + done, std::min(kPollBytes, bytes - done), MADV_POPULATE_WRITE);
  }
#endif
}

}  // namespace

std::shared_ptr<void> allocate(size_t bytes) {
  constexpr size_t kLine = 64, kPage = 4096, kLarge = size_t{256} << 10;
  const size_t alignment = bytes >= kLarge ? kPage : kLine;
  std::shared_ptr<void> memory(std::aligned_alloc(alignment, round_up(bytes, alignment)),
                               std::free);
  if (!memory) throw Error(ErrorKind::Runtime, cat("oneDNN: no memory for ", bytes, " bytes"));
  if (bytes >= kLarge) map_pages_at_once(static_cast<char*>(memory.get()), bytes / kPage * kPage);
  return memory;
}

std::shared_ptr<const dnnl::memory> packed_weights(const Tensor& weights, int64_t offset,
                                                   const dnnl::memory::desc& from,
                                                   const dnnl::memory::desc& to) {
  void* const elements = static_cast<char*>(weights.data()) + offset;
  if (!weights.constant()) return pack(elements, from, to);
  const std::shared_ptr<Slot> slot = slot_of(weights, elements, {from, to});
  std::lock_guard lock(slot->mutex);
  if (!slot->packed) {
    map_pages(weights);
    slot->packed = pack(elements, from, to);
    release_pages(weights);
  }
  return std::static_pointer_cast<const dnnl::memory>(slot->packed);
}

std::shared_ptr<const float> transformed_weights(const Tensor& constant, const void* form,
                                                 size_t count,
                                                 const std::function<void(float* to)>& transform) {
  const dnnl::memory::dims shape(constant.shape().begin(), constant.shape().end());
  const dnnl::memory::desc given(shape, dnnl::memory::data_type::f32, dnnl::memory::dims());
  const std::shared_ptr<Slot> slot =
      slot_of(constant, constant.data(), {.from = given, .to = {}, .transform = form});
  std::lock_guard lock(slot->mutex);
  if (!slot->packed) {
    map_pages(constant);
    const std::shared_ptr<void> floats = allocate(count * sizeof(float));
    transform(static_cast<float*>(floats.get()));
    slot->packed = floats;
    release_pages(constant);
    ++cache().packings;
  }
  return std::static_pointer_cast<const float>(slot->packed);
}

void forget_unused() {
  std::lock_guard lock(cache().mutex);
  std::erase_if(cache().packed, [](const auto& entry) { return !entry.second.keeper.alive(); });
}

int64_t packing_count() {
  return cache().packings;
}

int64_t packed_count() {
  std::lock_guard lock(cache().mutex);
  return static_cast<int64_t>(cache().packed.size());
}

}  // namespace tenon::onednn
