// Mutants of bytes: truncation, bit flips, overwritten words, spliced and repeated parts. The same
// seed gives the same mutants.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <random>
#include <string>

namespace tenon::fuzz {

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  // A mutant of `bytes`, sometimes with parts of `other` spliced in.
  std::string mutant(const std::string& bytes, const std::string& other) {
    std::string out = bytes;
    int changes = 1 + static_cast<int>(below(4));
    for (int i = 0; i < changes && !out.empty(); ++i) change(out, other);
    return out;
  }

  uint64_t below(uint64_t n) { return n ? random_() % n : 0; }

 private:
  void change(std::string& s, const std::string& other) {
    size_t at = below(s.size());
    switch (below(9)) {
      case 0:
        s.resize(at);
        break;
      case 1:
      case 2:
      case 3:
        s[at] = static_cast<char>(s[at] ^ (1 << below(8)));
        break;
      case 4:
        s[at] = static_cast<char>(below(256));
        break;
      case 5: {  // a number that is likely to hurt
        static constexpr uint64_t kHurting[] = {
            0,           1,    2,      3,          7,          64,
            255,         0x7f, 0xffff, 0x7fffffff, 0xffffffff, 0x7fffffffffffffff,
            ~uint64_t{0}};
        uint64_t v = kHurting[below(std::size(kHurting))];
        size_t size = size_t{1} << below(4);
        at -= at % size;
        if (at + size <= s.size()) std::memcpy(s.data() + at, &v, size);
        break;
      }
      case 6: {  // a part moves within
        size_t from = below(s.size());
        size_t n = std::min({size_t{below(64) + 1}, s.size() - from, s.size() - at});
        std::memmove(s.data() + at, s.data() + from, n);
        break;
      }
      case 7: {  // a part of the other
        if (other.empty()) break;
        size_t from = below(other.size());
        size_t n = std::min({size_t{below(256) + 1}, other.size() - from, s.size() - at});
        std::memcpy(s.data() + at, other.data() + from, n);
        break;
      }
      default:
        s.insert(at, s.substr(below(s.size()), below(64)));
        break;
    }
  }

  std::mt19937_64 random_;
};

}  // namespace tenon::fuzz
