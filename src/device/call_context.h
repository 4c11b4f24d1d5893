// CallContext: how code below the machine learns about the running call: whether it should stop,
// and memory under its limit. The machine sets it for its thread while a call runs; parallel loops
// set it on their worker threads.
#pragma once

#include <cstddef>
#include <optional>

#include "object/object_budget.h"
#include "object/tensor.h"
#include "support/poll.h"

namespace tenon {

// The byte that poisoning writes: as a float it reads as NaN, as an integer as -1 or the largest
// value.
inline constexpr int kPoison = 0xff;

class CallContext : public MemoryAccount, public Poller {
 public:
  // This thread's context; null outside of a call.
  static CallContext* current();

  // CPU memory that counts for the call's limit; null on worker threads.
  virtual Ref<StorageObj> allocate(size_t bytes, size_t alignment) = 0;
  // The byte that new memory is filled with before the program may read it: kPoison when poisoning,
  // 0 for an untrusted program, which must not see other data; otherwise none.
  virtual std::optional<int> fill_byte() const { return std::nullopt; }
  // Whether functions may modify the tensor: only if the running call allocated it.
  virtual bool may_write(const Tensor& tensor) const = 0;
  // Whether memory is filled with kPoison after its last use.
  virtual bool poisons() const { return false; }

  // Takes argument i of `function`, the object being called, in order to modify it. The value is
  // moved out of the program's register if this call is its last use, so that it may be modified in
  // place; otherwise it is shared. args[i] must not be used afterwards.
  virtual Any take(const Object* function, const AnyView* args, int32_t i);

  // Makes a context current on this thread for as long as it lives.
  class Scope {
   public:
    explicit Scope(CallContext* context);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Poller::Scope poller_;
    CallContext* outer_;
  };

 protected:
  ~CallContext() = default;
};

// Counts memory for this thread's call or other limited work, if there is any, until that ends;
// call it before that much is allocated. Throws Runtime if it is more than is left.
void charge(size_t bytes);

}  // namespace tenon
