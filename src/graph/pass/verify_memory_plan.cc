#include "graph/pass/verify_memory_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/ir/intrinsic.h"
#include "graph/ir/packed_call.h"
#include "graph/ir/rewrite.h"

namespace tenon::graph {
namespace {

// An arm of an if or match, or a block of a loop.
struct Within {
  const Expr* of;
  size_t block;
  bool loops;
};
using Path = std::vector<Within>;

struct Placed {
  const Var* tensor;
  const Var* storage;
  Dim begin, end;               // bytes
  int64_t first = 0, last = 0;  // bindings of the function, in the order in which they stand
  Path path;                    // the blocks that it is made in, outermost first
  size_t storage_depth = 0;     // how many of these its storage is made in
  int64_t overwritten = -1;     // the last binding that overwrote it
  // Set if no other tensor is in its storage, and a loop doesn't write it again: the last binding
  // in which a call writes it. Values that share its memory after that aren't tracked, as nothing
  // changes it any more.
  std::optional<int64_t> last_write = std::nullopt;
  bool leaves_arm = false;  // is alive after an arm that it is made in

  // Whether a loop makes it again in a storage from outside of the loop.
  bool repeats() const {
    return std::any_of(path.begin() + static_cast<std::ptrdiff_t>(storage_depth), path.end(),
                       [](const Within& block) { return block.loops; });
  }
};

// Whether the tensors are made in different arms of an if or match, so that a turn of the loops
// around them has only one.
bool exclude_each_other(const Placed& a, const Placed& b) {
  for (size_t i = 0; i < std::min(a.path.size(), b.path.size()); ++i) {
    if (a.path[i].of != b.path[i].of) return false;
    if (a.path[i].block != b.path[i].block) return !a.path[i].loops;
  }
  return false;
}

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
    find_writes(function->body);
    at_ = -1;
    block(function->body);
    ++at_;
    use(function->body->result);
    compare(placed_);
  }

 private:
  using Places = std::set<size_t>;  // indices of the tensors that a value may share memory with
  using Values = std::unordered_map<const Var*, Places>;

  // Finds how many tensors are in each storage, and where calls last write each.
  void find_writes(const BlockRef& block) {
    int64_t group_end = -1;
    for (const auto& binding : block->bindings) {
      ++at_;
      const ExprRef& value = binding->value;
      auto* call = value.as<Call>();
      group_end = std::max(group_end, at_ + grouped_after(value));
      if (memory_intrinsic(value) == MemoryIntrinsic::kTensor) {
        ++tensors_in_[call->args[0].as<Var>()];
      }
      if (call) {
        for (size_t i = inputs_of(*module_, *call); i < call->args.size(); ++i) {
          last_write_[call->args[i].as<Var>()] = group_end;
        }
      }
      for_each_block(value, [&](const BlockRef& inner) {
        if (value.is<FunctionExpr>()) return find_captured(inner);
        find_writes(inner);
        ++at_;
      });
    }
  }
  // A function literal may write at any time.
  void find_captured(const BlockRef& block) {
    for (const auto& binding : block->bindings) {
      for_each_operand(binding->value,
                       [this](const Operand& o) { last_write_[o.as<Var>()] = INT64_MAX; });
      for_each_block(binding->value, [this](const BlockRef& inner) { find_captured(inner); });
    }
  }

  void block(const BlockRef& block) {
    const Array<Ref<const Binding>>& bindings = block->bindings;
    size_t group_end = 0;
    for (size_t i = 0; i < bindings.size(); ++i) {
      ++at_;
      const Ref<const Binding>& binding = bindings[i];
      const Var* var = binding->var.get();
      if (const int64_t grouped = grouped_after(binding->value)) {
        group_end = i + static_cast<size_t>(grouped);
        require_independent(*block, i + 1, group_end);
      } else if (i < group_end) {
        // All calls of a group happen when its last one does.
        const int64_t at = std::exchange(at_, at_ + static_cast<int64_t>(group_end - i));
        visit(binding->value);
        at_ = at;
        continue;
      }
      Places places = visit(binding->value);
      made_[var] = at_;  // with blocks, at their end: what they overwrite is part of the value
      may_be_[var] = std::move(places);
      if (memory_intrinsic(binding->value) == MemoryIntrinsic::kStorage) {
        storage_depth_[var] = path_.size();
      }
      if (memory_intrinsic(binding->value) == MemoryIntrinsic::kTensor) place(*binding);
    }
  }

  void place(const Binding& binding) {
    const Var* var = binding.var.get();
    auto* call = binding.value.as<Call>();
    auto* type = var->type.as<TensorType>();
    const Dim offset = offset_of_tensor(*call);
    const Dim bytes = product(type->dims.to_vector()) * Dim(type->dtype.bytes());
    const Var* storage = call->args[0].as<Var>();
    may_be_[var] = {placed_.size()};
    Placed placed{var, storage, offset, offset + bytes, at_, at_, path_};
    const auto depth = storage_depth_.find(storage);
    placed.storage_depth = depth == storage_depth_.end() ? 0 : depth->second;
    if (tensors_in_.at(storage) == 1 && !placed.repeats()) {
      const auto write = last_write_.find(var);
      placed.last_write = write == last_write_.end() ? -1 : write->second;
    }
    placed_.push_back(std::move(placed));
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

  // The places of a block's result, at its end.
  Places inner_block(const BlockRef& inner, const Within& within) {
    path_.push_back(within);
    block(inner);
    ++at_;
    Places result = use(inner->result);
    path_.pop_back();
    return result;
  }

  // What a loop uses of the values that were made before it is alive until its end. What it hands
  // to its next turn must not be made again in the same place.
  void visit_loop(const Loop& loop, Places* results) {
    const int64_t begin = at_;
    Places carried = *results;
    const auto vary = [&] {
      for (const VarRef& var : loop.vars) may_be_[var.get()] = carried;
    };
    vary();
    inner_block(loop.condition, {&loop, 0, true});
    carried.merge(inner_block(loop.body, {&loop, 1, true}));
    for (const size_t place : carried) {
      const Placed& p = placed_[place];
      const auto write = last_write_.find(p.tensor);
      const bool changes = p.first < begin ? write != last_write_.end() && write->second > begin
                                           : p.storage_depth <= path_.size();
      TENON_ASSERT(!changes, "memory plan of '", name_, "': %", p.tensor->name,
                   " is handed to the next turn of a loop that writes it again in %",
                   p.storage->name);
    }
    for (size_t i = 0; i < placed_.size(); ++i) {
      Placed& p = placed_[i];
      if (p.first < begin && p.last >= begin) p.last = std::max(p.last, at_);
    }
    vary();
    *results = std::move(carried);
  }

  // Marks everything that the value uses as alive now; returns the value's places.
  Places visit(const ExprRef& value) {
    Places operands, results;
    for_each_operand(value, [&](const Operand& operand) { operands.merge(use(operand)); });
    if (auto* loop = value.as<Loop>()) {
      results = operands;
      visit_loop(*loop, &results);
    } else {
      if (value.is<Match>()) {
        for (const VarRef& var : block_variables(value)) may_be_[var.get()] = operands;
      }
      const bool literal = value.is<FunctionExpr>();
      size_t index = 0;
      const size_t made_before = placed_.size();
      for_each_block(value, [&](const BlockRef& inner) {
        if (literal) {
          results.merge(captured(inner));
        } else {
          results.merge(inner_block(inner, {value.get(), index++, false}));
        }
      });
      // It may be alive while another arm is evaluated in a later turn, or not at all.
      for (const size_t place : results) placed_[place].leaves_arm |= place >= made_before;
    }
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

  // Requires that bindings first to last are calls with destinations, of which none reads or writes
  // what another writes.
  void require_independent(const Block& block, size_t first, size_t last) {
    TENON_ASSERT(last < block.bindings.size(), "memory plan of '", name_,
                 "': a group goes beyond its block");
    std::unordered_map<size_t, size_t> writers, readers;  // by place: the call, or many
    constexpr size_t kMany = SIZE_MAX;
    for (size_t i = first; i <= last; ++i) {
      const auto* call = block.bindings[i]->value.as<Call>();
      const size_t inputs = call ? inputs_of(*module_, *call) : 0;
      TENON_ASSERT(call && is_unit(block.bindings[i]->var->type) && inputs < call->args.size(),
                   "memory plan of '", name_, "': a group has a binding that is not a call with ",
                   "destinations");
      for (size_t k = 0; k < call->args.size(); ++k) {
        const auto places = may_be_.find(call->args[k].as<Var>());
        if (places == may_be_.end()) continue;
        for (const size_t place : places->second) {
          auto& calls = k < inputs ? readers : writers;
          const auto [at, is_new] = calls.try_emplace(place, i);
          if (!is_new && at->second != i) at->second = kMany;
        }
      }
    }
    for (const auto& [place, writer] : writers) {
      const auto reader = readers.find(place);
      TENON_ASSERT(writer != kMany && (reader == readers.end() || reader->second == writer),
                   "memory plan of '", name_, "': calls of a group share %",
                   placed_[place].tensor->name, ", which one of them writes");
    }
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
          const auto said = [&](const loop::InPlace& pair) {
            return pair.output() == static_cast<int64_t>(out) &&
                   pair.input() == static_cast<int64_t>(in);
          };
          TENON_ASSERT(std::any_of(kernel.in_place.begin(), kernel.in_place.end(), said),
                       "memory plan of '", name_, "': kernel '", call.callee, "' overwrites %",
                       placed_[place].tensor->name, ", which it reads");
          placed_[place].overwritten = at_;
        }
      }
    }
  }

  // What a function literal refers to: it lives as long as the function does. What it makes itself
  // is compared apart.
  Places captured(const BlockRef& inner) {
    Verifier literal(module_);
    literal.name_ = name_;
    Places all;
    const auto collect = [&](const BlockRef& block, const auto& self) -> void {
      for (const auto& binding : block->bindings) {
        for_each_operand(binding->value, [&](const Operand& o) { all.merge(use(o)); });
        for_each_block(binding->value, [&](const BlockRef& deeper) { self(deeper, self); });
      }
      all.merge(use(block->result));
    };
    collect(inner, collect);
    literal.find_writes(inner);
    literal.at_ = -1;
    literal.block(inner);
    ++literal.at_;
    literal.use(inner->result);
    literal.compare(literal.placed_);
    return all;
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
    std::set<const Placed*> others;
    size_t symbolic = 0;
    auto range = [](const Placed& p) {
      return std::pair(p.begin.as_const().value(), p.end.as_const().value());
    };
    auto is_symbolic = [](const Placed& p) { return !p.begin.is_const() || !p.end.is_const(); };
    auto is_constant = [&](const Placed& p) { return !is_symbolic(p) && !p.leaves_arm; };
    for (const Placed* p : tensors) {
      for (; !alive.empty() && alive.top()->last < p->first; alive.pop()) {
        if (is_constant(*alive.top())) {
          constant.erase(range(*alive.top()));
        } else {
          symbolic -= is_symbolic(*alive.top());
          others.erase(alive.top());
        }
      }
      for (const Placed* other : others) require_apart(*other, *p);
      if (is_constant(*p)) {
        const auto next = constant.lower_bound(range(*p));
        if (next != constant.end()) require_apart(*next->second, *p);
        if (next != constant.begin()) require_apart(*std::prev(next)->second, *p);
        constant.emplace(range(*p), p);
      } else {
        for (const auto& [_, other] : constant) require_apart(*other, *p);
        symbolic += is_symbolic(*p);
        others.insert(p);
      }
      TENON_ASSERT(symbolic == 0 || others.size() + constant.size() <= kMaxSymbolicPlaces,
                   "memory plan of '", name_, "': more than ", kMaxSymbolicPlaces,
                   " tensors are alive together in %", p->storage->name,
                   ", some at places that depend on symbols");
      alive.push(p);
    }
  }

  void require_apart(const Placed& a, const Placed& b) const {
    TENON_ASSERT(exclude_each_other(a, b) || apart(a, b), "memory plan of '", name_, "': %",
                 a.tensor->name, " and %", b.tensor->name, " are alive together in one place");
  }

  const Module& module_;
  std::string name_;
  std::unordered_map<const Var*, int64_t> made_;  // the binding that makes each variable
  std::vector<Placed> placed_;                    // the tensors, in the order they are made
  Values may_be_;
  std::unordered_map<const Var*, int64_t> tensors_in_, last_write_;  // see find_writes
  std::unordered_map<const Var*, size_t> storage_depth_;
  Path path_;
  int64_t at_ = -1;
};

}  // namespace

void verify_memory_plan(const Module& module) {
  for (const auto& [name, function] : module->functions) Verifier(module).verify(function);
}

}  // namespace tenon::graph
