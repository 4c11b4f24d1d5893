#include "graph/ir/dtype_set.h"

#include <algorithm>
#include <iterator>

#include "support/text.h"

namespace tenon::graph {
namespace {

// The type of each bit.
constexpr DataType kMembers[] = {boolean, i8, i16, i32, i64, u8, u16, u32, u64, f16, f32, f64};
static_assert(uint32_t{1} << std::size(kMembers) == static_cast<uint32_t>(kAll) + 1);

}  // namespace

DtypeSet only(DataType dtype) {
  const auto* at = std::ranges::find(kMembers, dtype);
  return at == std::end(kMembers) ? DtypeSet{}
                                  : static_cast<DtypeSet>(uint32_t{1} << (at - kMembers));
}

bool contains(DtypeSet set, DataType dtype) {
  return set == kAny || (static_cast<uint32_t>(set) & static_cast<uint32_t>(only(dtype))) != 0;
}

std::vector<DataType> members(DtypeSet set) {
  std::vector<DataType> out;
  for (DataType t : kMembers) {
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
      {kAll, "bool, an integer of 8 to 64 bits, f16, f32 or f64"},
      {kAny, "any element type"}};
  for (const auto& [named, text] : kNamed) {
    if (set == named) return text;
  }
  const std::vector<DataType> types = members(set);
  std::string out;
  for (size_t i = 0; i < types.size(); ++i) {
    out += cat(i == 0 ? "" : i + 1 == types.size() ? " or " : ", ", types[i]);
  }
  return out;
}

}  // namespace tenon::graph
