// An open kernel object: native code from a file, as trusted as any program.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "object/object.h"
#include "vm/executable/code_abi.h"
#include "vm/executable/kernel_abi.h"
#include "vm/executable/mapped_file.h"
#include "vm/isa/unit.h"

namespace tenon::vm {

struct KernelObject : Object {
  static constexpr bool kLeaf = true;
  static constexpr int32_t kTypeIndex = TypeIndex::VmKernelObject;
  static constexpr int32_t kTypeLast = kTypeIndex;

  void* handle = nullptr;  // of dlopen
  const KernelTable* table = nullptr;
  const CodeTable* code = nullptr;  // of compiled bytecode, if there is any for this runtime

  KernelObject() = default;
  KernelObject(const KernelObject&) = delete;
  ~KernelObject();

  // Null if there is none of that name. A binary search.
  KernelEntryFunction find(std::string_view name) const;
  std::vector<std::string> names() const;

  // The compiled code of the unit's functions; null if there is none for this runtime. A Damaged
  // error if it is that of other bytecode.
  const CodeTable* code_of(const Unit& unit, const std::string& name) const;

  // Opens a closed ELF shared object from a copy in an anonymous file, binding all symbols at once
  // and keeping its names private. Errors: Damaged if it isn't closed or exports no valid table;
  // Unsupported for another ABI version and, by name, for CPU features that this machine lacks.
  // `name` is the file's, for errors. With a descriptor of the same bytes, that file is opened
  // instead of a copy.
  static Ref<KernelObject> open(std::string_view elf, const std::string& name, int descriptor = -1);
  // The unit's first object that this machine can run, or could run if it had only the CPU features
  // `available`. Null if the unit has no objects. If none fits, an Unsupported error lists the
  // reasons. `file` is what the unit was read from; only that of a shared object is used.
  static Ref<KernelObject> open_best(const Unit& unit, const std::string& name,
                                     const std::optional<std::vector<std::string>>& available = {},
                                     const FileBytes* file = nullptr);
};

}  // namespace tenon::vm
