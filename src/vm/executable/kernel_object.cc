#include "vm/executable/kernel_object.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>

#include "support/failures.h"
#include "support/memory_file.h"
#include "support/text.h"
#include "vm/executable/code_hash.h"
#include "vm/executable/cpu_features.h"
#include "vm/executable/elf_check.h"
#include "vm/executable/file_format.h"
#include "vm/executable/kernel_choice.h"
#include "vm/executable/kernel_error.h"
#include "vm/executable/verify.h"

namespace tenon::vm {
namespace {

// A path to the descriptor that no other open object was opened by: the dynamic loader returns the
// same object for a known path, and descriptor numbers are reused. Each bit of a counter is written
// as "//" or "/./", which name the same folder. A process may have several copies of this code, in
// the runtime's library and in the compiler's; each counts on from its counter's address.
std::string unique_path(int fd) {
  static std::atomic<uint64_t> next{reinterpret_cast<uintptr_t>(&next) << 16};
  std::string path = "/proc/self/fd/";
  for (uint64_t n = next++; n != 0; n >>= 1) path += n & 1 ? "./" : "/";
  return cat(path, fd);
}

}  // namespace

KernelObject::~KernelObject() {
  if (handle) dlclose(handle);
}

KernelEntryFunction KernelObject::find(std::string_view name) const {
  uint32_t low = 0, high = table->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    int order = name.compare(table->entries[middle].name);
    if (order == 0) return table->entries[middle].function;
    (order < 0 ? high : low) = order < 0 ? middle : middle + 1;
  }
  return nullptr;
}

std::vector<std::string> KernelObject::names() const {
  std::vector<std::string> out;
  for (uint32_t i = 0; i < table->count; ++i) out.emplace_back(table->entries[i].name);
  return out;
}

namespace {

Error damaged_code(const std::string& name, std::string_view found, std::string_view expected) {
  return failure(ErrorKind::Damaged,
                 cat(name, ": its native code can't be loaded; nothing was run"), found, expected)
      .help(kDamagedHelp);
}

}  // namespace

const CodeTable* KernelObject::code_of(const Unit& unit, const std::string& name) const {
  if (!code || code->abi_version != kCodeAbiVersion) return nullptr;
  if (code->count != unit.functions.size() || code->code_hash != code_hash(unit.functions)) {
    throw damaged_code(name, "compiled code of other bytecode", "that of the file's bytecode");
  }
  return code;
}

Ref<KernelObject> KernelObject::open(std::string_view elf, const std::string& name,
                                     int descriptor) {
  ElfModel parts;
  if (auto why = why_not_closed(elf, &parts)) {
    throw verification_error(name, Rule::KernelClosed, "kernel object", *why, kClosedObject);
  }
  auto object = make<KernelObject>();
  std::optional<MemoryFile> copy;
  if (descriptor < 0) descriptor = copy.emplace("tenon-kernels", elf).descriptor();
  errno = 0;
  object->handle = dlopen(unique_path(descriptor).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!object->handle && errno == ENOMEM) throw std::bad_alloc();
  if (!object->handle) {
    // The object is closed, so that the loader finds nothing wrong with it: the system refused it
    // memory or a descriptor.
    const char* reason = dlerror();
    throw failure(ErrorKind::Runtime, cat(name, ": its native code can't be loaded"),
                  reason ? reason : "no reason");
  }
  link_map* loaded = nullptr;
  if (!parts.kernels || dlinfo(object->handle, RTLD_DI_LINKMAP, static_cast<void*>(&loaded)) != 0) {
    throw damaged_code(name, "no kernel table", cat("the symbol ", kKernelTableSymbol));
  }
  object->table = reinterpret_cast<const KernelTable*>(loaded->l_addr + parts.kernels);
  if (parts.code) object->code = reinterpret_cast<const CodeTable*>(loaded->l_addr + parts.code);
  const KernelTable* table = object->table;
  if (table->abi_version != kKernelAbiVersion) {
    throw abi_error(name, "native code for another kernel ABI", table->abi_version,
                    kKernelAbiVersion);
  }
  CpuFeatureSet needed;
  std::memcpy(needed.data(), table->cpu_features, sizeof table->cpu_features);
  auto missing = missing_cpu_features(cpu_feature_names(needed));
  if (!missing.empty()) {
    throw failure(ErrorKind::Unsupported, cat(name, " needs CPU features that this machine lacks"),
                  cat("no ", join(missing, ", ")))
        .help(
            "compile it for this machine, or for a CPU with fewer features: `tenon targets` lists "
            "them");
  }
  return object;
}

Ref<KernelObject> KernelObject::open_best(const Unit& unit, const std::string& name,
                                          const std::optional<std::vector<std::string>>& available,
                                          const FileBytes* file) {
  if (unit.kernels.empty()) return {};
  std::vector<std::string> reasons;
  if (const KernelTarget* best = choose_kernels(unit, available, &reasons)) {
    return unit.shared_code ? open(file->view(), name, file->descriptor)
                            : open(best->host_object()->bytes, name);
  }
  throw failure(ErrorKind::Unsupported, cat(name, " has no native code that this machine can run"),
                join(reasons, "; "),
                cat("code for ", kHostArchitecture, " with features of this machine"))
      .help(!unit.computes.empty()
                ? "load libtenon_compiler, which can compile the file's computes, or compile the "
                  "file for this machine"
                : "compile it for this machine, or with --keep-computes (keep_computes=True in "
                  "Python), so that it is compiled for this machine when it is loaded");
}

}  // namespace tenon::vm
