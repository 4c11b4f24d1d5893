#include "support/trace.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <new>
#include <utility>

#include "support/error.h"
#include "support/thread_slot.h"

namespace tenon::trace {

namespace {

constexpr size_t kMostWords = size_t{16} << 20;  // per thread
constexpr size_t kMostPayload = 0xffff;

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// A thread's events. The thread appends to it, and `stop` empties it; both lock it.
struct Buffer {
  std::mutex mutex;
  Recording::Thread events;
  bool is_of_thread = true;  // which still runs
};

// Everything that threads share. Never destroyed: threads may run until the process ends.
struct Shared {
  std::mutex mutex;
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<Recording::Kept> kept;
  int64_t begin_ns = 0;
};

constinit std::atomic<Shared*> shared_state{nullptr};

void leave(Buffer* buffer) {
  const std::lock_guard lock(buffer->mutex);
  buffer->is_of_thread = false;
}
using Slot = ThreadSlot<Buffer, leave>;

Shared& shared() {
  static std::mutex making;
  const std::lock_guard lock(making);
  Shared* found = shared_state.load();
  if (!found) {
    // The child of a fork records nothing and leaks this recorder, whose mutexes may be locked.
    static const int registered = pthread_atfork(nullptr, nullptr, [] {
      recorder.mode.store(kOff);
      shared_state.store(nullptr);
      Slot::exchange(nullptr);
    });
    (void)registered;
    found = new Shared;
    shared_state.store(found);
  }
  return *found;
}

Buffer* new_buffer() {
  Shared& all = *shared_state.load();
  auto made = std::make_unique<Buffer>();
  Buffer* buffer = made.get();
  const std::lock_guard lock(all.mutex);
  all.buffers.push_back(std::move(made));
  Slot::exchange(buffer);
  return buffer;
}

void append(Kind kind, bool ends, uint32_t number, uint64_t key,
            std::span<const uint64_t> payload) noexcept {
  try {
    Buffer* buffer = Slot::get();
    if (!buffer) buffer = new_buffer();
    const std::lock_guard lock(buffer->mutex);
    std::vector<uint64_t>& words = buffer->events.words;
    payload = payload.first(std::min(payload.size(), kMostPayload));
    try {
      if (words.size() + 3 + payload.size() > kMostWords) throw std::bad_alloc();
      if (words.capacity() < words.size() + 3 + payload.size()) {
        words.reserve(std::max<size_t>(4096, 2 * words.capacity() + kMostPayload));
      }
    } catch (const std::bad_alloc&) {
      ++buffer->events.dropped;
      return;
    }
    words.push_back(uint64_t{payload.size()} << 48 | uint64_t{ends} << 40 |
                    uint64_t{static_cast<uint8_t>(kind)} << 32 | number);
    words.push_back(static_cast<uint64_t>(now_ns()));
    words.push_back(key);
    words.insert(words.end(), payload.begin(), payload.end());
  } catch (const std::exception&) {  // no memory for the thread's buffer
  }
}

void start_recording(bool calls) {
  Shared& all = shared();
  const std::lock_guard lock(all.mutex);
  if (is_on()) {
    throw Error(ErrorKind::Usage, "a recording is already in progress")
        .help("end it first: a process makes one recording at a time");
  }
  // A thread that saw the end of the previous recording late may have added to it.
  for (const auto& buffer : all.buffers) {
    const std::lock_guard lock_of_buffer(buffer->mutex);
    buffer->events = {};
  }
  all.begin_ns = now_ns();
  recorder.mode.store(calls ? kOn | kCalls : kOn);
}

Recording stop_recording() {
  Shared& all = shared();
  const std::lock_guard lock(all.mutex);
  if (!is_on()) throw Error(ErrorKind::Usage, "no recording is in progress");
  recorder.mode.store(kOff);
  Recording out;
  out.begin_ns = all.begin_ns;
  out.end_ns = now_ns();
  out.kept = std::exchange(all.kept, {});
  const auto take = [&](Buffer* buffer) {
    const std::lock_guard lock_of_buffer(buffer->mutex);
    Recording::Thread events = std::exchange(buffer->events, {});
    if (!events.words.empty() || events.dropped) out.threads.push_back(std::move(events));
    return !buffer->is_of_thread;
  };
  std::erase_if(all.buffers, [&](const auto& buffer) { return take(buffer.get()); });
  return out;
}

}  // namespace

constinit Recorder recorder{kOff, append, start_recording, stop_recording};

uint64_t new_key() noexcept {
  static constinit std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

bool is_kept(uint64_t key) noexcept {
  Shared& all = *shared_state.load();
  const std::lock_guard lock(all.mutex);
  return std::ranges::find(all.kept, key, &Recording::Kept::key) != all.kept.end();
}

void keep(uint64_t key, std::shared_ptr<const void> object) noexcept {
  Shared& all = *shared_state.load();
  const std::lock_guard lock(all.mutex);
  try {
    all.kept.push_back({key, std::move(object)});
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace tenon::trace
