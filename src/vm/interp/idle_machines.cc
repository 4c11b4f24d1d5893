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

// A machine that works for an account meanwhile.
class IdleMachines::Lent {
 public:
  Lent(const IdleMachines& from, const Program& program, const Ref<const Account>& account)
      : from_(from), machine_(from.take(program)) {
    machine_->work_for(account);
  }
  ~Lent() { from_.give_back(std::move(machine_)); }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

  Machine* operator->() const { return machine_.get(); }

 private:
  const IdleMachines& from_;
  std::unique_ptr<Machine> machine_;
};

Any IdleMachines::call(const Program& program, const FunctionCode& code,
                       std::span<const Any> captures, std::span<const AnyView> args,
                       const Ref<const Account>& account, Outputs* outputs) const {
  return Lent(*this, program, account)->call_code(program, code, captures, args, *account, outputs);
}

void IdleMachines::prepare(const Program& program, const Ref<const Account>& account) const {
  Lent(*this, program, account)->prepare_calls();
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
