#include "graph/pass/verify_memory_plan.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <unordered_map>

#include "graph/ir/intrinsic.h"
#include "graph/ir/packed_call.h"
#include "graph/ir/rewrite.h"

namespace tenon::graph {
namespace {

struct Placed {
  const Var* tensor;
  const Var* storage;
  Dim begin, end;               // bytes
  int64_t first = 0, last = 0;  // bindings of the block
  int64_t overwritten = -1;     // the last binding that overwrote it
  // Set if no other tensor of the block is in its storage: the last binding in which a kernel
  // writes it. Values that share its memory after that aren't tracked, as nothing changes it any
  // more.
  std::optional<int64_t> last_write = std::nullopt;
};

// The plans that the compiler makes stay far below these limits.
// Tensors that one value may share memory with.
constexpr size_t kMaxPlaces = 256;
// Tensors alive together in a storage, some of them at symbolic places.
constexpr size_t kMaxSymbolicPlaces = 64;

// Whether the tensors lie apart in their storage.
bool apart(const Placed& a, const Placed& b) {
  return proves_less_equal(a.end, b.begin) || proves_less_equal(b.end, a.begin);
}

class Verifier {
 public:
  explicit Verifier(const Module& module) : module_(module) {}

  void verify(const FunctionRef& function) {
    name_ = std::string(function->name);
    block(function->body);
  }

 private:
  using Places = std::set<size_t>;  // indices of the tensors that a value may share memory with
  using Values = std::unordered_map<const Var*, Places>;

  // Finds how many tensors of the block are in each storage, and where kernels last write each.
  void find_writes(const BlockRef& block) {
    tensors_in_ = {};
    last_write_ = {};
    for (size_t i = 0; i < block->bindings.size(); ++i) {
      const ExprRef& value = block->bindings[i]->value;
      if (memory_intrinsic(value) == MemoryIntrinsic::kTensor) {
        ++tensors_in_[value.as<Call>()->args[0].as<Var>()];
      }
      find_writes(value, static_cast<int64_t>(i));
    }
  }
  void find_writes(const ExprRef& value, int64_t at) {
    auto* call = value.as<Call>();
    if (call && call->kind == CalleeKind::kKernel) {
      for (size_t i = module_->kernels.at(call->callee)->inputs.size(); i < call->args.size();
           ++i) {
        last_write_[call->args[i].as<Var>()] = at;
      }
    }
    for_each_block(value, [&](const BlockRef& inner) {
      for (const auto& binding : inner->bindings) find_writes(binding->value, at);
    });
  }

  void block(const BlockRef& block) {
    std::vector<Placed> outer_placed = std::move(placed_);
    placed_.clear();
    may_be_ = Values();  // clear() would take time for all that the outer block has put there
    find_writes(block);
    for (size_t i = 0; i < block->bindings.size(); ++i) {
      const auto& binding = *block->bindings[i];
      at_ = static_cast<int64_t>(i);
      made_[binding.var.get()] = at_;
      may_be_[binding.var.get()] = visit(binding.value);
      auto* call = binding.value.as<Call>();
      if (memory_intrinsic(binding.value) == MemoryIntrinsic::kTensor) {
        auto* type = binding.var->type.as<TensorType>();
        const Dim offset = offset_of_tensor(*call);
        const Dim bytes = product(type->dims.to_vector()) * Dim(type->dtype.bytes());
        may_be_[binding.var.get()] = {placed_.size()};
        const Var* storage = call->args[0].as<Var>();
        placed_.push_back({binding.var.get(), storage, offset, offset + bytes, at_, at_});
        if (tensors_in_.at(storage) == 1) {
          const auto write = last_write_.find(binding.var.get());
          placed_.back().last_write = write == last_write_.end() ? -1 : write->second;
        }
      }
    }
    at_ = static_cast<int64_t>(block->bindings.size());
    use(block->result);
    compare(placed_);
    for (const auto& binding : block->bindings) {
      for_each_block(binding->value, [this](const BlockRef& inner) { this->block(inner); });
    }
    placed_ = std::move(outer_placed);
  }

  // Marks all tensors that the operand may share memory with as alive now.
  Places use(const Operand& operand) {
    auto* var = operand.as<Var>();
    auto it = var ? may_be_.find(var) : may_be_.end();
    if (it == may_be_.end()) return {};
    for (size_t place : it->second) {
      Placed& p = placed_[place];
      p.last = std::max(p.last, at_);
      auto made = made_.find(var);
      TENON_ASSERT(var == p.tensor || made == made_.end() || p.overwritten <= made->second,
                   "memory plan of '", name_, "': %", var->name, " is read after %", p.tensor->name,
                   " was overwritten");
    }
    return it->second;
  }

  // Marks everything that the value uses as alive now; returns the value's places.
  Places visit(const ExprRef& value) {
    Places operands, results;
    for_each_operand(value, [&](const Operand& operand) { operands.merge(use(operand)); });
    if (auto* loop = value.as<Loop>()) {
      for (const VarRef& var : loop->vars) may_be_[var.get()] = operands;
    }
    for_each_block(value, [&](const BlockRef& inner) {
      for (const auto& binding : inner->bindings) {
        may_be_[binding->var.get()] = visit(binding->value);
        if (value.is<FunctionExpr>()) results.merge(Places(may_be_[binding->var.get()]));
      }
      results.merge(use(inner->result));
    });
    auto* call = value.as<Call>();
    if (call && call->kind == CalleeKind::kKernel) overwrite(*call);
    const auto intrinsic = memory_intrinsic(value);
    const bool keeps_nothing =
        call && (call->kind == CalleeKind::kKernel ||
                 (intrinsic ? intrinsic != MemoryIntrinsic::kReshape
                            : call->kind == CalleeKind::kPacked && !keeps_arguments(*call)));
    if (!keeps_nothing && !value.is<If>()) results.merge(operands);
    std::erase_if(results, [&](size_t place) {
      const std::optional<int64_t>& last_write = placed_[place].last_write;
      return last_write && *last_write < at_;
    });
    TENON_ASSERT(results.size() <= kMaxPlaces, "memory plan of '", name_,
                 "': a value may share memory with more than ", kMaxPlaces, " tensors");
    return results;
  }

  // A kernel may write a tensor that it also reads only if it declares the pair in place.
  void overwrite(const Call& call) {
    const loop::KernelInterface& kernel = *module_->kernels.at(call.callee);
    const size_t inputs = kernel.inputs.size();
    if (call.args.size() == inputs) return;  // its results are still values
    for (size_t out = 0; out < kernel.outputs.size(); ++out) {
      const Places written = use(call.args[inputs + out]);
      for (size_t in = 0; in < inputs; ++in) {
        for (size_t place : use(call.args[in])) {
          if (!written.contains(place)) continue;
          const auto said = [&](const Array<int64_t>& pair) {
            return pair[0] == static_cast<int64_t>(out) && pair[1] == static_cast<int64_t>(in);
          };
          TENON_ASSERT(std::any_of(kernel.in_place.begin(), kernel.in_place.end(), said),
                       "memory plan of '", name_, "': kernel '", call.callee, "' overwrites %",
                       placed_[place].tensor->name, ", which it reads");
          placed_[place].overwritten = at_;
        }
      }
    }
  }

  // Requires that tensors which are alive together in a storage lie apart.
  void compare(const std::vector<Placed>& placed) const {
    std::unordered_map<const Var*, std::vector<const Placed*>> by_storage;
    for (const Placed& p : placed) by_storage[p.storage].push_back(&p);
    for (const auto& [storage, tensors] : by_storage) compare_in_order(tensors);
  }

  // `tensors` is sorted by the first binding, as the block makes them.
  void compare_in_order(const std::vector<const Placed*>& tensors) const {
    auto ends_later = [](const Placed* a, const Placed* b) { return a->last > b->last; };
    std::priority_queue<const Placed*, std::vector<const Placed*>, decltype(ends_later)> alive(
        ends_later);
    // Those alive: at constant places in order of these, in which neighbours decide, and others.
    std::map<std::pair<int64_t, int64_t>, const Placed*> constant;
    std::set<const Placed*> symbolic;
    auto range = [](const Placed& p) {
      return std::pair(p.begin.as_const().value(), p.end.as_const().value());
    };
    auto is_constant = [](const Placed& p) { return p.begin.is_const() && p.end.is_const(); };
    for (const Placed* p : tensors) {
      for (; !alive.empty() && alive.top()->last < p->first; alive.pop()) {
        if (is_constant(*alive.top())) {
          constant.erase(range(*alive.top()));
        } else {
          symbolic.erase(alive.top());
        }
      }
      for (const Placed* other : symbolic) require_apart(*other, *p);
      if (is_constant(*p)) {
        const auto next = constant.lower_bound(range(*p));
        if (next != constant.end()) require_apart(*next->second, *p);
        if (next != constant.begin()) require_apart(*std::prev(next)->second, *p);
        constant.emplace(range(*p), p);
      } else {
        for (const auto& [_, other] : constant) require_apart(*other, *p);
        symbolic.insert(p);
      }
      TENON_ASSERT(symbolic.empty() || symbolic.size() + constant.size() <= kMaxSymbolicPlaces,
                   "memory plan of '", name_, "': more than ", kMaxSymbolicPlaces,
                   " tensors are alive together in %", p->storage->name,
                   ", some at places that depend on symbols");
      alive.push(p);
    }
  }

  void require_apart(const Placed& a, const Placed& b) const {
    TENON_ASSERT(apart(a, b), "memory plan of '", name_, "': %", a.tensor->name, " and %",
                 b.tensor->name, " are alive together in one place");
  }

  const Module& module_;
  std::string name_;
  std::unordered_map<const Var*, int64_t> made_;  // the binding that makes each variable
  std::vector<Placed> placed_;                    // the tensors of the block
  Values may_be_;
  std::unordered_map<const Var*, int64_t> tensors_in_, last_write_;  // see find_writes
  int64_t at_ = 0;
};

}  // namespace

void verify_memory_plan(const Module& module) {
  for (const auto& [name, function] : module->functions) Verifier(module).verify(function);
}

}  // namespace tenon::graph
