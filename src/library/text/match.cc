// tenon.text.match: regular expressions, by RE2, whose time is linear in the text and whose memory
// is bounded.
#include <re2/re2.h>

#include <algorithm>
#include <list>
#include <memory>
#include <mutex>

#include "device/device.h"
#include "library/argument/argument.h"
#include "library/text/functions.h"
#include "support/poll.h"

namespace tenon::text {
namespace {

using namespace argument;

constexpr std::string_view kName = "tenon.text.match";
constexpr int64_t kMostMemory = 4 << 20;  // bytes of one expression, compiled
constexpr size_t kKept = 8;               // expressions

// Nothing interrupts RE2, so these bound how late a call stops (docs/security.md). Compiling takes
// up to 0.4 s for this many bytes, all of them Unicode classes.
constexpr size_t kMostPattern = 1 << 14;
// A step is an instruction of the compiled pattern at a byte of the text. Where RE2's automaton
// does not fit in its memory, it simulates the program at 3 to 5 ns a step: up to 0.3 s. Where it
// fits, as for most patterns, a byte takes 1 to 5 ns, and a long text is refused although it would
// be matched in time: RE2 does not tell beforehand. More memory makes this no rarer for patterns
// with exponentially many states, and slower, since states then miss the caches.
constexpr int64_t kMostSteps = int64_t{1} << 26;

using Expression = std::shared_ptr<const re2::RE2>;

Expression compiled(std::string_view pattern) {
  if (pattern.size() > kMostPattern)
    fail(kName, cat("a pattern of ", pattern.size(), " bytes, expected at most ", kMostPattern));
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMostMemory);
  options.set_never_capture(true);  // only whether it matches is asked
  auto made =
      std::make_shared<const re2::RE2>(re2::StringPiece(pattern.data(), pattern.size()), options);
  if (!made->ok()) {
    throw Error(ErrorKind::Runtime, cat(kName, ": the pattern is not a valid RE2 expression"))
        .found(quoted(pattern.substr(0, 200)), made->error())
        .help("https://github.com/google/re2/wiki/Syntax lists what RE2 takes");
  }
  return made;
}

// The last expressions used in this process, the latest first, since a program calls with the same
// few again and again.
Expression expression(std::string_view pattern) {
  static std::mutex mutex;
  static auto* const kept = new std::list<Expression>;
  {
    const std::lock_guard lock(mutex);
    for (auto at = kept->begin(); at != kept->end(); ++at) {
      if ((*at)->pattern() != pattern) continue;
      kept->splice(kept->begin(), *kept, at);
      return kept->front();
    }
  }
  Expression made = compiled(pattern);
  const std::lock_guard lock(mutex);
  kept->push_front(made);
  if (kept->size() > kKept) kept->pop_back();
  return made;
}

// The steps of matching each byte.
int64_t steps_per_byte(const re2::RE2& pattern) {
  return std::max(pattern.ProgramSize(), 1);
}

[[noreturn]] void fail_length(int64_t i, size_t bytes, int64_t steps) {
  throw Error(ErrorKind::Runtime, cat(kName, ": a string is too long for the pattern"))
      .found(cat(bytes, " bytes"), cat("element ", i))
      .expected(cat("at most ", kMostSteps / steps, " bytes"),
                cat(kMostSteps, " steps, of which this pattern takes ", steps, " per byte"))
      .help("use a smaller pattern: repetitions {n} and classes such as \\pL take many steps");
}

Tensor match(const Tensor& x, const Any& pattern) {
  const Strings strings = strings_of(kName, "x", x);
  poll();
  const Expression wanted = expression(string_of(kName, "pattern", pattern));
  poll();
  const int64_t steps = steps_per_byte(*wanted);
  Tensor matches = allocate_tensor(x.shape(), boolean);
  Ticker ticker;
  for (int64_t i = 0; i < strings.size(); ++i) {
    const std::string_view text = strings[i];
    if (text.size() > static_cast<uint64_t>(kMostSteps / steps)) fail_length(i, text.size(), steps);
    ticker.tick(text.size() * static_cast<size_t>(steps));
    matches.data_as<uint8_t>()[i] =
        re2::RE2::FullMatch(re2::StringPiece(text.data(), text.size()), *wanted) ? 1 : 0;
  }
  return matches;
}

}  // namespace

void register_match(Registration& functions) {
  library::add_typed(functions, library::signature(kName), match);
}

}  // namespace tenon::text
