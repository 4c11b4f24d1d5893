// Mutants of textual programs: changed numbers, names and operators, sometimes a repeated or
// dropped part. The same seed gives the same mutants.
#pragma once

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string>
#include <vector>

#include "mutate.h"

namespace tenon::fuzz {

// Splits into words, numbers with their sign, strings and punctuation; blanks belong to the token
// before them.
inline std::vector<std::string> tokens_of(const std::string& text) {
  std::vector<std::string> out;
  auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
  };
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    if (is_word(text[at]) || text[at] == '%' || text[at] == '@') {
      while (end < text.size() && is_word(text[end])) ++end;
    }
    while (end < text.size() && std::isspace(static_cast<unsigned char>(text[end]))) ++end;
    out.push_back(text.substr(at, end - at));
    at = end;
  }
  return out;
}

class TextMutator {
 public:
  explicit TextMutator(uint64_t seed) : m_(seed) {}

  std::string mutant(const std::string& text) {
    std::vector<std::string> tokens = tokens_of(text);
    for (uint64_t changes = 1 + m_.below(2); changes-- > 0 && !tokens.empty();) change(tokens);
    std::string out;
    for (const std::string& t : tokens) out += t;
    return out;
  }

 private:
  enum Class : uint8_t { kNumber, kVariable, kSign, kSymbol, kElementType, kOther };
  static constexpr const char* kElementTypes[] = {"bool", "i8",  "i32",  "i64", "u8",   "u64",
                                                  "f16",  "f32", "bf16", "f64", "void", "i4"};
  static Class class_of(const std::string& token) {
    const auto first = static_cast<unsigned char>(token[0]);
    if (std::isdigit(first)) return kNumber;
    if (token[0] == '%' && token.size() > 1) return kVariable;
    const std::string word = token.substr(0, token.find_last_not_of(" \n\t") + 1);
    if (word == "+" || word == "-" || word == "*" || word == "<") return kSign;
    if (std::ranges::find(kElementTypes, word) != std::end(kElementTypes)) return kElementType;
    return std::isalpha(first) && word.size() == 1 ? kSymbol : kOther;
  }
  static std::string with_blanks_of(const std::string& word, const std::string& token) {
    return word + token.substr(token.find_last_not_of(" \n\t") + 1);
  }

  // The next token of that class, from `at` on.
  static size_t place(const std::vector<std::string>& tokens, size_t at, Class c) {
    for (size_t tries = 0; tries < tokens.size() && class_of(tokens[at]) != c; ++tries) {
      at = (at + 1) % tokens.size();
    }
    return at;
  }

  // Most changes keep the program parsable: they replace a token by another of its class, and a
  // variable by a nearby one.
  void change(std::vector<std::string>& tokens) {
    const size_t any = m_.below(tokens.size());
    static constexpr Class kClasses[] = {kNumber,   kNumber, kNumber, kVariable,
                                         kVariable, kSign,   kSymbol, kElementType};
    if (m_.below(12) == 0) return break_up(tokens, any);
    const Class c = kClasses[m_.below(std::size(kClasses))];
    std::string& token = tokens[place(tokens, any, c)];
    if (c == kNumber) {
      static const char* const kNumbers[] = {"0",
                                             "1",
                                             "2",
                                             "3",
                                             "5",
                                             "7",
                                             "8",
                                             "9",
                                             "15",
                                             "16",
                                             "17",
                                             "100",
                                             "4095",
                                             "1000000007",
                                             "2147483648",
                                             "4294967296",
                                             "4611686018427387904",
                                             "9223372036854775807",
                                             "-1",
                                             "-2",
                                             "-8",
                                             "-2147483648",
                                             "-4294967296",
                                             "-4611686018427387904",
                                             "-9223372036854775808"};
      token = with_blanks_of(kNumbers[m_.below(std::size(kNumbers))], token);
    } else if (c == kSign) {
      static const char* const kSigns[] = {"+", "-", "*", "<<", ">>", "&", "^"};
      token = with_blanks_of(kSigns[m_.below(std::size(kSigns))], token);
    } else if (c == kElementType) {
      token = with_blanks_of(kElementTypes[m_.below(std::size(kElementTypes))], token);
    } else if (c == kVariable && m_.below(6) == 0) {  // an operand of another kind
      static const char* const kOperands[] = {
          "()",       "3",           "true",           "0.5",
          "\"text\"", "shape[2, 3]", "tensor[f32]{1}", "tensor[1; bool]{7}"};
      token = with_blanks_of(kOperands[m_.below(std::size(kOperands))], token);
    } else {
      const std::string& other = tokens[place(tokens, (any + 1 + m_.below(60)) % tokens.size(), c)];
      token = with_blanks_of(other.substr(0, other.find_last_not_of(" \n\t") + 1), token);
    }
  }

  void break_up(std::vector<std::string>& tokens, size_t at) {
    const auto from = tokens.begin() + static_cast<std::ptrdiff_t>(at);
    if (m_.below(2)) {
      tokens.erase(from);
      return;
    }
    const size_t n = std::min<size_t>(1 + m_.below(12), tokens.size() - at);
    const std::vector<std::string> part(from, from + static_cast<std::ptrdiff_t>(n));
    tokens.insert(tokens.begin() + static_cast<std::ptrdiff_t>(m_.below(tokens.size())),
                  part.begin(), part.end());
  }

  Mutator m_;
};

}  // namespace tenon::fuzz
