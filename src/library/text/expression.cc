#include "library/text/expression.h"

#include <re2/re2.h>

#include <algorithm>
#include <list>
#include <mutex>

#include "library/argument/argument.h"
#include "support/error.h"
#include "support/text.h"

namespace tenon::text {
namespace {

using Compiled = std::shared_ptr<const re2::RE2>;

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

re2::StringPiece piece(std::string_view text) {
  return {text.data(), text.size()};
}

Compiled compile(std::string_view function, std::string_view pattern) {
  if (pattern.size() > kMostPattern) {
    argument::fail(function,
                   cat("a pattern of ", pattern.size(), " bytes, expected at most ", kMostPattern));
  }
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMostMemory);
  options.set_never_capture(true);
  options.set_longest_match(true);
  auto made = std::make_shared<const re2::RE2>(piece(pattern), options);
  if (!made->ok()) {
    throw Error(ErrorKind::Runtime, cat(function, ": the pattern is not a valid RE2 expression"))
        .found(quoted(pattern.substr(0, 200)), made->error())
        .help("https://github.com/google/re2/wiki/Syntax lists what RE2 takes");
  }
  return made;
}

// The last expressions used in this process, the latest first, since a program calls with the same
// few again and again.
Compiled compiled(std::string_view function, std::string_view pattern) {
  static std::mutex mutex;
  static auto* const kept = new std::list<Compiled>;
  {
    const std::lock_guard lock(mutex);
    for (auto at = kept->begin(); at != kept->end(); ++at) {
      if ((*at)->pattern() != pattern) continue;
      kept->splice(kept->begin(), *kept, at);
      return kept->front();
    }
  }
  Compiled made = compile(function, pattern);
  const std::lock_guard lock(mutex);
  kept->push_front(made);
  if (kept->size() > kKept) kept->pop_back();
  return made;
}

}  // namespace

Expression::Expression(std::string_view function, std::string_view pattern)
    : function_(function),
      pattern_(compiled(function, pattern)),
      steps_per_byte_(std::max(pattern_->ProgramSize(), 1)) {}

void Expression::require_length(int64_t i, std::string_view text) const {
  if (text.size() <= static_cast<uint64_t>(kMostSteps / steps_per_byte_)) return;
  throw Error(ErrorKind::Runtime, cat(function_, ": a string is too long for the pattern"))
      .found(cat(text.size(), " bytes"), cat("element ", i))
      .expected(
          cat("at most ", kMostSteps / steps_per_byte_, " bytes"),
          cat(kMostSteps, " steps, of which this pattern takes ", steps_per_byte_, " per byte"))
      .help("use a smaller pattern: repetitions {n} and classes such as \\pL take many steps");
}

bool Expression::matches_all(std::string_view text) const {
  return re2::RE2::FullMatch(piece(text), *pattern_);
}

std::optional<std::string_view> Expression::find(std::string_view text, size_t from) const {
  re2::StringPiece match;
  if (from > text.size() ||
      !pattern_->Match(piece(text), from, text.size(), re2::RE2::UNANCHORED, &match, 1)) {
    return std::nullopt;
  }
  return std::string_view(match.data(), match.size());
}

}  // namespace tenon::text
