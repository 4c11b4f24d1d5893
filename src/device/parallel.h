// parallel_for: the one way that anything in Tenon uses several threads.
//
// A range [0, n) is cut into chunks of `grain` indices (the last may be shorter). A body gets whole
// chunks, several in a row when that is cheaper, or with `each_chunk` exactly one: then what it
// sees doesn't depend on the number of threads. The calling thread works too; a body that calls
// parallel_for again runs it alone. A host, or a library, with threads of its own can lend them.
#pragma once

#include <cstdint>
#include <type_traits>

namespace tenon {

// Handles [begin, end). Non-zero stops the loop soon; an error then waits on the thread that ran it
// and is moved to the caller's.
using ParallelBody = int (*)(void* context, int64_t begin, int64_t end);

struct ParallelLoop {
  int64_t n = 0;
  int64_t grain = 1;  // at least 1
  bool each_chunk = false;
  int32_t threads = 0;  // at most so many; 0 for this thread's setting
  ParallelBody body = nullptr;
  void* context = nullptr;
};

// Where the threads of loops come from; what a loop is (chunks, errors, nesting) is the same for
// all.
struct ThreadTeam {
  // Calls work(context, place) here and on up to threads - 1 others at once, and returns when all
  // of them have returned. Fewer is right too, the caller alone even: what one doesn't do, another
  // does. `place`, 0 or more, is better the same for a thread each time, and another than the
  // others'. `work` throws nothing.
  void (*run)(void (*work)(void* context, int32_t place), void* context, int32_t threads);
  int32_t (*thread_count)();  // that a loop may use by default
};

// The pool of this process is the default. The team must live for ever.
const ThreadTeam& thread_team();
void set_thread_team(const ThreadTeam* team);  // null: the default again

// The threads that the affinity mask and the cgroup's quota allow; at least 1.
int32_t available_threads();

// Sets how many threads loops on this thread may use; 0 for all that are available.
class ThreadsScope {
 public:
  explicit ThreadsScope(int32_t threads);
  ~ThreadsScope();
  ThreadsScope(const ThreadsScope&) = delete;

 private:
  int32_t before_;
};
int32_t threads_in_scope();  // the setting; without one, all that are available

// Runs the loop; 0, or the code of the failed body with the lowest range among those that ran: its
// error waits on this thread. Nothing is thrown, whatever the team does. The threads that help work
// for the same call (call_context.h) as this one.
int try_parallel(const ParallelLoop& loop) noexcept;
// The same, and throws the error. Inside `f(begin, end)` exceptions may be thrown.
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
