// IdleMachines: the machines on which a Program's function values run when they are called outside
// of any machine's call. Each thread that calls takes one; some are kept for later calls.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "object/any.h"
#include "vm/interp/account.h"

namespace tenon::vm {

struct FunctionCode;
class Machine;
class Outputs;
class Program;

class IdleMachines {
 public:
  IdleMachines();
  ~IdleMachines();
  IdleMachines(const IdleMachines&) = delete;
  IdleMachines& operator=(const IdleMachines&) = delete;

  // Calls a function of `program`, the one that these machines are for, under the account's limits.
  // `outputs` may be null. Thread-safe.
  Any call(const Program& program, const FunctionCode& code, std::span<const Any> captures,
           std::span<const AnyView> args, const Ref<const Account>& account,
           Outputs* outputs) const;

 private:
  std::unique_ptr<Machine> take(const Program& program) const;
  void give_back(std::unique_ptr<Machine> machine) const noexcept;

  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Machine>> machines_;
};

}  // namespace tenon::vm
