#include "device/parallel.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

#include "device/call_context.h"
#include "device/processors.h"
#include "device/standing_team.h"
#include "device/thread_pool.h"
#include "object/function.h"
#include "support/trace.h"

namespace tenon {

namespace {
constinit thread_local int32_t threads_here = 0;
constinit thread_local bool inside_loop = false;
constinit thread_local StandingTeam* standing_team = nullptr;  // that this thread leads
constinit std::atomic<const ThreadTeam*> team_in_use{nullptr};

constexpr ThreadTeam kPool = {run_on_pool, available_threads, true};
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

constexpr int32_t kMostShares = 64;
constexpr int64_t kSlices = 16;  // portions per share, roughly

// A key for the events of a loop; 0 unless it is recorded.
uint64_t new_trace_key(int32_t threads) {
  trace::Sink* const to = trace::sink.load(std::memory_order_acquire);
  return to && threads > 1 ? to->new_key() : 0;
}

// A loop in progress: every participating thread calls `work`. Each starts with its own share, the
// same part of the range in every loop, so that it reads what the previous loop wrote from its
// processor's cache. A thread that is done helps the others.
class Progress {
 public:
  Progress(const ParallelLoop& loop, int64_t grain, int64_t chunks, int32_t threads, bool backwards)
      : loop_(loop),
        call_(CallContext::current()),
        grain_(grain),
        chunks_(chunks),
        count_(static_cast<uint32_t>(std::clamp(threads, 1, kMostShares))),
        portion_(threads <= 1 ? chunks : std::max<int64_t>(1, chunks / (threads * kSlices))),
        trace_key_(new_trace_key(threads)),
        backwards_(backwards) {
    int64_t begin = 0;
    for (uint32_t i = 0; i < count_; ++i) {
      shares_[i].next.store(0, std::memory_order_relaxed);
      shares_[i].begin = begin;
      begin += chunks / count_ + (i < chunks % count_);
      shares_[i].end = begin;
    }
  }

  // Runs chunks until none are left.
  void work(int32_t place) {
    struct Inside {
      bool outer = std::exchange(inside_loop, true);
      ~Inside() { inside_loop = outer; }
    } inside;
    CallContext::Scope scope(call_);
    std::optional<trace::Scope> recorded;
    if (trace_key_) recorded.emplace(trace::Kind::Loop, 0, trace_key_);
    const auto own = static_cast<uint32_t>(place);  // from a host, so any number
    for (uint32_t i = 0; i < count_; ++i) {
      if (!take_all(shares_[(own % count_ + i) % count_])) return;
    }
  }

  // Called after all threads have left.
  int finish() {
    if (error_code_ != 0) set_error_object(std::move(error_));
    return error_code_;
  }

 private:
  struct alignas(64) Share {    // a cache line each
    std::atomic<int64_t> next;  // chunks that are taken, from the begin or, backwards, from the end
    int64_t begin, end;
  };

  // Returns false if the loop has failed.
  bool take_all(Share& share) {
    while (!failed_.load(std::memory_order_relaxed)) {
      const int64_t taken = share.next.fetch_add(portion_, std::memory_order_relaxed);
      if (taken >= share.end - share.begin) return true;
      int64_t first = share.begin + taken, last = std::min(share.end, first + portion_);
      if (backwards_) {
        last = share.end - taken;
        first = std::max(share.begin, last - portion_);
      }
      if (loop_.each_chunk) {
        for (int64_t c = first; c < last; ++c) {
          if (!run(c, c + 1)) return false;
        }
      } else if (!run(first, last)) {
        return false;
      }
    }
    return false;
  }

  bool run(int64_t first, int64_t last) {
    const int64_t begin = first * grain_;
    const int64_t end = last == chunks_ ? loop_.n : last * grain_;
    int code;
    try {
      poll();  // so that the loop is interrupted between portions
      code = loop_.body(loop_.context, begin, end);
    } catch (...) {  // nothing above a worker could catch it
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
  const uint32_t count_;                   // of shares
  const int64_t portion_;                  // chunks taken at once
  const uint64_t trace_key_;               // 0 unless the loop is recorded
  const bool backwards_;                   // through each share
  std::array<Share, kMostShares> shares_;  // the first count_

  std::atomic<bool> failed_{false};
  std::mutex error_mutex_;
  int64_t error_at_ = 0;  // start of the range whose error is kept
  int error_code_ = 0;
  Ref<ErrorObj> error_;
};

// How many threads a loop on this thread may use; 0: as its thread's setting says.
int32_t threads_for(const ThreadTeam& team, int32_t wanted) {
  if (inside_loop) return 1;
  if (wanted <= 0) wanted = threads_here;
  if (wanted <= 0) wanted = team.thread_count();
  return std::min(wanted, kMostThreads);
}

}  // namespace

int try_parallel(const ParallelLoop& loop) noexcept {
  try {
    if (loop.n <= 0) return 0;
    const int64_t grain = std::max<int64_t>(1, loop.grain);
    const int64_t chunks = loop.n / grain + (loop.n % grain != 0);
    const ThreadTeam& team = thread_team();
    const auto threads =
        static_cast<int32_t>(std::min<int64_t>(threads_for(team, loop.threads), chunks));
    if (threads <= 1 && !loop.each_chunk) return loop.body(loop.context, 0, loop.n);

    StandingTeam* const standing = standing_team;
    const bool backwards =
        standing && standing->next_run_is_odd(reinterpret_cast<const void*>(loop.body));
    Progress progress(loop, grain, chunks, threads, backwards);
    const auto work = [](void* p, int32_t place) { static_cast<Progress*>(p)->work(place); };
    if (threads <= 1) {
      progress.work(0);
    } else if (standing) {
      standing->run(work, &progress);
    } else {
      team.run(work, &progress, threads);
    }
    return progress.finish();
  } catch (...) {
    return set_current_exception();
  }
}

namespace {

// A body whose loops a standing team runs, which its thread leads.
class Led {
 public:
  Led(ParallelBody body, void* context, int64_t n) : body_(body), context_(context), n_(n) {}

  void work(int32_t place) {
    // Only the leader's thread has this variable. It may be given several places, one by one.
    if (leader_ != &standing_team) return team_.stand_by(place);
    if (std::exchange(started_, true)) return;
    team_.lead(place);
    standing_team = &team_;
    try {
      code_ = body_(context_, 0, n_);
    } catch (...) {
      code_ = set_current_exception();
    }
    standing_team = nullptr;
    team_.dismiss();
  }
  int code() const { return code_; }

 private:
  const ParallelBody body_;
  void* const context_;
  const int64_t n_;
  StandingTeam team_;
  StandingTeam** const leader_ = &standing_team;
  bool started_ = false;
  int code_ = 0;
};

}  // namespace

int try_with_team(ParallelBody body, void* context, int64_t n) noexcept {
  try {
    const ThreadTeam& team = thread_team();
    const int32_t threads = standing_team || !team.may_wait ? 1 : threads_for(team, 0);
    if (threads <= 1) return body(context, 0, n);
    Led led(body, context, n);
    team.run([](void* p, int32_t place) { static_cast<Led*>(p)->work(place); }, &led, threads);
    return led.code();
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
