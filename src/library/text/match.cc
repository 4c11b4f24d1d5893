// tenon.text.match: regular expressions, by RE2, whose time is linear in the text and whose memory
// is bounded.
#include <re2/re2.h>

#include <cstring>
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
constexpr size_t kMostPattern = 1 << 16;  // bytes
constexpr size_t kKept = 8;               // expressions

using Expression = std::shared_ptr<const re2::RE2>;

Expression compiled(std::string_view pattern) {
  if (pattern.size() > kMostPattern)
    fail(kName, cat("a pattern of ", pattern.size(), " bytes, expected at most ", kMostPattern));
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMostMemory);
  auto made =
      std::make_shared<const re2::RE2>(re2::StringPiece(pattern.data(), pattern.size()), options);
  if (!made->ok()) {
    throw Error(ErrorKind::Runtime, cat(kName, ": the pattern is no regular expression of RE2"))
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

Tensor match(const Tensor& x, const Any& pattern) {
  const Strings strings = strings_of(kName, "x", x);
  const Expression wanted = expression(string_of(kName, "pattern", pattern));
  Tensor matches = allocate_tensor(x.shape(), boolean);
  Ticker ticker;
  for (int64_t i = 0; i < strings.size(); ++i) {
    const std::string_view text = strings[i];
    ticker.tick(text.size() * 16);  // it takes longer than to copy
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
