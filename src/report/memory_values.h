// What the memory formula (memory_formula.h) knows of the values in registers: numbers and
// dimensions as expressions over symbols, and the storages that each value keeps alive.
//
// A storage here stands for those that the code allocates at one place: never more bytes of them
// are alive at once than its size says, an expression whose unknown symbols stand for the largest
// value that they take.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "loop/dim.h"
#include "object/dtype.h"

namespace tenon::report::memory {

using StorageId = uint32_t;
using Storages = std::vector<StorageId>;  // ascending

using Dims = std::vector<std::optional<Dim>>;  // null: not known

// Null: a value of which nothing matters.
struct Value;
using ValueRef = std::shared_ptr<const Value>;

struct Value {
  std::optional<Dim> number;                    // of an integer
  std::optional<Dims> dims;                     // of a tensor or shape
  std::optional<DataType> dtype;                // of a tensor
  std::optional<std::vector<ValueRef>> fields;  // of a tuple or cell; captures
  std::optional<size_t> function;               // of a closure
  Storages own;                                 // what it keeps beside its fields

  // Derived by `made`.
  Storages keeps;     // with those of the fields
  uint32_t size = 1;  // values in it, itself included
};

// The value; deep or wide ones lose their fields, so that values stay small.
ValueRef made(Value value);
ValueRef made_number(Dim number);
ValueRef made_storage(StorageId storage);
const Storages& keeps(const ValueRef& value);
bool same(const ValueRef& a, const ValueRef& b);
// The value with every storage that it keeps replaced by those that `to` says.
ValueRef with_storages(const ValueRef& value, const std::function<Storages(StorageId)>& to);
void add(Storages* to, const Storages& more);

// The analysis ends without a formula.
struct Unanalysed {};

// The unknown symbols, in order of their first use.
class Unknowns {
 public:
  // The symbol for what `key` names. Such a symbol stands for the largest value of several.
  Dim symbol(const std::string& key, const std::string& meaning);
  // A symbol that a type names.
  Dim size(std::string_view name);
  // The size, if it grows with every symbol that stands for the largest of several values, and
  // otherwise a symbol.
  Dim bounded(const Dim& size, const std::string& key, const std::string& meaning);
  std::string meaning(std::string_view symbol) const;  // empty for a symbol of a type

 private:
  bool grows(const Dim& d) const;
  bool has_unknown(const Dim& d) const;

  std::map<std::string, std::string, std::less<>> meanings_;
  std::set<std::string, std::less<>> sizes_;
};

// The storages of one analysis of a function.
class StorageTable {
 public:
  struct Entry {
    Dim bytes = 0;
    bool held = false;                            // a caller keeps it, who counts it
    std::optional<uint32_t> join = std::nullopt;  // made where paths meet there
    // If each turn of a loop may add to it: what it is before, and what a turn adds.
    std::optional<Dim> base = std::nullopt, each = std::nullopt;
    int grown = 0;
  };
  // The same storage for the same place, with other bytes if its sizes have changed.
  StorageId at(uint32_t offset, uint32_t index, const Dim& bytes);
  StorageId add(Entry entry);
  Entry& operator[](StorageId id) { return entries_[id]; }
  const Entry& operator[](StorageId id) const { return entries_[id]; }
  size_t size() const { return entries_.size(); }
  // The bytes of those that no caller holds.
  Dim total(const Storages& storages) const;
  // How often a storage's bytes have changed: then what is known at any point may have.
  int growths() const { return growths_; }
  void count_growth() { ++growths_; }

 private:
  int growths_ = 0;
  std::vector<Entry> entries_;
  std::map<std::pair<uint32_t, uint32_t>, StorageId> places_;
};

// The registers of a frame at one point of its code.
using State = std::vector<ValueRef>;
Storages live(const State& state);

// Where paths of code meet.
struct JoinContext {
  StorageTable* storages;
  Unknowns* unknowns;
  uint32_t offset;      // of the code, which makes the names below unique
  std::string where;    // "@f.L12", in symbols
  std::string counts;   // "turns(@f.L12)": how often a storage there may grow
  std::string counted;  // and what that counts
};
// Joins `more` into `state`; returns whether that changed it or the size of a storage.
bool join(const JoinContext& context, State* state, const State& more);

}  // namespace tenon::report::memory
