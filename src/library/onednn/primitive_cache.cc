#include "library/onednn/primitive_cache.h"

#include <algorithm>
#include <cstring>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "device/preparation.h"
#include "library/onednn/packed_weights.h"
#include "library/onednn/signal_stack.h"
#include "library/onednn/team.h"
#include "library/onednn/workspace.h"
#include "object/file_bytes.h"
#include "support/error.h"

namespace tenon::onednn {
namespace {

// oneDNN's objects for the operands of one call at a time. They are reused, because creating them
// takes longer than a small product.
struct Frame {
  dnnl::memory source, weights, bias, residual, out, scratchpad;
};

dnnl::memory unbound(const dnnl::memory::desc& desc) {
  return {desc, cpu_engine(), DNNL_MEMORY_NONE};
}

class CachedPlan {
 public:
  explicit CachedPlan(Plan plan)
      : plan_(std::move(plan)), packs_(plan_.weights != plan_.given_weights) {}

  void run(const Operands& operands);
  // What `run` keeps for later calls with these weights.
  void prepare(const Operands& operands) const;

 private:
  std::unique_ptr<Frame> take_frame();
  void give_back(std::unique_ptr<Frame> frame) {
    std::lock_guard lock(mutex_);
    idle_.push_back(std::move(frame));
  }

  const Plan plan_;
  const bool packs_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Frame>> idle_;  // at most as many as there were concurrent calls
};

struct Cache {
  std::mutex mutex;
  using Entry = std::pair<Key, std::shared_ptr<CachedPlan>>;
  struct Hash {
    size_t operator()(const Key* key) const { return key->hash(); }
  };
  struct Equal {
    bool operator()(const Key* a, const Key* b) const { return *a == *b; }
  };
  std::list<Entry> by_use;  // most recently used first
  std::unordered_map<const Key*, std::list<Entry>::iterator, Hash, Equal> by_key;
};

Cache& cache() {
  static Cache* const instance = new Cache;  // never destroyed: threads may outlive statics
  return *instance;
}

std::shared_ptr<CachedPlan> find(Cache& c, const Key& key) {
  std::lock_guard lock(c.mutex);
  auto it = c.by_key.find(&key);
  if (it == c.by_key.end()) return nullptr;
  c.by_use.splice(c.by_use.begin(), c.by_use, it->second);
  return it->second->second;
}

// Adds the plan, or returns the one that another thread added in the meantime.
std::shared_ptr<CachedPlan> keep(Cache& c, const Key& key, std::shared_ptr<CachedPlan> made) {
  std::lock_guard lock(c.mutex);
  if (auto it = c.by_key.find(&key); it != c.by_key.end()) return it->second->second;
  c.by_use.emplace_front(key, made);
  c.by_key[&c.by_use.front().first] = c.by_use.begin();
  if (c.by_use.size() > kMaxPrimitives) {
    c.by_key.erase(&c.by_use.back().first);
    c.by_use.pop_back();
  }
  return made;
}

std::unique_ptr<Frame> CachedPlan::take_frame() {
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto frame = std::move(idle_.back());
      idle_.pop_back();
      return frame;
    }
  }
  auto frame = std::make_unique<Frame>();
  frame->source = unbound(plan_.source);
  frame->out = unbound(plan_.out);
  frame->residual = unbound(plan_.out);
  if (!packs_) frame->weights = unbound(plan_.weights);
  if (!plan_.bias.is_zero()) frame->bias = unbound(plan_.bias);
  const auto bytes = static_cast<dnnl::memory::dim>(plan_.scratchpad_bytes);
  frame->scratchpad = unbound({{bytes}, dnnl::memory::data_type::u8, dnnl::memory::format_tag::a});
  return frame;
}

void CachedPlan::prepare(const Operands& operands) const {
  prepare_scratch(plan_.scratchpad_bytes);
  if (!operands.weights.constant()) return;
  if (!packs_) return map_pages(operands.weights);
  packed_weights(operands.weights, operands.weights_offset, plan_.given_weights, plan_.weights);
}

void CachedPlan::run(const Operands& operands) {
  const TeamScope team(plan_.threads);
  ensure_signal_stacks(plan_.threads);
  std::unique_ptr<Frame> frame = take_frame();
  std::array<dnnl_exec_arg_t, 6> arguments;
  int count = 0;
  auto pass = [&](int index, const dnnl::memory& memory) {
    arguments[static_cast<size_t>(count++)] = {index, memory.get()};
  };
  auto bind = [&](int index, dnnl::memory& memory, void* data) {
    memory.set_data_handle(data);
    pass(index, memory);
  };
  bind(DNNL_ARG_SRC, frame->source, operands.source);
  bind(DNNL_ARG_DST, frame->out, operands.out);
  if (operands.bias) bind(DNNL_ARG_BIAS, frame->bias, operands.bias);
  if (plan_.adds_to_out) {
    std::memmove(operands.out, operands.residual, plan_.out.get_size());
  } else if (operands.residual) {
    bind(DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, frame->residual, operands.residual);
  }
  const bool packs_now = packs_ && !operands.weights.constant();
  const Counted workspace(plan_.scratchpad_bytes + (packs_now ? plan_.weights.get_size() : 0));
  std::shared_ptr<const dnnl::memory> packed;
  if (packs_) {
    packed = packed_weights(operands.weights, operands.weights_offset, plan_.given_weights,
                            plan_.weights);
    pass(DNNL_ARG_WEIGHTS, *packed);
  } else {
    bind(DNNL_ARG_WEIGHTS, frame->weights,
         static_cast<char*>(operands.weights.data()) + operands.weights_offset);
  }
  if (plan_.scratchpad_bytes > 0) {
    bind(DNNL_ARG_SCRATCHPAD, frame->scratchpad, scratch(plan_.scratchpad_bytes));
  }
  thread_local dnnl::stream stream(cpu_engine());
  dnnl::error::wrap_c_api(
      dnnl_primitive_execute(plan_.primitive.get(), stream.get(), count, arguments.data()),
      "a primitive could not be executed");
  stream.wait();
  give_back(std::move(frame));
}

}  // namespace

Key::Key(const library::Signature& function) {
  add(static_cast<int64_t>(reinterpret_cast<intptr_t>(&function)));
  add(int64_t{usable_threads()});  // oneDNN divides the work when a primitive is made
}

void Key::add(int64_t value) {
  if (size_ == words_.size()) throw Error(ErrorKind::Runtime, "oneDNN: operands of too many axes");
  words_[size_++] = value;
}

void Key::add(double value) {
  int64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  add(bits);
}

void Key::add(std::span<const int64_t> values) {
  add(static_cast<int64_t>(values.size()));
  for (int64_t value : values) add(value);
}

void Key::add(const Tensor& tensor) {
  if (tensor) {
    add(tensor.shape());
  } else {
    add(int64_t{-1});
  }
}

bool Key::operator==(const Key& other) const {
  return size_ == other.size_ &&
         std::equal(words_.begin(), words_.begin() + size_, other.words_.begin());
}

// FNV-1a over words.
size_t Key::hash() const {
  uint64_t h = 14695981039346656037u;
  for (size_t i = 0; i < size_; ++i) h = (h ^ static_cast<uint64_t>(words_[i])) * 1099511628211u;
  return h ^ h >> 32;
}

const dnnl::engine& cpu_engine() {
  static const dnnl::engine* const engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

void run_planned(const Key& key, const std::function<Plan()>& make, const Operands& operands) {
  Cache& c = cache();
  std::shared_ptr<CachedPlan> plan = find(c, key);
  if (!plan) plan = keep(c, key, std::make_shared<CachedPlan>(make()));
  is_preparing() ? plan->prepare(operands) : plan->run(operands);
}

dnnl::post_ops post_operations(const Plan& plan, bool has_residual, library::Activation activation,
                               float alpha, float beta) {
  using dnnl::algorithm;
  dnnl::post_ops ops;
  if (has_residual && plan.adds_to_out) {
    ops.append_sum();
  } else if (has_residual) {
    ops.append_binary(algorithm::binary_add, plan.out);
  }
  switch (activation) {
    case library::Activation::None:
      break;
    case library::Activation::Relu:
      ops.append_eltwise(1, algorithm::eltwise_relu, 0, 0);
      break;
    case library::Activation::Clip:
      ops.append_eltwise(1, algorithm::eltwise_clip, alpha, beta);
      break;
    case library::Activation::Tanh:
      ops.append_eltwise(1, algorithm::eltwise_tanh, 0, 0);
      break;
    case library::Activation::Sigmoid:
      ops.append_eltwise(1, algorithm::eltwise_logistic, 0, 0);
      break;
    default:
      throw Error(ErrorKind::Runtime,
                  cat("oneDNN: no activation has the number ", static_cast<int64_t>(activation)));
  }
  return ops;
}

}  // namespace tenon::onednn
