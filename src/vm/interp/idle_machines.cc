#include "vm/interp/idle_machines.h"

#include "vm/interp/machine.h"

namespace tenon::vm {
namespace {

constexpr size_t kKept = 8;

}  // namespace

IdleMachines::IdleMachines() {
  machines_.reserve(kKept);  // so that giving a machine back can't fail
}

IdleMachines::~IdleMachines() = default;

Any IdleMachines::call(const Program& program, const FunctionCode& code,
                       std::span<const Any> captures, std::span<const AnyView> args,
                       const Ref<const Account>& account, Outputs* outputs) const {
  struct Lent {
    const IdleMachines& from;
    std::unique_ptr<Machine> machine;
    ~Lent() { from.give_back(std::move(machine)); }
  } lent{*this, take(program)};
  lent.machine->work_for(account);
  return lent.machine->call_code(program, code, captures, args, *account, outputs);
}

std::unique_ptr<Machine> IdleMachines::take(const Program& program) const {
  {
    std::lock_guard lock(mutex_);
    if (!machines_.empty()) {
      auto machine = std::move(machines_.back());
      machines_.pop_back();
      return machine;
    }
  }
  return std::unique_ptr<Machine>(new Machine(Machine::Unowned(), &program));
}

void IdleMachines::give_back(std::unique_ptr<Machine> machine) const noexcept {
  std::lock_guard lock(mutex_);
  if (machines_.size() < machines_.capacity()) machines_.push_back(std::move(machine));
}

}  // namespace tenon::vm
