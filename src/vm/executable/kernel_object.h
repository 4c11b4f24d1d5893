// A kernel object, opened: native code of a file, as trusted as any program.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "object/object.h"
#include "vm/executable/kernel_abi.h"
#include "vm/isa/unit.h"

namespace tenon::vm {

struct KernelObject : Object {
  static constexpr bool kLeaf = true;
  static constexpr int32_t kTypeIndex = TypeIndex::VmBegin + 3;
  static constexpr int32_t kTypeLast = kTypeIndex;

  void* handle = nullptr;  // of dlopen
  const KernelTable* table = nullptr;

  KernelObject() = default;
  KernelObject(const KernelObject&) = delete;
  ~KernelObject();

  // Null when there is none of that name. Names ascend, so this is a binary search.
  KernelEntryFunction find(std::string_view name) const;
  std::vector<std::string> names() const;

  // Opens a closed ELF shared object: a copy in an anonymous file, bound at once, its names kept to
  // itself. Errors: Damaged when it isn't closed or exports no sound table, Unsupported for another
  // ABI version and for CPU features that this machine lacks, by name. `name` is the file's, for
  // errors.
  static Ref<KernelObject> open(std::string_view elf, const std::string& name);
  // The first object of the unit that this machine can run, or that one with only the CPU features
  // `available` could; an Unsupported error that lists what each lacks when there is none. Null
  // when the unit has none.
  static Ref<KernelObject> open_best(const Unit& unit, const std::string& name,
                                     const std::optional<std::vector<std::string>>& available = {});
};

}  // namespace tenon::vm
