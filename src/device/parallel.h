// parallel_for: the only way that Tenon uses several threads.
//
// A range [0, n) is split into chunks of `grain` indices (the last may be shorter). A body gets
// whole chunks: several consecutive ones when that is cheaper or, with `each_chunk`, exactly one,
// so that its view doesn't depend on the number of threads. The calling thread takes part; a nested
// parallel_for runs on its thread alone. A host or a library can lend its threads.
#pragma once

#include <cstdint>
#include <type_traits>

namespace tenon {

// Handles [begin, end). A non-zero result stops the loop soon; the error waiting on the thread that
// ran the body is moved to the calling thread.
using ParallelBody = int (*)(void* context, int64_t begin, int64_t end);

struct ParallelLoop {
  int64_t n = 0;
  int64_t grain = 1;  // at least 1
  bool each_chunk = false;
  int32_t threads = 0;  // the most to use; 0 for this thread's setting
  ParallelBody body = nullptr;
  void* context = nullptr;
};

// The source of a loop's threads. Chunks, errors and nesting are the same for all teams.
struct ThreadTeam {
  // Calls work(context, place) on this thread and on up to threads - 1 others concurrently, and
  // returns when all of these calls have returned. Fewer threads are allowed, even the caller
  // alone: the others do the remaining work. `place`, 0 or more, should be the same for a thread
  // each time and different from the others'. `work` throws nothing.
  void (*run)(void (*work)(void* context, int32_t place), void* context, int32_t threads);
  int32_t (*thread_count)();  // threads that a loop uses by default
  // Whether `work` may wait for the calling thread's: all run at the same time.
  bool may_wait = false;
};

// By default the pool of this process. The team must never be destroyed.
const ThreadTeam& thread_team();
void set_thread_team(const ThreadTeam* team);  // null restores the default

// A loop uses no more threads than this, whatever it is told.
constexpr int32_t kMostThreads = 1024;

// The number of threads that the affinity mask and the cgroup's quota allow; at least 1.
int32_t available_threads();

// Sets how many threads loops on this thread may use; 0 for all available.
class ThreadsScope {
 public:
  explicit ThreadsScope(int32_t threads);
  ~ThreadsScope();
  ThreadsScope(const ThreadsScope&) = delete;

 private:
  int32_t before_;
};
int32_t threads_in_scope();  // the setting; if there is none, all available

// Runs the loop. Returns 0, or the code of the failed body with the lowest range among those that
// ran, whose error then waits on this thread. Never throws, whatever the team does. Worker threads
// have the same call context (call_context.h) as this one.
int try_parallel(const ParallelLoop& loop) noexcept;
// Runs body(context, 0, n) once, on this thread, while others stand by for the loops in it: for a
// series of loops that are worth threads, but short. Returns what the body returns.
int try_with_team(ParallelBody body, void* context, int64_t n) noexcept;

// try_parallel, but throws the error. `f(begin, end)` may throw.
void run_parallel(const ParallelLoop& loop);

namespace detail {
int guarded(void (*call)(void*, int64_t, int64_t), void* context, int64_t begin, int64_t end);
}

template <class F>
void parallel_for(int64_t n, int64_t grain, F&& f, bool each_chunk = false) {
  using Body = std::remove_reference_t<F>;
  ParallelLoop loop;
  loop.n = n;
  loop.grain = grain;
  loop.each_chunk = each_chunk;
  loop.context = const_cast<void*>(static_cast<const void*>(&f));
  loop.body = [](void* context, int64_t begin, int64_t end) {
    return detail::guarded([](void* c, int64_t b, int64_t e) { (*static_cast<Body*>(c))(b, e); },
                           context, begin, end);
  };
  run_parallel(loop);
}

}  // namespace tenon
