#include "report/memory_walk.h"

#include <algorithm>
#include <array>
#include <set>

#include "library/signatures/signatures.h"
#include "object/shape.h"
#include "object/tensor.h"
#include "support/error.h"
#include "support/text.h"

namespace tenon::report::memory {
namespace {

using vm::Arg;
using vm::ArgKind;
using vm::Opcode;

constexpr uint32_t kReturn = UINT32_MAX;  // the offset of the join of results
constexpr size_t kMaxAmounts = 32;
constexpr size_t kMaxRegisters = size_t{1} << 22;  // of the states that are kept

using Dims = std::vector<std::optional<Dim>>;

// The operation on sizes that an instruction is; null if it is none.
Dim (*dim_operation(Opcode opcode))(const Dim&, const Dim&) {
  using Operation = Dim (*)(const Dim&, const Dim&);
  switch (opcode) {
    case Opcode::Add:
    case Opcode::AddChecked:
      return static_cast<Operation>(&operator+);
    case Opcode::Sub:
    case Opcode::SubChecked:
      return static_cast<Operation>(&operator-);
    case Opcode::Mul:
    case Opcode::MulChecked:
      return static_cast<Operation>(&operator*);
    case Opcode::FloorDiv:
      return static_cast<Operation>(&floordiv);
    case Opcode::FloorMod:
      return static_cast<Operation>(&mod);
    case Opcode::Min:
      return static_cast<Operation>(&min);
    case Opcode::Max:
      return static_cast<Operation>(&max);
    case Opcode::Bcast:
      return static_cast<Operation>(&bcast);
    default:
      return nullptr;
  }
}

ValueRef value_of_constant(const vm::Constant& constant) {
  Value out;
  std::vector<int64_t> shape;
  if (constant.late) {
    shape = constant.late->shape;
    out.dtype = constant.late->dtype;
  } else if (const auto tensor = constant.value.try_as<Tensor>(); tensor && *tensor) {
    shape.assign(tensor->shape().begin(), tensor->shape().end());
    out.dtype = tensor->dtype();
  } else if (const auto sizes = constant.value.try_as<Shape>()) {
    shape.assign(sizes->begin(), sizes->end());
  } else if (const auto number = constant.value.try_as<int64_t>()) {
    return made_number(*number);
  } else {
    return nullptr;
  }
  out.dims = Dims(shape.begin(), shape.end());
  return made(std::move(out));
}

// Keeps what the value keeps and knows nothing else of it.
ValueRef part_of(const ValueRef& whole) {
  Value out;
  out.own = keeps(whole);
  return made(std::move(out));
}

ValueRef made_tensor(const Storages& own, Dims dims, DataType dtype) {
  Value out;
  out.own = own;
  out.dims = std::move(dims);
  out.dtype = dtype;
  return made(std::move(out));
}

}  // namespace

void Amounts::add(const Dim& amount) {
  for (const Dim& other : all_) {
    if (proves_less_equal(amount, other)) return;
  }
  std::erase_if(all_, [&](const Dim& other) { return proves_less_equal(other, amount); });
  if (all_.size() == kMaxAmounts) {
    all_.back() = max(all_.back(), amount);
  } else {
    all_.push_back(amount);
  }
}

Walk::Walk(Analysis* analysis, Component* component, size_t function, State arguments,
           StorageTable storages)
    : analysis_(*analysis),
      component_(component),
      function_(function),
      code_(analysis->unit().functions[function]),
      storages_(std::move(storages)),
      entered_with_(storages_.size()) {
  Instruction in;
  std::set<uint32_t> reached_from_above = {0};  // by the call
  for (uint32_t at = 0; vm::decode(code_.code, at, &in); at += in.words()) {
    for (const vm::Word word : in.operands) {
      if (Arg(word).is(ArgKind::Label)) ++labels_[Arg(word).index()];
    }
    if (!in.info->ends()) reached_from_above.insert(at + in.words());
  }
  for (auto& [label, ways] : labels_) ways += reached_from_above.contains(label);
  arguments.resize(code_.register_count);
  states_.emplace(0, std::move(arguments));
  pending_.insert(0);
}

void Walk::run() {
  while (!pending_.empty()) {
    const uint32_t at = *pending_.begin();
    pending_.erase(pending_.begin());
    follow(at, states_.at(at));
  }
  collects_ = true;
  for (const auto& [at, state] : states_) {
    record(storages_.total(live(state)));
    follow(at, state);
  }
  TENON_ASSERT(pending_.empty(), "the states of '", code_.name, "' are not settled");
}

Summary Walk::summary() && {
  Summary out;
  out.peaks = std::move(peaks_);
  out.returns = returned_.has_value();
  if (returned_) out.result = returned_->front();
  out.storages = std::move(storages_);
  return out;
}

// From a label to the next, or to the end of the path.
void Walk::follow(uint32_t at, State state) {
  Instruction in;
  for (const uint32_t start = at; vm::decode(code_.code, at, &in); at += in.words()) {
    if (at != start && labels_.contains(at)) return flow(at, state);
    analysis_.count_steps(1);
    if (!step(in, at, &state)) return;
    for (uint32_t word = 0; word < in.operands.size(); ++word) {
      if (in.arg(word).is(ArgKind::Label)) flow(in.arg(word).index(), state);
    }
    if (in.info->ends()) return;
  }
}

void Walk::flow(uint32_t to, const State& state) {
  analysis_.count_steps(1 + state.size() / 16);
  if (states_.size() * state.size() > kMaxRegisters) throw Unanalysed();
  const auto [known, is_new] = states_.try_emplace(to, state);
  if (!is_new && labels_.at(to) == 1) {
    // What one way leads to has that way's state: joining it with an earlier one would hide that a
    // loop's variable grows.
    if (std::ranges::equal(known->second, state, same)) return;
    known->second = state;
  } else if (!is_new) {
    const JoinContext context{&storages_,
                              &analysis_.unknowns(),
                              to,
                              place(to),
                              cat("turns(", place(to), ")"),
                              cat("how often the loop at ", source(to), " turns in all")};
    const int growths = storages_.growths();
    if (!join(context, &known->second, state)) return;
    if (storages_.growths() != growths) follow_all();
  }
  pending_.insert(to);
}

void Walk::follow_all() {
  for (const auto& [at, state] : states_) pending_.insert(at);
}

void Walk::return_value(const ValueRef& value) {
  if (!returned_) {
    returned_ = State{value};
    return;
  }
  const JoinContext context{&storages_,
                            &analysis_.unknowns(),
                            kReturn,
                            cat("@", code_.name),
                            cat("calls(@", code_.name, ")"),
                            cat("how often @", code_.name, " is called")};
  const int growths = storages_.growths();
  join(context, &*returned_, State{value});
  if (storages_.growths() != growths) follow_all();
}

std::string Walk::place(uint32_t at) const {
  return cat("@", code_.name, ".L", at);
}

std::string Walk::source(uint32_t at) const {
  std::string text;
  for (const vm::CodeSpan& span : code_.spans) {
    if (span.offset > at) break;
    text = to_text(analysis_.unit().spans[span.span]);
  }
  return text.empty() ? place(at) : cat(place(at), " (", text, ")");
}

Dim Walk::unknown(const char* what, uint32_t at, uint32_t index, const std::string& meaning) {
  const std::string suffix = index ? cat(".", index) : "";
  return analysis_.unknowns().symbol(cat(what, "(", place(at), suffix, ")"),
                                     cat(meaning, " at ", source(at)));
}

ValueRef Walk::value(Arg arg, const State& state) const {
  if (arg.is_register()) return state[arg.index()];
  if (arg.is(ArgKind::Immediate)) return made_number(arg.value());
  if (arg.is(ArgKind::Constant)) return value_of_constant(analysis_.unit().constants[arg.index()]);
  return nullptr;
}

Dim Walk::number(const Instruction& in, uint32_t word, uint32_t at, const State& state) {
  const ValueRef found = value(in.arg(word), state);
  if (found && found->number) return *found->number;
  return unknown("number", at, word, "a number that is used");
}

Dims Walk::numbers(const Instruction& in, uint32_t first, uint32_t at, const State& state) {
  Dims out;
  for (uint32_t word = first; word < in.operands.size(); ++word) {
    out.emplace_back(number(in, word, at, state));
  }
  return out;
}

std::optional<Dims> Walk::dims_of(const ValueRef& value) const {
  return value ? value->dims : std::nullopt;
}

void Walk::put(Arg destination, ValueRef value, State* state) {
  if (destination.is_register()) (*state)[destination.index()] = std::move(value);
}

void Walk::release(const Instruction& in, State* state) const {
  for (uint32_t word = 0; word < in.operands.size(); ++word) {
    const Arg arg = in.arg(word);
    if (arg.is(ArgKind::LastUse) && vm::role_of(in, word) == vm::OperandRole::ReadsValue) {
      (*state)[arg.index()] = nullptr;
    }
  }
}

Dim Walk::bytes_of(const Dims& dims, DataType dtype, uint32_t at) {
  Dim bytes = dtype.bytes();
  for (const auto& dim : dims) {
    bytes = bytes * (dim ? *dim : unknown("size", at, 0, "a size that is used"));
  }
  return bytes;
}

// A new storage, beside those of the state.
ValueRef Walk::allocated(uint32_t at, uint32_t index, const Dim& bytes, const State& state) {
  const Dim bounded = analysis_.unknowns().bounded(
      bytes, cat("bytes(", place(at), ")"),
      cat("the bytes of the storage that is allocated at ", source(at)));
  const StorageId storage = storages_.at(at, index, bounded);
  if (collects_) {
    analysis_.count_steps(state.size() / 16);
    Storages all = live(state);
    add(&all, {storage});
    record(storages_.total(all));
  }
  return made_storage(storage);
}

bool Walk::step(const Instruction& in, uint32_t at, State* state) {
  switch (in.opcode()) {
    case Opcode::Ret:
      return_value(value(in.arg(0), *state));
      return true;
    case Opcode::Call:
    case Opcode::TailCall:
    case Opcode::CallClosure:
    case Opcode::TailCallClosure:
      return call(in, at, state);
    case Opcode::CallPacked:
      call_packed(in, at, state);
      return true;
    default:
      break;
  }
  if (step_size(in, at, state) || step_value(in, at, state)) return true;
  // What is known of any other instruction: its results may be parts of what it reads.
  Value result;
  for (uint32_t word = 0; word < in.operands.size(); ++word) {
    if (vm::role_of(in, word) == vm::OperandRole::ReadsValue) {
      memory::add(&result.own, keeps(value(in.arg(word), *state)));
    }
  }
  const ValueRef part = made(std::move(result));
  release(in, state);
  for (uint32_t word = 0; word < in.operands.size(); ++word) {
    if (vm::role_of(in, word) == vm::OperandRole::Writes) put(in.arg(word), part, state);
  }
  return true;
}

// Instructions on numbers, shapes and storages.
bool Walk::step_size(const Instruction& in, uint32_t at, State* state) {
  ValueRef result;
  if (const auto operation = dim_operation(in.opcode())) {
    try {
      result = made_number(operation(number(in, 1, at, *state), number(in, 2, at, *state)));
    } catch (const Error&) {  // no size: a division by 0, an overflow
      result = nullptr;
    }
    put(in.arg(0), std::move(result), state);
    return true;
  }
  switch (in.opcode()) {
    case Opcode::LoadInt:
      result = made_number(in.arg(1).value());
      break;
    case Opcode::AllocStorage:
      result = allocated(at, 0, number(in, 1, at, *state), *state);
      break;
    case Opcode::AllocTensor: {
      const Storages own = keeps(value(in.arg(1), *state));
      result = made_tensor(own, numbers(in, 4, at, *state), in.arg(3).as_dtype());
      break;
    }
    case Opcode::AllocTensorReg: {
      const Storages own = keeps(value(in.arg(1), *state));
      result = made_tensor(own, dims_of(value(in.arg(4), *state)).value_or(Dims()),
                           in.arg(3).as_dtype());
      if (!dims_of(value(in.arg(4), *state))) result = part_of(result);
      break;
    }
    case Opcode::NewTensor:
    case Opcode::AllocResult: {
      const uint32_t dtype = in.info->fixed_words - 1;
      const Dims dims = numbers(in, in.info->fixed_words, at, *state);
      const Dim bytes = bytes_of(dims, in.arg(dtype).as_dtype(), at);
      result = made_tensor(keeps(allocated(at, 0, bytes, *state)), dims, in.arg(dtype).as_dtype());
      break;
    }
    case Opcode::MakeTensor: {
      const auto count = static_cast<int64_t>(in.list().size());
      const DataType dtype = in.arg(1).as_dtype();
      const Dims dims = in.arg(2).value() == 0 ? Dims() : Dims{Dim(count)};
      result = made_tensor(keeps(allocated(at, 0, count * dtype.bytes(), *state)), dims, dtype);
      break;
    }
    case Opcode::DeviceCopy: {
      const ValueRef from = value(in.arg(1), *state);
      const bool known = from && from->dims && from->dtype;
      const Dim bytes = known ? bytes_of(*from->dims, *from->dtype, at)
                              : unknown("bytes", at, 0, "the bytes of the copy that is made");
      Value copy;
      copy.own = keeps(allocated(at, 0, bytes, *state));
      if (known) {
        copy.dims = from->dims;
        copy.dtype = from->dtype;
      }
      result = made(std::move(copy));
      break;
    }
    case Opcode::ReadElements:
      release(in, state);
      for (uint32_t word = in.info->fixed_words; word < in.operands.size(); ++word) {
        put(in.arg(word), made_number(unknown("element", at, word, "an element that is read")),
            state);
      }
      return true;
    case Opcode::MatchShape:
      match(in, at, 1, state);
      return true;
    case Opcode::MatchTensor:
      match(in, at, 2, state);
      return true;
    case Opcode::MatchPrimValue: {
      const ValueRef found = value(in.arg(0), *state);
      if (static_cast<vm::DimMatch>(in.arg(1).value()) == vm::DimMatch::Store) {
        put(in.arg(2), found, state);
      }
      return true;
    }
    default:
      return false;
  }
  release(in, state);
  put(in.arg(0), std::move(result), state);
  return true;
}

// Dimensions of a value, in pairs of words: what is required of each, and where it goes.
void Walk::match(const Instruction& in, uint32_t at, uint32_t first_dim, State* state) {
  const Arg from = in.arg(0);
  const ValueRef found = value(from, *state);
  Value matched = found ? *found : Value();
  const size_t rank = (in.operands.size() - first_dim) / 2;
  const auto all_known = [&] {
    return std::ranges::all_of(*matched.dims, [](const auto& dim) { return dim.has_value(); });
  };
  if (!matched.dims || matched.dims->size() != rank) matched.dims = Dims(rank);
  const bool was_known = found && found->dims == matched.dims && all_known();
  std::vector<std::pair<Arg, Dim>> stored;
  for (uint32_t axis = 0; axis < rank; ++axis) {
    const uint32_t word = first_dim + 2 * axis;
    std::optional<Dim>& dim = (*matched.dims)[axis];
    switch (static_cast<vm::DimMatch>(in.arg(word).value())) {
      case vm::DimMatch::Ignore:
        break;
      case vm::DimMatch::EqualsImmediate:
        dim = Dim(in.arg(word + 1).value());
        break;
      case vm::DimMatch::EqualsRegister:
        if (!dim) dim = number(in, word + 1, at, *state);
        break;
      case vm::DimMatch::Store:
        if (!dim) dim = unknown("size", at, axis, cat("dimension ", axis, " of what is matched"));
        stored.emplace_back(in.arg(word + 1), *dim);
        break;
    }
  }
  if (in.opcode() == Opcode::MatchTensor) {
    matched.dtype = in.arg(1).as_dtype();
    // A packed function allocated it; now its size is known.
    if (!was_known && all_known() && matched.own.size() == 1 && !matched.fields) {
      const Dim& bytes = storages_[matched.own[0]].bytes;
      if (bytes.kind() == DimKind::kSymbol) {
        analysis_.define(bytes, bytes_of(*matched.dims, *matched.dtype, at));
      }
    }
  }
  if (from.is(ArgKind::Register)) put(from, made(std::move(matched)), state);
  release(in, state);
  for (auto& [destination, dim] : stored) put(destination, made_number(dim), state);
}

// Instructions on values that only pass storages on.
bool Walk::step_value(const Instruction& in, uint32_t at, State* state) {
  Value result;
  const auto reshape = [&](std::optional<Dims> dims) {
    const ValueRef from = value(in.arg(1), *state);
    result.own = keeps(from);
    result.dims = std::move(dims);
    if (from) result.dtype = from->dtype;
  };
  switch (in.opcode()) {
    case Opcode::Kill:
      for (const vm::Word word : in.operands) put(Arg(word), nullptr, state);
      return true;
    case Opcode::Move:
    case Opcode::LoadConst: {
      ValueRef moved = value(in.arg(1), *state);
      release(in, state);
      put(in.arg(0), std::move(moved), state);
      return true;
    }
    case Opcode::ReshapeTensor:
      reshape(numbers(in, 2, at, *state));
      break;
    case Opcode::ReshapeTensorReg:
      reshape(dims_of(value(in.arg(2), *state)));
      break;
    case Opcode::ShapeOf:
      result.dims = dims_of(value(in.arg(1), *state));
      break;
    case Opcode::MakeShape:
      result.dims = numbers(in, 1, at, *state);
      break;
    case Opcode::GetDim: {
      const auto dims = dims_of(value(in.arg(1), *state));
      const Arg axis = in.arg(2);
      if (dims && axis.is(ArgKind::Immediate) && axis.value() >= 0 &&
          static_cast<size_t>(axis.value()) < dims->size()) {
        result.number = (*dims)[static_cast<size_t>(axis.value())];
      }
      if (!result.number) result.number = unknown("size", at, 0, "a dimension that is read");
      break;
    }
    case Opcode::RankOf:
    case Opcode::GetTag:
    case Opcode::IsNone:
    case Opcode::ArraySize:
      break;
    case Opcode::ArraySet:
    case Opcode::ArrayPush:
      for (const vm::Word word : in.operands.subspan(1)) {
        memory::add(&result.own, keeps(value(Arg(word), *state)));
      }
      break;
    case Opcode::AllocAdt:
    case Opcode::ReuseAdt:
    case Opcode::AllocTuple:
    case Opcode::AllocClosure: {
      auto& fields = result.fields.emplace();
      for (const vm::Word word : in.list()) fields.push_back(value(Arg(word), *state));
      if (in.opcode() == Opcode::AllocClosure) result.function = in.arg(1).index();
      break;
    }
    case Opcode::GetField:
    case Opcode::BorrowField: {
      const ValueRef whole = value(in.arg(1), *state);
      const Arg index = in.arg(2);
      const bool known = whole && whole->fields && index.is(ArgKind::Immediate) &&
                         index.value() >= 0 &&
                         static_cast<size_t>(index.value()) < whole->fields->size();
      ValueRef field =
          known ? (*whole->fields)[static_cast<size_t>(index.value())] : part_of(whole);
      release(in, state);
      put(in.arg(0), std::move(field), state);
      return true;
    }
    case Opcode::TakeFields: {
      const ValueRef whole = value(in.arg(0), *state);
      const auto list = in.list();
      const bool known = whole && whole->fields && whole->fields->size() == list.size();
      release(in, state);
      for (size_t i = 0; i < list.size(); ++i) {
        put(Arg(list[i]), known ? (*whole->fields)[i] : part_of(whole), state);
      }
      return true;
    }
    default:
      return false;
  }
  release(in, state);
  put(in.arg(0), made(std::move(result)), state);
  return true;
}

void Walk::call_packed(const Instruction& in, uint32_t at, State* state) {
  const vm::PackedName& callee = analysis_.unit().packed[in.arg(1).index()];
  Value result;
  if (!callee.kernel) {
    // A function of the host may keep its arguments in its result, and allocate.
    const library::Signature* signature = library::find_signature(callee.name);
    Storages kept;
    if (!signature || signature->keeps_arguments) {
      for (const vm::Word word : in.list()) {
        memory::add(&kept, keeps(value(Arg(word), *state)));
      }
    }
    std::vector<ValueRef> results;
    const auto allocate = [&] {
      const auto index = static_cast<uint32_t>(results.size());
      Dim bytes = unknown("bytes", at, index, cat("the bytes of what ", callee.name, " returns"));
      if (signature) {  // it has one storage, which may be an argument's
        for (const StorageId storage : kept) bytes = max(bytes, storages_[storage].bytes);
      }
      results.push_back(made_storage(storages_.at(at, index, bytes)));
    };
    if (!signature) {
      if (!in.arg(0).is_none()) allocate();
    } else if (!signature->writes_results) {
      for (const library::Parameter& parameter : signature->results) {
        Value part;
        part.own = kept;
        parameter.kind == library::ValueKind::Tensor ? allocate()
                                                     : results.push_back(made(std::move(part)));
      }
    }
    if (!signature) result.own = kept;
    Storages all = live(*state);
    for (const ValueRef& one : results) memory::add(&all, keeps(one));
    record(storages_.total(all));
    if (results.size() > 1) {
      result.fields = std::move(results);
    } else if (results.size() == 1) {
      memory::add(&result.own, keeps(results[0]));
    }
  }
  release(in, state);
  put(in.arg(0), made(std::move(result)), state);
}

bool Walk::call(const Instruction& in, uint32_t at, State* state) {
  const bool tail = in.info->ends();
  const bool of_closure = in.info->has_operand(vm::OperandKind::Use);
  const Arg target = in.arg(tail ? 0 : 1);
  analysis_.count_steps(state->size() / 16);
  const Storages before = live(*state);
  State arguments;
  std::optional<size_t> callee;
  if (of_closure) {
    const ValueRef closure = value(target, *state);
    if (closure && closure->function && closure->fields) {
      callee = closure->function;
      arguments = *closure->fields;
    } else {
      arguments.push_back(closure);
    }
  } else {
    callee = target.index();
  }
  for (const vm::Word word : in.list()) arguments.push_back(value(Arg(word), *state));
  release(in, state);
  if (tail) state->assign(state->size(), nullptr);
  const bool fits = callee && arguments.size() == analysis_.unit().functions[*callee].params.size();
  if (fits && component_ && component_->contains(*callee)) {
    return call_member(in, at, *callee, arguments, state, before);
  }
  if (!fits || analysis_.is_active(*callee)) {
    call_unknown(in, at, arguments, state);
    return true;
  }

  const Storages remaining = live(*state);
  Storages passed;  // in the order of their first use, which makes equal calls equal
  std::map<StorageId, StorageId> index;
  StorageTable storages;
  for (ValueRef& argument : arguments) {
    argument = with_storages(argument, [&](StorageId storage) {
      const auto [entry, is_new] = index.emplace(storage, static_cast<StorageId>(passed.size()));
      if (is_new) {
        passed.push_back(storage);
        storages.add(
            {.bytes = storages_[storage].bytes,
             .held = storages_[storage].held || std::ranges::binary_search(remaining, storage)});
      }
      return Storages{entry->second};
    });
  }
  const auto summary = analysis_.call(*callee, arguments, storages);
  const Dim held = storages_.total(remaining);
  for (const Dim& peak : summary->peaks) record(held + peak);
  if (!summary->returns) return false;
  ValueRef result = with_storages(summary->result, [&](StorageId storage) {
    if (storage < passed.size()) return Storages{passed[storage]};
    return Storages{storages_.at(at, storage, summary->storages[storage].bytes)};
  });
  if (tail) {
    return_value(result);
  } else {
    put(in.arg(0), std::move(result), state);
  }
  return true;
}

// A closure of which nothing is known, or one that leads to recursion.
void Walk::call_unknown(const Instruction& in, uint32_t at, const State& arguments, State* state) {
  Value result;
  for (const ValueRef& argument : arguments) memory::add(&result.own, keeps(argument));
  Storages all = live(*state);
  memory::add(&all, result.own);
  record(storages_.total(all) + unknown("peak", at, 0, "what the closure takes that is called"));
  const Dim kept = unknown("bytes", at, 0, "the bytes of what the closure returns");
  memory::add(&result.own, {storages_.at(at, 0, kept)});
  if (in.info->ends()) {
    return_value(made(std::move(result)));
  } else {
    put(in.arg(0), made(std::move(result)), state);
  }
}

bool Walk::call_member(const Instruction& in, uint32_t at, size_t callee, const State& arguments,
                       State* state, const Storages& before) {
  Storages passed;
  for (const ValueRef& argument : arguments) memory::add(&passed, keeps(argument));
  const bool tail = in.info->ends();
  if (tail) {
    const size_t shared = callee == function_ ? entered_with_ : 0;
    component_->enter_by_tail_call(callee, arguments, storages_, shared, function_, at);
  } else {
    if (collects_) waiting_.add(storages_.total(before));
    State held = arguments;
    for (ValueRef& argument : held) {
      argument = with_storages(argument, [](StorageId) { return Storages{Component::kHeld}; });
    }
    component_->enter(callee, held);
  }
  const ValueRef* result = component_->result(callee);
  if (!result) return false;
  ValueRef mapped = with_storages(*result, [&](StorageId storage) {
    if (storage == Component::kMade) return Storages{storages_.at(at, 0, component_->made_bytes())};
    return tail ? Storages{Component::kHeld} : passed;
  });
  if (tail) {
    return_value(mapped);
  } else {
    put(in.arg(0), std::move(mapped), state);
    record(storages_.total(live(*state)));
  }
  return true;
}

}  // namespace tenon::report::memory
