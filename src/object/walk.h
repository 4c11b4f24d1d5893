// The children of a value: the step that equality, hashing, printing and JSON share.
#pragma once

#include <cstdint>
#include <vector>

#include "object/reflect.h"

namespace tenon::detail {

struct Child {
  const Field* field;  // null for elements, keys and values
  Any value;
};

enum class ValueClass : uint8_t {
  Plain,  // in the Any itself, and strings, bytes, shapes, tensors: compared by content
  Array,
  Map,
  Cell,
  Record,    // has a table of fields
  Identity,  // functions, modules, errors: compared by identity
};
ValueClass class_of(const AnyView& value);

// A map's entries in an order independent of insertion if all keys are strings or numbers;
// otherwise in insertion order, with `sorted` false.
std::vector<const MapEntry*> canonical_entries(const MapObj& map, bool& sorted);

// Appends the children of an array, a map (key, value, key, value; canonical order), a cell (its
// tag, its fields) or a record (without fields that have any of the flags in `skip`). Of an array,
// at most `elements`.
void append_children(const AnyView& value, uint8_t skip, std::vector<Child>& out,
                     size_t elements = SIZE_MAX);

// Compares two values of class Plain; floats by bits.
bool plain_equal(const AnyView& a, const AnyView& b);
uint64_t plain_hash(const AnyView& a);

// The same in every process: names of kernels depend on these hashes.
inline uint64_t mix(uint64_t h) {  // the finaliser of splitmix64 (Steele, Lea, Flood 2014)
  h ^= h >> 30;
  h *= 0xbf58476d1ce4e5b9u;
  h ^= h >> 27;
  h *= 0x94d049bb133111ebu;
  return h ^ (h >> 31);
}
inline uint64_t combine(uint64_t h, uint64_t x) {
  return mix((h + 0x9e3779b97f4a7c15u) ^ x);
}
uint64_t hash_text(std::string_view text);  // FNV-1a, 64 bits

}  // namespace tenon::detail
