#include "device/parallel.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "device/call_context.h"
#include "device/processors.h"
#include "device/thread_pool.h"
#include "object/function.h"

namespace tenon {

namespace {
constinit thread_local int32_t threads_here = 0;
constinit thread_local bool inside_loop = false;
constinit std::atomic<const ThreadTeam*> team_in_use{nullptr};

constexpr ThreadTeam kPool = {run_on_pool, available_threads};
}  // namespace

const ThreadTeam& thread_team() {
  const ThreadTeam* t = team_in_use.load(std::memory_order_acquire);
  return t ? *t : kPool;
}

void set_thread_team(const ThreadTeam* team) {
  team_in_use.store(team, std::memory_order_release);
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
int32_t threads_in_scope() {
  return threads_here > 0 ? threads_here : available_threads();
}

namespace {

constexpr int32_t kMostThreads = 1024;
constexpr int64_t kSlices = 4;  // chunks are handed out in about so many portions per thread

// A loop in progress: every thread that takes part calls `work`.
class Progress {
 public:
  Progress(const ParallelLoop& loop, int64_t grain, int64_t chunks, int32_t threads)
      : loop_(loop),
        call_(CallContext::current()),
        grain_(grain),
        chunks_(chunks),
        portion_(threads <= 1 ? chunks : std::max<int64_t>(1, chunks / (threads * kSlices))) {}

  // As many chunks as nobody else has taken.
  void work() {
    struct Inside {
      bool outer = std::exchange(inside_loop, true);
      ~Inside() { inside_loop = outer; }
    } inside;
    CallContext::Scope scope(call_);
    while (!failed_.load(std::memory_order_relaxed)) {
      const int64_t first = next_.fetch_add(portion_, std::memory_order_relaxed);
      if (first >= chunks_) return;
      const int64_t last = std::min(chunks_, first + portion_);
      if (loop_.each_chunk) {
        for (int64_t c = first; c < last; ++c) {
          if (!run(c, c + 1)) return;
        }
      } else if (!run(first, last)) {
        return;
      }
    }
  }

  // When all threads have left.
  int finish() {
    if (error_code_ != 0) set_error_object(std::move(error_));
    return error_code_;
  }

 private:
  bool run(int64_t first, int64_t last) {
    const int64_t begin = first * grain_;
    const int64_t end = last == chunks_ ? loop_.n : last * grain_;
    int code;
    try {
      code = loop_.body(loop_.context, begin, end);
    } catch (...) {  // a worker has nobody above it who could catch
      code = set_current_exception();
    }
    if (code == 0) return true;
    std::lock_guard lock(error_mutex_);
    if (error_code_ == 0 || begin < error_at_) {
      error_at_ = begin;
      error_code_ = code;
      error_ = take_error_object();
    }
    failed_.store(true, std::memory_order_relaxed);
    return false;
  }

  const ParallelLoop& loop_;
  CallContext* const call_;
  const int64_t grain_, chunks_;
  const int64_t portion_;  // chunks that are taken at once
  std::atomic<int64_t> next_{0};

  std::atomic<bool> failed_{false};
  std::mutex error_mutex_;
  int64_t error_at_ = 0;  // the range of the kept error begins here
  int error_code_ = 0;
  Ref<ErrorObj> error_;
};

}  // namespace

int try_parallel(const ParallelLoop& loop) noexcept {
  try {
    if (loop.n <= 0) return 0;
    const int64_t grain = std::max<int64_t>(1, loop.grain);
    const int64_t chunks = loop.n / grain + (loop.n % grain != 0);
    const ThreadTeam& team = thread_team();
    int32_t threads = loop.threads > 0 ? loop.threads : threads_here;
    if (threads <= 0) threads = team.thread_count();
    if (inside_loop) threads = 1;
    threads = static_cast<int32_t>(std::min<int64_t>({threads, chunks, kMostThreads}));
    if (threads <= 1 && !loop.each_chunk) return loop.body(loop.context, 0, loop.n);

    Progress progress(loop, grain, chunks, threads);
    if (threads <= 1) {
      progress.work();
    } else {
      team.run([](void* p) { static_cast<Progress*>(p)->work(); }, &progress, threads);
    }
    return progress.finish();
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
