#include "evaluate/reference_evaluator.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "evaluate/activation.h"
#include "evaluate/call_value.h"
#include "evaluate/plan.h"
#include "evaluate/scalar_call.h"
#include "graph/ir/walk.h"
#include "object/cell.h"
#include "object/function.h"
#include "object/reflect.h"
#include "support/backtrace.h"
#include "support/nested_call.h"
#include "support/poll.h"

namespace tenon::graph {
namespace {

// The unit is not an array, as in the machine.
Any tuple_of(const Array<Any>& fields) {
  return fields.empty() ? Any() : Any(fields);
}

// What the runs of one module share, and its closures keep.
struct Evaluation {
  Evaluation(std::shared_ptr<EvaluatorState> with, const Module& module)
      : state(std::move(with)), plan(module, &state->cache) {}

  std::shared_ptr<EvaluatorState> state;
  Plan plan;
};

// A function of the module with its first arguments, or a literal with the variables and sizes that
// it captured. A run calls it by its function; everyone else by a run of its own.
struct EvaluatedClosure : FunctionObj {
  std::shared_ptr<Evaluation> evaluation;
  FunctionRef function;
  const FunctionExpr* enclosing;  // function of the module: of a literal, around it
  std::string shown;              // its name, as the compiled program has it
  std::vector<Any> arguments;     // of a function of the module
  std::vector<Any> variables;     // of a literal, in the order of Plan::captures_of
  std::vector<std::pair<std::string, int64_t>> sizes;

  static int call_from_host(void* self, const AnyView* args, int32_t n, Any* result);
  static std::string_view name_of(const FunctionObj& self) {
    return static_cast<const EvaluatedClosure&>(self).shown;
  }
  static constexpr FunctionInfo kInfo = {name_of, nullptr};
  // Null for other functions.
  static const EvaluatedClosure* of(const Any& value) {
    if (value.type_index != TypeIndex::Function) return nullptr;
    const auto* function = static_cast<const FunctionObj*>(value.v.object);
    return function->call == &call_from_host ? static_cast<const EvaluatedClosure*>(function)
                                             : nullptr;
  }
};

Any with_checks(const TypeRef& type, const Any& value);

// A function of the host that a run is given: its calls in functions with type parameters, whose
// types don't say what it returns, check its results, too.
struct HostFunction : FunctionObj {
  Function function;
  TypeRef result;

  static int call_checked(void* self, const AnyView* args, int32_t n, Any* result) {
    const auto& host = *static_cast<const HostFunction*>(static_cast<FunctionObj*>(self));
    try {
      Any found;
      if (const int failed = host.function.call(args, n, &found)) return failed;
      const Slots none;
      found = Activation(none).returned(name_of(Any(host.function)), host.result, admit(found),
                                        /*compound=*/false);
      *result = with_checks(host.result, found);
      return 0;
    } catch (...) {
      return set_current_exception();
    }
  }
  static std::string_view name_of_function(const FunctionObj& self) {
    return name_of(Any(static_cast<const HostFunction&>(self).function));
  }
  static constexpr FunctionInfo kInfo = {name_of_function, nullptr};
};

// Whether values of the type may have functions in the places that `with_checks` looks at.
bool has_functions(const TypeRef& type) {
  if (const auto* array = type.as<ArrayType>()) return has_functions(array->element);
  const auto* tuple = type.as<TupleType>();
  return tuple ? std::ranges::any_of(tuple->fields, has_functions) : type.is<FunctionType>();
}

// The value with the host's functions in it, also in tuples and arrays, as such.
Any with_checks(const TypeRef& type, const Any& value) {
  if (const auto* function = type.as<FunctionType>()) {
    const bool is_hosts = value.type_index == TypeIndex::Function && !EvaluatedClosure::of(value);
    if (!is_hosts) return value;
    auto made = make<HostFunction>();
    made->call = &HostFunction::call_checked;
    made->info = &HostFunction::kInfo;
    // Held to one type at a time, however often it crosses the border.
    const auto* given = value.as_object<FunctionObj>();
    const bool is_held = given->call == &HostFunction::call_checked;
    made->function =
        is_held ? static_cast<const HostFunction*>(given)->function : value.as<Function>();
    made->result = function->result;
    return Any(Function::adopt(std::move(made)));
  }
  auto parts = has_functions(type) ? value.try_as<Array<Any>>() : std::nullopt;
  if (!parts) return value;
  const auto* tuple = type.as<TupleType>();
  if (tuple && parts->size() != tuple->fields.size()) return value;
  for (size_t i = 0; i < parts->size(); ++i) {
    const TypeRef& part = tuple ? tuple->fields[i] : type.as<ArrayType>()->element;
    parts->set(i, with_checks(part, (*parts)[i]));
  }
  return Any(*parts);
}

// One run of a function: the stack of active blocks.
//
// A frame's current binding waits for the frame above it. A frame that ends passes its result to
// that binding; the block's role decides how the binding uses it.
class Run {
 public:
  explicit Run(std::shared_ptr<Evaluation> evaluation)
      : evaluation_(std::move(evaluation)),
        state_(*evaluation_->state),
        plan_(evaluation_->plan),
        one_at_a_time_(state_.running) {}

  Any run(const FunctionExpr& function, std::span<const Any> args) {
    return finished([&] { call(function, args); });
  }
  Any run(const EvaluatedClosure& closure, std::span<const Any> args) {
    return finished([&] { call_closure(closure, args); });
  }

 private:
  struct Entered {
    Entered(const Slots& slots, const FunctionExpr* function)
        : activation(slots), enclosing(function) {}
    Activation activation;
    const FunctionExpr*
        enclosing;  // the function of the module that is called, or that has the literal
  };

  enum class Role : uint8_t { kFunction, kExpansion, kBranch, kCondition, kTurn };

  struct Frame {
    const Block* block;
    size_t next;         // of its bindings: the current one
    size_t bound_sizes;  // when it began
    Role role;
  };

  // The result of the function that `start` begins.
  template <class F>
  Any finished(const F& start) {
    try {
      start();
      while (!frames_.empty()) step();
      return std::move(result_);
    } catch (Error& error) {
      // The innermost binding that has a source location.
      for (size_t i = frames_.size(); i > 0 && error.span().empty(); --i) {
        const Frame& frame = frames_[i - 1];
        if (frame.next < frame.block->bindings.size()) error.at(current(frame).span);
      }
      add_backtrace(error);
      throw;
    }
  }

  // Adds the functions that are active, innermost first, with the source location that each is at.
  void add_backtrace(Error& error) const {
    if (frames_.empty()) return;  // the host's arguments were wrong
    using Place = std::pair<const FunctionExpr*, const Span*>;
    std::vector<Place> places;
    const Span* at = nullptr;
    size_t entered = entered_.size();
    const auto began =
        static_cast<size_t>(std::ranges::count(frames_, Role::kFunction, &Frame::role));
    if (entered > began) places.emplace_back(entered_[--entered].enclosing, at);  // not yet
    for (size_t i = frames_.size(); i > 0; --i) {
      const Frame& frame = frames_[i - 1];
      const bool waits =
          frame.role != Role::kExpansion && frame.next < frame.block->bindings.size();
      if (!at && waits && !current(frame).span.empty()) at = &current(frame).span;
      if (frame.role != Role::kFunction) continue;
      places.emplace_back(entered_[--entered].enclosing, at);
      at = nullptr;
    }
    add_frames(
        error, places.size(), [&](size_t i) { return places[i]; },
        [](const Place& place) {
          const std::string name = printable(place.first->name);
          return place.second ? cat(name, " at ", printable(to_text(*place.second))) : name;
        });
  }

  static const Binding& current(const Frame& frame) { return *frame.block->bindings[frame.next]; }
  Activation& activation() { return entered_.back().activation; }
  Any value(const Operand& operand) { return activation().value(operand); }
  // The binding has read its operands.
  void drop_last_uses(const Binding& binding) { activation().drop(plan_.last_uses().at(binding)); }

  void begin(const BlockRef& block, Role role) {
    plan_.prepare(*block);
    frames_.push_back({block.get(), 0, activation().bound_sizes(), role});
    activation().drop(plan_.last_uses().at_begin(*block));
  }

  void call(const FunctionExpr& function, std::span<const Any> args) {
    enter(function, function);
    bind_params(function, args);
    begin(function.body, Role::kFunction);
  }

  void call_closure(const EvaluatedClosure& closure, std::span<const Any> args) {
    const FunctionExpr& function = *closure.function;
    std::vector<Any> all = closure.arguments;
    all.insert(all.end(), args.begin(), args.end());
    if (all.size() != function.params.size()) {
      throw Error(ErrorKind::Usage, "a closure is called with the wrong number of arguments")
          .found(cat(args.size()))
          .expected(cat(function.params.size() - closure.arguments.size()));
    }
    enter(function, *closure.enclosing);
    if (!closure.variables.empty() || !closure.sizes.empty() || function.self) {
      const std::vector<VarRef>& variables = plan_.captures_of(function).variables;
      for (size_t i = 0; i < variables.size(); ++i) {
        activation().set(variables[i], closure.variables[i]);
      }
      for (const auto& [symbol, size] : closure.sizes) activation().set_size(symbol, size);
      if (function.self)
        activation().set(function.self, Any(Ref<const EvaluatedClosure>(&closure)));
    }
    bind_params(function, all);
    begin(function.body, Role::kFunction);
  }

  // What the host gives is its mistake, what the program passes on is one of the run.
  void bind_params(const FunctionExpr& function, std::span<const Any> args) {
    if (entered_.size() > 1) return activation().bind_params(function, args, ErrorKind::Runtime);
    std::vector<Any> given;
    for (size_t i = 0; i < args.size(); ++i) {
      given.push_back(with_checks(function.params[i]->type, args[i]));
    }
    activation().bind_params(function, given, ErrorKind::Usage);
  }

  // Pushes an activation of the function, within the limits.
  void enter(const FunctionExpr& function, const FunctionExpr& enclosing) {
    if (entered_.size() >= state_.max_depth) {
      throw Error(ErrorKind::Runtime, "the call went too deep")
          .stopped_by(StopCause::Depth)
          .expected(cat("at most ", state_.max_depth, " frames"))
          .help("raise the call's depth limit, or look for infinite recursion");
    }
    const Slots& slots = plan_.slots_of(function);
    activation_bytes_ += Activation::bytes(slots);
    if (activation_bytes_ + frames_.size() * sizeof(Frame) > state_.max_stack_bytes) {
      throw Error(ErrorKind::Runtime, "the call ran out of stack")
          .stopped_by(StopCause::Stack)
          .expected(cat("at most ", state_.max_stack_bytes, " bytes"))
          .help("raise the call's stack limit, or look for infinite recursion");
    }
    entered_.emplace_back(slots, &enclosing);
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
      const bool holds = truth(value(branch->condition));
      drop_last_uses(binding);
      begin(holds ? branch->then_block : branch->else_block, Role::kBranch);
    } else if (auto* match = e.as<Match>()) {
      const BlockRef& arm = chosen_arm(*match);
      drop_last_uses(binding);
      begin(arm, Role::kBranch);
    } else if (auto* loop = e.as<Loop>()) {
      const std::vector<Any> init = values(loop->init);
      drop_last_uses(binding);
      start_turn(*loop, init);
    } else {
      Any value = simple_value(binding);
      drop_last_uses(binding);
      finish(binding, std::move(value));
    }
  }

  void start_call(const Binding& binding, const Call& called) {
    if (called.kind == CalleeKind::kGlobal) {
      const std::vector<Any> args = values(called.args);
      drop_last_uses(binding);
      if (!checks_result(called)) leave_in_tail_position();
      call(plan_.callee_of(called), args);
    } else if (called.kind == CalleeKind::kClosure) {
      start_closure(binding, called);
    } else if (const FunctionExpr* expansion = plan_.expansion_of(binding)) {
      auto param = expansion->params.begin();
      for (const Operand& arg : called.args) {
        if (arg) activation().set(*param++, value(arg));
      }
      drop_last_uses(binding);
      begin(expansion->body, Role::kExpansion);
    } else {
      const LastUses::Vars& last_uses = plan_.last_uses().at(binding);
      Any value = call_value(binding, called, plan_.kernel_of(binding), last_uses, activation(),
                             &state_.work_left);
      activation().drop(last_uses);
      finish_call(binding, std::move(value));
    }
  }

  void start_closure(const Binding& binding, const Call& called) {
    const Any callee = value(called.closure);
    const std::vector<Any> args = values(called.args);
    drop_last_uses(binding);
    const EvaluatedClosure* closure = EvaluatedClosure::of(callee);
    if (closure && closure->evaluation == evaluation_) {
      if (!checks_result(called)) leave_in_tail_position();
      return call_closure(*closure, args);
    }
    // A function of the host, or of another program.
    Any result;
    if (callee.as<Function>().call(args.data(), static_cast<int32_t>(args.size()), &result) != 0) {
      throw take_error();
    }
    finish_call(binding,
                activation().returned(name_of(callee), binding.var->type, std::move(result)));
  }

  // The frame of the current function, if the current binding's value is its result: nothing waits
  // for the function's blocks.
  std::optional<size_t> frame_in_tail_position() const {
    for (size_t at = frames_.size(); at > 0;) {
      const Frame& frame = frames_[--at];
      const auto& bindings = frame.block->bindings;
      const bool is_last =
          frame.next + 1 == bindings.size() && is_result(*frame.block, *bindings.back());
      const bool is_function = frame.role == Role::kFunction;
      if (!is_last || (frame.role != Role::kBranch && !is_function)) return std::nullopt;
      if (is_function) return at;
    }
    return std::nullopt;
  }

  // A call in tail position takes the room of the blocks around it.
  void leave_in_tail_position() {
    const std::optional<size_t> at = frame_in_tail_position();
    if (at.value_or(0) == 0) return;  // the run's own function, whose span errors show
    frames_.resize(*at);
    leave();
  }

  // Whether the current binding, this call, checks the sizes of what it gets. A tail call that may
  // be part of a recursion takes constant space instead.
  bool checks_result(const Call& call) const {
    const TailCalls& calls = plan_.tail_calls();
    const bool is_global = call.kind == CalleeKind::kGlobal;
    if (!(is_global ? calls.is_unchecked(call.callee) : calls.closures_are_unchecked())) {
      return false;
    }
    const std::optional<size_t> at = frame_in_tail_position();
    if (!at) return true;
    const FunctionExpr& caller = *entered_.back().enclosing;
    const bool is_literal = frames_[*at].block != caller.body.get();
    return !is_literal && !calls.stay_unchecked(caller.name);
  }

  void leave() {
    activation_bytes_ -= activation().bytes();
    entered_.pop_back();
  }

  std::vector<Any> values(const Array<Operand>& operands) {
    std::vector<Any> out;
    for (const Operand& operand : operands) out.push_back(value(operand));
    return out;
  }

  // ---- match ----

  // Tries the patterns in their order, and sets the variables of the one that fits.
  const BlockRef& chosen_arm(const Match& match) {
    const Any matched = value(match.value);
    size_t i = 0;
    while (i < match.patterns.size() && !fits(*match.patterns[i], matched)) ++i;
    if (i == match.patterns.size()) {  // a cell of the host
      throw Error(ErrorKind::Runtime, "no arm of match takes the value").found(repr(matched));
    }
    bind(*match.patterns[i], matched);
    return match.arms[i];
  }

  // Recurses over the pattern only, whose nesting the checker bounds.
  bool fits(const Pattern& pattern, const Any& value) const {
    switch (pattern.kind) {
      case PatternKind::kAny:
      case PatternKind::kVariable:
        return true;
      case PatternKind::kConstant:
        return number(value) == number(pattern.constant.as<Constant>()->value);
      case PatternKind::kConstructor:
        if (cell(value).tag != plan_.signatures().find_constructor(pattern.constructor).place) {
          return false;
        }
        break;
      case PatternKind::kTuple:
        break;
    }
    for (size_t i = 0; i < pattern.fields.size(); ++i) {
      if (!fits(*pattern.fields[i], part(pattern, value, i))) return false;
    }
    return true;
  }

  void bind(const Pattern& pattern, const Any& value) {
    if (pattern.kind == PatternKind::kVariable) activation().bind_field(pattern.var, value);
    for (size_t i = 0; i < pattern.fields.size(); ++i) {
      bind(*pattern.fields[i], part(pattern, value, i));
    }
  }

  static Any part(const Pattern& pattern, const Any& value, size_t i) {
    if (pattern.kind == PatternKind::kTuple) return value.as<Array<Any>>().at(i);
    const CellObj& made = cell(value);
    if (static_cast<int64_t>(i) >= made.size) {
      throw Error(ErrorKind::Runtime, "a cell has fewer fields than its constructor")
          .found(cat(made.size));
    }
    return made.begin()[i];
  }

  static int64_t number(const Any& value) {
    return value.type_index == TypeIndex::Bool ? value.as<bool>() : value.as<int64_t>();
  }

  static const CellObj& cell(const Any& value) {
    const auto* made = value.as_object<CellObj>();
    if (made) return *made;
    throw Error(ErrorKind::Runtime, "match needs a cell").found(type_name(value.type_index));
  }

  // ---- loops and plain values ----

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
    if (auto* made = e.as<Construct>()) {
      return CellObj::of(plan_.signatures().find_constructor(made->constructor).place,
                         values(made->fields));
    }
    if (auto* size = e.as<Size>()) return activation().size(size->size);
    if (auto* closure = e.as<Closure>()) {
      const FunctionRef& function = plan_.module()->functions.at(closure->function);
      auto made = new_closure(function, function.get(), function->name.str());
      made->arguments = values(closure->captures);
      return Function::adopt(std::move(made));
    }
    const auto* literal = e.as<FunctionExpr>();
    TENON_ASSERT(literal, "a right-hand side of kind ", e->type_index);
    return closure_of(*literal, binding.var->name.view());
  }

  Ref<EvaluatedClosure> new_closure(const FunctionRef& function, const FunctionExpr* enclosing,
                                    std::string name) const {
    auto closure = make<EvaluatedClosure>();
    closure->call = &EvaluatedClosure::call_from_host;
    closure->info = &EvaluatedClosure::kInfo;
    closure->enclosing = enclosing;
    closure->shown = std::move(name);
    closure->evaluation = evaluation_;
    closure->function = function;
    return closure;
  }

  Any closure_of(const FunctionExpr& literal, std::string_view var) {
    const FunctionExpr* enclosing = entered_.back().enclosing;
    auto closure = new_closure(FunctionRef(&literal), enclosing,
                               cat(enclosing->name, ".", var.empty() ? "fn" : var));
    const FreeNames& captured = plan_.captures_of(literal);
    for (const VarRef& var : captured.variables) closure->variables.push_back(value(var));
    for (const std::string& symbol : captured.symbols) {
      const auto size = activation().find_size(symbol);
      if (size) closure->sizes.emplace_back(symbol, *size);
    }
    return Function::adopt(std::move(closure));
  }

  void finish(const Binding& binding, Any value) {
    activation().set(binding.var, std::move(value));
    ++frames_.back().next;
  }

  void finish_call(const Binding& binding, Any value) {
    if (state_.observer) state_.observer(binding, value);
    finish(binding, std::move(value));
  }

  // Ends the last frame's block.
  void end() {
    const Frame ended = frames_.back();
    Any result = value(ended.block->result);
    frames_.pop_back();
    if (ended.role == Role::kFunction) {
      leave();
    } else {
      activation().drop(plan_.last_uses().at_end(*ended.block));
      activation().forget_sizes_from(ended.bound_sizes);
    }
    if (frames_.empty()) {
      result_ = std::move(result);
      return;
    }
    const Binding& binding = current(frames_.back());
    switch (ended.role) {
      case Role::kFunction: {
        const bool is_checked = checks_result(*binding.value.as<Call>());
        if (is_checked) activation().check_result(binding.var->type, result);
        return finish_call(binding, std::move(result));
      }
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
    activation().drop(plan_.last_uses().after_loop(binding));
    finish(binding, values.size() == 1 ? values[0] : tuple_of(values));
  }

  void after_turn(const Loop& loop, const Any& result) {
    if (loop.vars.empty()) return start_turn(loop, {});
    if (loop.vars.size() == 1) return start_turn(loop, {&result, 1});
    const auto fields = result.as<Array<Any>>();
    start_turn(loop, {fields.any_begin(), fields.size()});
  }

  std::shared_ptr<Evaluation> evaluation_;
  EvaluatorState& state_;
  Plan& plan_;
  std::lock_guard<std::recursive_mutex> one_at_a_time_;  // closures may be called from any thread
  std::deque<Entered> entered_;  // the active functions, at stable addresses
  size_t activation_bytes_ = 0;
  std::vector<Frame> frames_;
  Any result_;
};

int EvaluatedClosure::call_from_host(void* self, const AnyView* args, int32_t n, Any* result) {
  thread_local int depth = 0;
  constexpr size_t kStack = size_t{64} << 10;
  try {
    const Ref<EvaluatedClosure> closure(
        static_cast<EvaluatedClosure*>(static_cast<FunctionObj*>(self)));
    const NestedCall nested(&depth, kStack);
    std::vector<Any> given;
    given.reserve(static_cast<size_t>(n));
    for (int32_t i = 0; i < n; ++i) given.push_back(admit(args[i]));
    *result = Run(closure->evaluation).run(*closure, given);
    return 0;
  } catch (...) {
    return set_current_exception();
  }
}

}  // namespace

std::vector<Any> ReferenceEvaluator::run(const Module& module, const FunctionRef& function,
                                         const std::vector<Any>& args) {
  Any result = Run(std::make_shared<Evaluation>(state_, module)).run(*function, args);
  if (!function->result_type.is<TupleType>()) return {result};
  if (is_unit(function->result_type)) return {};
  auto fields = result.as<Array<Any>>();
  return {fields.begin(), fields.end()};
}

}  // namespace tenon::graph
