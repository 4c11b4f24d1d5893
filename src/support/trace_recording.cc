#include "support/trace_recording.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <new>
#include <utility>

#include "support/error.h"
#include "support/fork.h"
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

void leave(Buffer* buffer) {
  const std::lock_guard lock(buffer->mutex);
  buffer->is_of_thread = false;
}
using Slot = ThreadSlot<Buffer, leave>;

// What threads share. Never destroyed: they may run until the process ends.
class Recorder final : public Sink {
 public:
  void start(bool calls);
  Recording stop();

  void append(Kind kind, bool ends, uint32_t number, uint64_t key,
              std::span<const uint64_t> payload) noexcept override;
  void begin(Kind kind, std::string_view name) noexcept override {
    uint64_t words[32] = {};
    const size_t size = name.copy(reinterpret_cast<char*>(words), sizeof words - 1);
    append(kind, false, 0, 0, {words, (size + 7) / 8});
  }
  void keep(uint64_t key, const void* object, void (*hold)(const void*),
            void (*release)(const void*)) noexcept override;
  uint64_t new_key() noexcept override {
    return last_key_.fetch_add(1, std::memory_order_relaxed) + 1;
  }

 private:
  Buffer* new_buffer();

  std::mutex mutex_;  // of what follows
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<Recording::Kept> kept_;
  int64_t begin_ns_ = 0;
  std::atomic<uint64_t> last_key_{0};
};

constinit std::atomic<Recorder*> recorder_in_use{nullptr};

Recorder& recorder() {
  static std::mutex making;
  const std::lock_guard lock(making);
  Recorder* found = recorder_in_use.load();
  if (!found) {
    // The child of a fork records nothing and leaks this recorder, whose mutexes may be locked.
    static const bool registered = in_forked_children([] {
      sink.store(nullptr);
      recorder_in_use.store(nullptr);
      Slot::exchange(nullptr);
    });
    (void)registered;
    found = new Recorder;
    recorder_in_use.store(found);
  }
  return *found;
}

Buffer* Recorder::new_buffer() {
  auto made = std::make_unique<Buffer>();
  Buffer* buffer = made.get();
  const std::lock_guard lock(mutex_);
  buffers_.push_back(std::move(made));
  Slot::exchange(buffer);
  return buffer;
}

void Recorder::append(Kind kind, bool ends, uint32_t number, uint64_t key,
                      std::span<const uint64_t> payload) noexcept {
  if (recorder_in_use.load(std::memory_order_relaxed) != this) return;  // left by a fork
  try {
    Buffer* buffer = Slot::get();
    if (!buffer) buffer = new_buffer();
    const std::lock_guard lock(buffer->mutex);
    std::vector<uint64_t>& words = buffer->events.words;
    payload = payload.first(std::min(payload.size(), kMostPayload));
    const size_t size = words.size() + 3 + payload.size();
    try {
      if (size > kMostWords) throw std::bad_alloc();
      if (words.capacity() < size) words.reserve(std::max<size_t>(4096, 2 * size));
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

void Recorder::keep(uint64_t key, const void* object, void (*hold)(const void*),
                    void (*release)(const void*)) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    if (std::ranges::find(kept_, key, &Recording::Kept::key) != kept_.end()) return;
    kept_.reserve(kept_.size() + 1);
    hold(object);
    kept_.push_back({key, std::shared_ptr<const void>(object, release)});
  } catch (const std::bad_alloc&) {
  }
}

void Recorder::start(bool calls) {
  const std::lock_guard lock(mutex_);
  if (sink.load()) {
    throw Error(ErrorKind::Usage, "a recording is already in progress")
        .help("end it first: a process makes one recording at a time");
  }
  // A thread that saw the end of the previous recording late may have added to it.
  for (const auto& buffer : buffers_) {
    const std::lock_guard lock_of_buffer(buffer->mutex);
    buffer->events = {};
  }
  begin_ns_ = now_ns();
  records_calls = calls;
  sink.store(this);
}

Recording Recorder::stop() {
  const std::lock_guard lock(mutex_);
  if (!sink.load()) throw Error(ErrorKind::Usage, "no recording is in progress");
  sink.store(nullptr);
  Recording out;
  out.begin_ns = begin_ns_;
  out.end_ns = now_ns();
  out.kept = std::exchange(kept_, {});
  std::erase_if(buffers_, [&](const auto& buffer) {
    const std::lock_guard lock_of_buffer(buffer->mutex);
    Recording::Thread events = std::exchange(buffer->events, {});
    if (!events.words.empty() || events.dropped) out.threads.push_back(std::move(events));
    return !buffer->is_of_thread;
  });
  return out;
}

}  // namespace

void start(bool calls) {
  recorder().start(calls);
}

Recording stop() {
  return recorder().stop();
}

}  // namespace tenon::trace
