#include "device/parallel.h"

#include <algorithm>
#include <atomic>

#include "device/call_context.h"
#include "device/processors.h"
#include "device/thread_pool.h"
#include "object/function.h"

namespace tenon {

namespace {
constinit thread_local int32_t threads_here = 0;
constinit std::atomic<const ParallelTable*> table_in_use{nullptr};

constexpr ParallelTable kPoolTable = {run_on_pool, available_threads};
}  // namespace

const ParallelTable& parallel_table() {
  const ParallelTable* t = table_in_use.load(std::memory_order_acquire);
  return t ? *t : kPoolTable;
}

void set_parallel_table(const ParallelTable* table) {
  table_in_use.store(table, std::memory_order_release);
}

int32_t available_threads() {
  static const int32_t n = count_processors();
  return n;
}

ThreadsScope::ThreadsScope(int32_t threads) : before_(threads_here) {
  threads_here = threads;
}
ThreadsScope::~ThreadsScope() {
  threads_here = before_;
}
int32_t scoped_threads() {
  return threads_here;
}

namespace {

// A loop within a call: its bodies run for that call on every thread.
struct CallLoop {
  const ParallelLoop& loop;
  CallContext* call;

  static int body(void* context, int64_t begin, int64_t end) {
    const CallLoop& self = *static_cast<CallLoop*>(context);
    CallContext::Scope scope(self.call);
    return self.loop.body(self.loop.context, begin, end);
  }
};

}  // namespace

int try_parallel(const ParallelLoop& loop) noexcept {
  try {
    CallContext* call = CallContext::current();
    if (!call) return parallel_table().run(&loop);
    CallLoop within{loop, call};
    ParallelLoop carried = loop;
    carried.body = &CallLoop::body;
    carried.context = &within;
    return parallel_table().run(&carried);
  } catch (...) {
    return set_current_exception();
  }
}

void run_parallel(const ParallelLoop& loop) {
  if (try_parallel(loop) != 0) throw take_error();
}

int detail::guarded(void (*call)(void*, int64_t, int64_t), void* context, int64_t begin,
                    int64_t end) {
  try {
    call(context, begin, end);
    return 0;
  } catch (...) {
    return set_current_exception();
  }
}

}  // namespace tenon
