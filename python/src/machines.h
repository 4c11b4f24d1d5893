// The machines of a tenon.VirtualMachine.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "python/src/value.h"

namespace tenon::python {

class DataTypes;
struct Signature;

// A loaded program, and its data types in Python.
struct Program {
  Value value;
  std::shared_ptr<DataTypes> types;
};

// Machines of one program with the same options: as many as calls run at the same time. Threads
// share it.
class Machines {
  struct Slot {
    Value machine;
    bool is_running = false;
    unsigned long thread = 0;  // that runs the call
  };

 public:
  Machines(Program program, int32_t memory, const tenon_limits& limits, int32_t inter_op);
  ~Machines();

  const Program& program() const { return program_; }
  const tenon_limits& limits() const { return limits_; }

  // A machine for one call.
  class Lease {
   public:
    explicit Lease(Machines& of) : of_(of), slot_(of.take()) {}
    ~Lease() { of_.give_back(slot_); }
    Lease(const Lease&) = delete;
    const tenon_any* machine() const { return slot_->machine.get(); }

   private:
    Machines& of_;
    Slot* const slot_;
  };
  // Stops all running calls, those of function values that earlier calls made included, or the
  // machines' own call on the thread of that identity (threading.get_ident).
  void cancel(std::optional<unsigned long> thread = {});
  // The sums over the machines, but the greatest `call_peak`, and the number of machines.
  tenon_memory_stats memory(size_t* count);
  // Returns the pooled memory of the machines that run no call.
  void trim();
  // A Python callable, or None; an error while a call runs.
  void set_instrument(nb::object instrument);
  const nb::object& instrument() const { return instrument_; }
  // Of the program's functions by name, once an instrument was set.
  const std::map<std::string, Signature, std::less<>>& signatures() const { return signatures_; }

 private:
  // A new machine, which runs nothing, or null with a waiting error.
  std::unique_ptr<Slot> make() const;
  Slot* take();
  void give_back(Slot* slot) noexcept;

  const Program program_;
  const int32_t memory_;
  const tenon_limits limits_;
  const int32_t inter_op_;
  // Guards the following in a free-threaded interpreter; else the GIL does. Under it, no code in
  // Python may run, not even to raise an exception: that could wait for a thread that waits here.
  nb::ft_mutex mutex_;
  std::vector<std::unique_ptr<Slot>> slots_;
  nb::object instrument_ = nb::none();
  std::map<std::string, Signature, std::less<>> signatures_;
};

// The machines of an instance of their class, which they keep alive.
std::shared_ptr<Machines> shared_machines(nb::handle instance);

}  // namespace tenon::python
