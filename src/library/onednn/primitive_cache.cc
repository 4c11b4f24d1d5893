#include "library/onednn/primitive_cache.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "library/onednn/team.h"
#include "support/error.h"

namespace tenon::onednn {
namespace {

// A reference that does not keep the value alive, only its header, so that its address is not given
// to another object meanwhile.
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

 private:
  TensorObj* object_;
};

struct Packed {
  WeakTensor source;
  dnnl::memory::desc from, to;
  std::shared_ptr<void> data;
};

struct Cache {
  std::mutex mutex;
  using Entry = std::pair<std::string, std::shared_ptr<const Primitive>>;
  std::list<Entry> by_use;  // the most recent first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key;
  std::unordered_multimap<const TensorObj*, Packed> packed;
  std::atomic<int64_t> packings{0};
};

Cache& cache() {
  static Cache* const instance = new Cache;  // never destroyed: threads may outlive statics
  return *instance;
}

std::shared_ptr<void> allocate(size_t bytes) {
  void* memory = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (!memory) throw Error(ErrorKind::Runtime, cat("oneDNN: no memory for ", bytes, " bytes"));
  return {memory, std::free};
}

// Scratch of this thread, grown as needed.
void* scratch(size_t bytes) {
  thread_local std::shared_ptr<void> memory;
  thread_local size_t size = 0;
  if (bytes > size) {
    memory = allocate(bytes);
    size = bytes;
  }
  return memory.get();
}

// The tensor by which a constant is known: of one that another library made, that one, which the
// tensors that are wrapped around it for each call share.
TensorObj* identity_of(const Tensor& tensor) {
  auto* wrapped = tensor->owner.as<TensorObj>();
  return wrapped ? wrapped : tensor.get();
}

}  // namespace

void Key::add(double value) {
  int64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  add(bits);
}

const dnnl::engine& cpu_engine() {
  static const dnnl::engine* const engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

std::shared_ptr<const Primitive> cached_primitive(const Key& described, double multiplications,
                                                  const std::function<Primitive()>& make) {
  Cache& c = cache();
  Key key = described;
  key.add(
      int64_t{set_threads(multiplications)});  // oneDNN divides the work when the primitive is made
  {
    std::lock_guard lock(c.mutex);
    if (auto it = c.by_key.find(key.text()); it != c.by_key.end()) {
      c.by_use.splice(c.by_use.begin(), c.by_use, it->second);
      return it->second->second;
    }
  }
  auto made = std::make_shared<const Primitive>(make());
  std::lock_guard lock(c.mutex);
  if (auto it = c.by_key.find(key.text()); it != c.by_key.end()) return it->second->second;
  c.by_use.emplace_front(key.text(), made);
  c.by_key[key.text()] = c.by_use.begin();
  if (c.by_use.size() > kMaxPrimitives) {
    c.by_key.erase(c.by_use.back().first);
    c.by_use.pop_back();
  }
  return made;
}

void* packed_weights(const Tensor& weights, const dnnl::memory::desc& from,
                     const dnnl::memory::desc& to, std::shared_ptr<void>* holder) {
  if (from == to) return weights.data();
  Cache& c = cache();
  TensorObj* const identity = identity_of(weights);
  if (weights.constant()) {
    std::lock_guard lock(c.mutex);
    auto [begin, end] = c.packed.equal_range(identity);
    for (auto it = begin; it != end; ++it) {
      if (it->second.from == from && it->second.to == to) {
        *holder = it->second.data;
        return holder->get();
      }
    }
  }
  *holder = allocate(to.get_size());
  dnnl::stream stream(cpu_engine());
  dnnl::memory source(from, cpu_engine(), weights.data());
  dnnl::memory packed(to, cpu_engine(), holder->get());
  dnnl::reorder(source, packed).execute(stream, source, packed);
  stream.wait();
  ++c.packings;
  if (weights.constant()) {
    std::lock_guard lock(c.mutex);
    std::erase_if(c.packed, [](const auto& entry) { return !entry.second.source.alive(); });
    c.packed.emplace(identity, Packed{WeakTensor(identity), from, to, *holder});
  }
  return holder->get();
}

int64_t packing_count() {
  return cache().packings;
}

void execute(const Primitive& primitive, std::unordered_map<int, dnnl::memory> arguments) {
  if (primitive.scratchpad_bytes > 0) {
    const auto bytes = static_cast<dnnl::memory::dim>(primitive.scratchpad_bytes);
    arguments.emplace(
        DNNL_ARG_SCRATCHPAD,
        dnnl::memory({{bytes}, dnnl::memory::data_type::u8, dnnl::memory::format_tag::a},
                     cpu_engine(), scratch(primitive.scratchpad_bytes)));
  }
  thread_local dnnl::stream* const stream = new dnnl::stream(cpu_engine());
  primitive.primitive.execute(*stream, arguments);
  stream->wait();
}

dnnl::post_ops post_operations(const dnnl::memory::desc* residual, OneDnnActivation activation,
                               float alpha, float beta) {
  using dnnl::algorithm;
  dnnl::post_ops ops;
  if (residual) ops.append_binary(algorithm::binary_add, *residual);
  switch (activation) {
    case OneDnnActivation::kNone:
      break;
    case OneDnnActivation::kRelu:
      ops.append_eltwise(1, algorithm::eltwise_relu, 0, 0);
      break;
    case OneDnnActivation::kClip:
      ops.append_eltwise(1, algorithm::eltwise_clip, alpha, beta);
      break;
    case OneDnnActivation::kGeluErf:
      ops.append_eltwise(1, algorithm::eltwise_gelu_erf, 0, 0);
      break;
    case OneDnnActivation::kTanh:
      ops.append_eltwise(1, algorithm::eltwise_tanh, 0, 0);
      break;
    case OneDnnActivation::kSigmoid:
      ops.append_eltwise(1, algorithm::eltwise_logistic, 0, 0);
      break;
    default:
      throw Error(ErrorKind::Runtime,
                  cat("oneDNN: no activation has the number ", static_cast<int64_t>(activation)));
  }
  return ops;
}

void require_f32(const Tensor& tensor, const char* function, const char* name, int64_t rank) {
  if (tensor && tensor.dtype() == f32 && tensor.device().device_type == kDLCPU &&
      (tensor->layout & LayoutWord::kCompact) && (rank < 0 || tensor.rank() == rank)) {
    return;
  }
  throw Error(ErrorKind::Runtime, cat(function, ": '", name, "' is no compact float32 tensor",
                                      rank < 0 ? "" : cat(" of rank ", rank), " on the CPU"));
}

}  // namespace tenon::onednn
