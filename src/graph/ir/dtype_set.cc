#include "graph/ir/dtype_set.h"

#include <utility>

#include "support/text.h"

namespace tenon::graph {
namespace {

bool contains_all(DtypeSet set, DtypeSet part) {
  return (static_cast<uint32_t>(part) & ~static_cast<uint32_t>(set)) == 0;
}

}  // namespace

bool contains(DtypeSet set, DataType dtype) {
  return set == kAny || (static_cast<uint32_t>(set) & static_cast<uint32_t>(only(dtype))) != 0;
}

std::vector<DataType> members(DtypeSet set) {
  std::vector<DataType> out;
  for (DataType t : kDtypes) {
    if (contains(set, t)) out.push_back(t);
  }
  return out;
}

std::string describe(DtypeSet set) {
  constexpr std::pair<DtypeSet, const char*> kNamed[] = {
      {kSigned, "a signed integer"},
      {kUnsigned, "an unsigned integer"},
      {kFloats, "a float"},
      {kInts, "an integer"},
      {kNumbers, "a number"},
      {kInts | kBools, "an integer or bool"},
      {kOrdered, "bool or a number"},
      {kAll, "any element type but c64, c128 and string"},
      {kAll | kStrings, "any element type but c64 and c128"},
      {kElements, "any element type but string"},
      {kData, "any element type"},
      {kAny, "any type"}};
  for (const auto& [named, text] : kNamed) {
    if (set == named) return text;
  }
  std::vector<std::string> names;
  for (DataType t : members(set)) {
    if (!contains(kNarrow, t) || !contains_all(set, kNarrow)) names.push_back(to_text(t));
  }
  if (contains_all(set, kNarrow)) {
    names.emplace_back("an integer of 2 or 4 bits");
    names.emplace_back("a float of 4 or 8 bits");
  }
  std::string out;
  for (size_t i = 0; i < names.size(); ++i) {
    out += cat(i == 0 ? "" : i + 1 == names.size() ? " or " : ", ", names[i]);
  }
  return out;
}

}  // namespace tenon::graph
