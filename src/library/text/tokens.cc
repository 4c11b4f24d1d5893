// tenon.text.tokens: the tokens of strings, which regular expressions match or separate.
#include <list>

#include "library/argument/argument.h"
#include "library/text/expression.h"
#include "library/text/functions.h"
#include "library/text/parts.h"
#include "support/utf8.h"

namespace tenon::text {
namespace {

using namespace argument;

constexpr std::string_view kName = "tenon.text.tokens";
constexpr int64_t kMostPatterns = 32;  // each of which may take Expression's memory

bool continues_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

// Finds the matches of one expression in one text after the other.
class Search {
 public:
  explicit Search(std::string_view pattern) : expression_(kName, pattern) {}

  void require_length(int64_t i, std::string_view text) const {
    expression_.require_length(i, text);
  }

  void start(std::string_view text) {
    text_ = text;
    at_ = 0;
    at_end_ = false;
  }

  // The next match that is a token. After one that is too short, which may be empty, the search
  // goes on behind its first character.
  template <class IsToken>
  std::optional<std::string_view> next_match(const IsToken& is_token, Ticker& ticker) {
    while (const auto match = find(ticker)) {
      const size_t begin = place_of(*match);
      if (is_token(*match)) {
        at_ = begin + match->size();
        return match;
      }
      skip_character(begin);
    }
    return std::nullopt;
  }

  // What precedes the next match, and at last what follows all of them. An empty match separates
  // like the character after it.
  std::optional<std::string_view> next_between(Ticker& ticker) {
    if (at_end_) return std::nullopt;
    const size_t from = at_;
    const auto match = find(ticker);
    if (!match) {
      at_end_ = true;
      return text_.substr(from);
    }
    const size_t begin = place_of(*match);
    if (match->empty()) {
      skip_character(begin);
    } else {
      at_ = begin + match->size();
    }
    return text_.substr(from, begin - from);
  }

 private:
  std::optional<std::string_view> find(Ticker& ticker) {
    if (at_end_) return std::nullopt;
    ticker.tick(expression_.steps(text_.size() - at_));
    const auto match = expression_.find(text_, at_);
    if (match) {
      require_boundary(place_of(*match));
      require_boundary(place_of(*match) + match->size());
    }
    return match;
  }

  size_t place_of(std::string_view match) const {
    return static_cast<size_t>(match.data() - text_.data());
  }

  // \C matches a byte.
  void require_boundary(size_t at) const {
    if (at < text_.size() && continues_character(text_[at]))
      fail(kName, "a match ends within a character, expected a pattern without \\C");
  }

  void skip_character(size_t at) {
    if (at >= text_.size()) {
      at_end_ = true;
    } else {
      at_ = at + utf8_length(text_.substr(at));
    }
  }

  Expression expression_;
  std::string_view text_;
  size_t at_ = 0;
  bool at_end_ = false;
};

class Tokenizer {
 public:
  Tokenizer(const Strings& patterns, bool separators, int64_t least)
      : separators_(separators), least_(least) {
    for (int64_t i = 0; i < patterns.size(); ++i) {
      poll();
      searches_.emplace_back(patterns[i]);
    }
  }

  // Calls `each` with the tokens of `text`, string i.
  template <class Each>
  void split(int64_t i, std::string_view text, const Each& each) {
    for (const Search& search : searches_) search.require_length(i, text);
    ticker_.tick(text.size());
    const auto is_token = [&](std::string_view token) { return has_characters(token); };
    auto search = searches_.begin();
    search->start(text);
    if (!separators_) {
      while (const auto token = search->next_match(is_token, ticker_)) each(*token);
      return;
    }
    // The first expression splits the text, the next one what it leaves.
    for (;;) {
      const auto piece = search->next_between(ticker_);
      if (!piece) {
        if (search == searches_.begin()) return;
        --search;
      } else if (is_token(*piece)) {
        if (std::next(search) == searches_.end()) {
          each(*piece);
        } else {
          (++search)->start(*piece);
        }
      }
    }
  }

 private:
  // Whether a token has as many characters as one must have.
  bool has_characters(std::string_view token) {
    int64_t count = 0;
    for (const char byte : token) {
      ticker_.tick();
      if (!continues_character(byte) && ++count == least_) return true;
    }
    return false;
  }

  std::list<Search> searches_;
  bool separators_;
  int64_t least_;
  Ticker ticker_;
};

Array<Any> tokens(const Tensor& x, const Tensor& patterns, int64_t separators, int64_t least) {
  const Strings strings = strings_of(kName, "x", x);
  const Strings wanted = strings_of(kName, "patterns", patterns);
  const int64_t most = separators ? kMostPatterns : 1;
  if (wanted.size() < 1 || wanted.size() > most) {
    fail(kName, cat(wanted.size(), " patterns, expected ", most == 1 ? "1" : cat("1 to ", most)));
  }
  if (least < 1) fail(kName, cat("'least' is ", least, ", expected 1 or more"));
  Tokenizer tokenizer(wanted, separators != 0, least);
  Parts parts(kName, x);
  for (int64_t i = 0; i < strings.size(); ++i) {
    tokenizer.split(i, strings[i], [&](std::string_view token) { parts.add(token); });
    parts.finish_string();
  }
  return parts.finish(static_cast<size_t>(strings.text_bytes()));
}

}  // namespace

void register_tokens(Registration& functions) {
  library::add_typed(functions, library::signature(kName), tokens);
}

}  // namespace tenon::text
