// A set of symbols' names that keeps the order in which they were added.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace tenon {

class SymbolSet {
 public:
  // Adding and finding take constant time: types may have thousands of symbols, but few have more
  // than a handful, for which a search is faster than an index.
  void add(std::string_view name) {
    if (contains(name)) return;
    names_.emplace_back(name);
    if (names_.size() == kSearched + 1) {
      index_.insert(names_.begin(), names_.end());
    } else if (names_.size() > kSearched) {
      index_.insert(names_.back());
    }
  }
  bool contains(std::string_view name) const {
    if (names_.size() > kSearched) return index_.contains(std::string(name));
    return std::find(names_.begin(), names_.end(), name) != names_.end();
  }

  const std::vector<std::string>& names() const { return names_; }
  bool empty() const { return names_.empty(); }
  size_t size() const { return names_.size(); }
  const std::string& operator[](size_t i) const { return names_[i]; }
  auto begin() const { return names_.begin(); }
  auto end() const { return names_.end(); }

 private:
  static constexpr size_t kSearched = 16;

  std::vector<std::string> names_;
  std::unordered_set<std::string> index_;  // all names, if there are more than kSearched
};

}  // namespace tenon
