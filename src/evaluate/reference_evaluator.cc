#include "evaluate/reference_evaluator.h"

#include <deque>

#include "evaluate/activation.h"
#include "evaluate/call_value.h"
#include "evaluate/plan.h"
#include "evaluate/scalar_call.h"
#include "graph/ir/check.h"
#include "support/poll.h"

namespace tenon::graph {
namespace {

// The unit is not an array, as in the machine.
Any tuple_of(const Array<Any>& fields) {
  return fields.empty() ? Any() : Any(fields);
}

// One run of a function: the stack of active blocks.
//
// A frame's current binding waits for the frame above it. A frame that ends passes its result to
// that binding; the block's role decides how the binding uses it.
class Run {
 public:
  Run(ReferenceEvaluator& evaluator, const Module& module, Plan& plan)
      : evaluator_(evaluator), module_(module), plan_(plan) {}

  Any run(const FunctionExpr& function, std::span<const Any> args) {
    try {
      call(function, args);
      while (!frames_.empty()) step();
      return std::move(result_);
    } catch (Error& error) {
      // The innermost binding that has a source location.
      for (size_t i = frames_.size(); i > 0 && error.span().empty(); --i) {
        const Frame& frame = frames_[i - 1];
        if (frame.next < frame.block->bindings.size()) error.at(current(frame).span);
      }
      throw;
    }
  }

 private:
  enum class Role : uint8_t { kFunction, kExpansion, kBranch, kCondition, kTurn };

  struct Frame {
    const Block* block;
    size_t next;         // of its bindings: the current one
    size_t bound_sizes;  // when it began
    Role role;
  };

  static const Binding& current(const Frame& frame) { return *frame.block->bindings[frame.next]; }
  Activation& activation() { return activations_.back(); }
  Any value(const Operand& operand) { return activation().value(operand); }

  void begin(const BlockRef& block, Role role) {
    plan_.prepare(*block);
    frames_.push_back({block.get(), 0, activation().bound_sizes(), role});
  }

  void call(const FunctionExpr& function, std::span<const Any> args) {
    if (activations_.size() >= evaluator_.max_depth) {
      throw Error(ErrorKind::Runtime, "the call went too deep")
          .stopped_by(StopCause::Depth)
          .expected(cat("at most ", evaluator_.max_depth, " frames"))
          .help("raise the call's depth limit, or look for infinite recursion");
    }
    const Slots& slots = plan_.slots_of(function);
    activation_bytes_ += Activation::bytes(slots);
    if (activation_bytes_ + frames_.size() * sizeof(Frame) > evaluator_.max_stack_bytes) {
      throw Error(ErrorKind::Runtime, "the call ran out of stack")
          .stopped_by(StopCause::Stack)
          .expected(cat("at most ", evaluator_.max_stack_bytes, " bytes"))
          .help("look for infinite recursion");
    }
    activations_.emplace_back(slots).bind_params(function, args);
    begin(function.body, Role::kFunction);
  }

  // Evaluates the current binding of the last frame, or ends its block.
  void step() {
    poll();
    const Frame& frame = frames_.back();
    if (frame.next == frame.block->bindings.size()) return end();
    const Binding& binding = current(frame);
    const ExprRef& e = binding.value;
    if (auto* called = e.as<Call>()) {
      start_call(binding, *called);
    } else if (auto* branch = e.as<If>()) {
      begin(truth(value(branch->condition)) ? branch->then_block : branch->else_block,
            Role::kBranch);
    } else if (auto* loop = e.as<Loop>()) {
      std::vector<Any> init;
      for (const Operand& operand : loop->init) init.push_back(value(operand));
      start_turn(*loop, init);
    } else {
      finish(binding, simple_value(binding));
    }
  }

  void start_call(const Binding& binding, const Call& called) {
    if (called.kind == CalleeKind::kGlobal) {
      std::vector<Any> args;
      for (const Operand& arg : called.args) args.push_back(value(arg));
      call(*module_->functions.at(called.callee), args);
    } else if (const FunctionExpr* expansion = plan_.expansion_of(binding)) {
      auto param = expansion->params.begin();
      for (const Operand& arg : called.args) {
        if (arg) activation().set(*param++, value(arg));
      }
      begin(expansion->body, Role::kExpansion);
    } else {
      finish_call(binding, call_value(binding, called, plan_.kernel_of(binding), activation(),
                                      &evaluator_.work_left));
    }
  }

  void start_turn(const Loop& loop, std::span<const Any> values) {
    for (size_t i = 0; i < values.size(); ++i) activation().set(loop.vars[i], values[i]);
    begin(loop.condition, Role::kCondition);
  }

  // The value of a binding that runs no block and is not a call.
  Any simple_value(const Binding& binding) {
    const ExprRef& e = binding.value;
    if (auto* tuple = e.as<Tuple>()) {
      Array<Any> fields;
      for (const Operand& field : tuple->fields) fields.push_back(value(field));
      return tuple_of(fields);
    }
    if (auto* field = e.as<Field>()) {
      return value(field->tuple).as<Array<Any>>().at(static_cast<size_t>(field->index));
    }
    if (auto* match = e.as<MatchShape>()) return activation().match_shape(*match);
    if (auto* check = e.as<Check>()) {
      activation().check(*check);
      return Any();
    }
    throw Error(ErrorKind::Unsupported, binding.span,
                cat("match, constructors and function literals are ", kOnlyChecked))
        .help("write it with if, loop, tuples and functions");
  }

  void finish(const Binding& binding, Any value) {
    activation().set(binding.var, std::move(value));
    ++frames_.back().next;
  }

  void finish_call(const Binding& binding, Any value) {
    if (evaluator_.observer) evaluator_.observer(binding, value);
    finish(binding, std::move(value));
  }

  // Ends the last frame's block.
  void end() {
    const Frame ended = frames_.back();
    Any result = value(ended.block->result);
    frames_.pop_back();
    if (ended.role == Role::kFunction) {
      activation_bytes_ -= activation().bytes();
      activations_.pop_back();
    } else {
      activation().forget_sizes_from(ended.bound_sizes);
    }
    if (frames_.empty()) {
      result_ = std::move(result);
      return;
    }
    const Binding& binding = current(frames_.back());
    switch (ended.role) {
      case Role::kFunction:
      case Role::kExpansion:
        return finish_call(binding, std::move(result));
      case Role::kBranch:
        return finish(binding, std::move(result));
      case Role::kCondition:
        return after_condition(binding, *binding.value.as<Loop>(), truth(result));
      case Role::kTurn:
        return after_turn(*binding.value.as<Loop>(), result);
    }
  }

  void after_condition(const Binding& binding, const Loop& loop, bool goes_on) {
    if (goes_on) return begin(loop.body, Role::kTurn);
    Array<Any> values;
    for (const VarRef& var : loop.vars) values.push_back(value(var));
    finish(binding, values.size() == 1 ? values[0] : tuple_of(values));
  }

  void after_turn(const Loop& loop, const Any& result) {
    if (loop.vars.empty()) return start_turn(loop, {});
    if (loop.vars.size() == 1) return start_turn(loop, {&result, 1});
    const auto fields = result.as<Array<Any>>();
    start_turn(loop, {fields.any_begin(), fields.size()});
  }

  ReferenceEvaluator& evaluator_;
  const Module& module_;
  Plan& plan_;
  std::deque<Activation> activations_;  // of the active functions, at stable addresses
  size_t activation_bytes_ = 0;
  std::vector<Frame> frames_;
  Any result_;
};

}  // namespace

std::vector<Any> ReferenceEvaluator::run(const Module& module, const FunctionRef& function,
                                         const std::vector<Any>& args) {
  Plan plan(module, &cache_);
  Any result = Run(*this, module, plan).run(*function, args);
  if (!function->result_type.is<TupleType>()) return {result};
  if (is_unit(function->result_type)) return {};
  auto fields = result.as<Array<Any>>();
  return {fields.begin(), fields.end()};
}

}  // namespace tenon::graph
