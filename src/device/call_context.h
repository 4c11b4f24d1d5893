// CallContext: what functions below the machine find of the call that they work for: whether it
// should stop, and memory under its limit. The machine sets it for its thread while a call runs;
// parallel loops carry it to the threads that help.
#pragma once

#include <cstddef>
#include <optional>

#include "object/object_budget.h"
#include "object/tensor.h"

namespace tenon {

// The byte that poisoning writes: floats of it are NaN, integers -1 or the largest of their type.
inline constexpr int kPoison = 0xff;

class CallContext : public MemoryAccount {
 public:
  // Of this thread; null when it works for no call.
  static CallContext* current();

  // Throws when the call was cancelled or its deadline has passed. Any thread.
  virtual void poll() = 0;
  // Memory on the CPU that counts for the call's limit; null on the threads that help.
  virtual Ref<StorageObj> allocate(size_t bytes, size_t alignment) = 0;
  // The byte that new memory is filled with before the program may read it: kPoison when poisoning,
  // 0 for a program that isn't trusted, which is to see nothing that others left there; none else.
  virtual std::optional<int> fill_byte() const { return std::nullopt; }
  // Whether functions may change the tensor: only what the call itself allocated is the program's.
  virtual bool may_write(const Tensor& tensor) const = 0;
  // Whether memory is filled with kPoison once what lay there is dead.
  virtual bool poisons() const { return false; }

  // An argument of `function`, the object whose packed call this is, to change: moved out of the
  // program's register where the call is its last use, so that it may be changed in place; else
  // shared. args[i] is not to be looked at afterwards.
  virtual Any take(const Object* function, const AnyView* args, int32_t i);

  // Makes a context the thread's current one for as long as it lives.
  class Scope {
   public:
    explicit Scope(CallContext* context);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    CallContext* outer_;
  };

 protected:
  ~CallContext() = default;
};

// Throws when the call that this thread works for should stop; for functions that take long.
void poll();

// Asks that now and then: for inner loops, each step a subtraction.
class Ticker {
 public:
  void tick() { take(1); }
  // A step that copies so many bytes; more than a few megabytes are better copied in parts
  // (bulk.h).
  void tick(size_t bytes) { take(1 + static_cast<int64_t>(bytes / kBytesPerStep)); }

 private:
  void take(int64_t steps) {
    if ((left_ -= steps) <= 0) [[unlikely]]
      ask();
  }
  void ask();
  static constexpr int64_t kSteps = 4096;
  static constexpr size_t kBytesPerStep = 512;
  int64_t left_ = kSteps;
};

}  // namespace tenon
