#include "vm/executable/elf_check.h"

#include <dlfcn.h>
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "support/error_testing.h"
#include "support/memory_file.h"
#include "support/text.h"
#include "vm/executable/cpu_features.h"
#include "vm/executable/kernel_abi.h"
#include "vm/executable/kernel_choice.h"
#include "vm/executable/kernel_object.h"

namespace tenon::vm {
namespace {

// Any ELF library of this process has imports, needs libraries and has constructors.
std::string a_real_library() {
  for (const char* path :
       {"/lib/x86_64-linux-gnu/libm.so.6", "/usr/lib/libm.so.6", "/lib64/libm.so.6",
        "/lib/aarch64-linux-gnu/libm.so.6", "/lib/riscv64-linux-gnu/libm.so.6"}) {
    std::ifstream in(path, std::ios::binary);
    if (in) return std::string{std::istreambuf_iterator<char>(in), {}};
  }
  return {};
}

TEST(ElfCheck, RefusesLibrariesThatImport) {
  std::string elf = a_real_library();
  if (elf.empty()) GTEST_SKIP() << "no C library where it usually lies";
  EXPECT_TRUE(why_not_closed(elf).has_value());
  EXPECT_THROW(KernelObject::open(elf, "test"), Error);
}

TEST(ElfCheck, ReadsWithinItsBytesWhateverTheyAre) {
  std::string elf = a_real_library();
  if (elf.empty()) GTEST_SKIP();
  elf.resize(std::min<size_t>(elf.size(), 20000));
  uint64_t random = 7;
  for (int i = 0; i < 3000; ++i) {
    std::string mutant = elf;
    for (int k = 0; k < 8; ++k) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      mutant[(random >> 20) % 1200] = static_cast<char>(random >> 56);
    }
    why_not_closed(mutant);
  }
  EXPECT_TRUE(why_not_closed("").has_value());
}

// A closed kernel object with a tripwire (test_tripwire.c), and the places of its parts.
class Object {
 public:
  Object() {
    std::ifstream in(TENON_TEST_TRIPWIRE, std::ios::binary);
    elf = {std::istreambuf_iterator<char>(in), {}};
    for (size_t i = 0; i < header()->e_phnum; ++i) {
      if (segment(i)->p_type == PT_DYNAMIC) dynamic = segment(i)->p_offset;
    }
    for (Elf64_Rela* r = relocations();
         r < relocations() + entry(DT_RELASZ)->d_un.d_val / sizeof *r; ++r) {
      // The pointers to the kernel's entry and to the table's last member.
      const auto addend = static_cast<uint64_t>(r->r_addend);
      if (is(addend, PF_X)) tripwire = addend;
      if (r->r_offset == symbol()->st_value + symbol()->st_size - 8) room = addend;
    }
  }

  Elf64_Ehdr* header() { return at<Elf64_Ehdr>(0); }
  Elf64_Phdr* segment(size_t i) { return at<Elf64_Phdr>(header()->e_phoff) + i; }
  Elf64_Dyn* entry(Elf64_Sxword tag) {
    Elf64_Dyn* d = at<Elf64_Dyn>(dynamic);
    while (d->d_tag != tag) ++d;
    return d;
  }
  Elf64_Sym* symbol() { return in_memory<Elf64_Sym>(entry(DT_SYMTAB)->d_un.d_ptr) + 1; }
  Elf64_Rela* relocations() { return in_memory<Elf64_Rela>(entry(DT_RELA)->d_un.d_ptr); }
  template <class T>
  T* in_memory(uint64_t address) {
    for (size_t i = 0; i < header()->e_phnum; ++i) {
      const Elf64_Phdr& p = *segment(i);
      if (p.p_type == PT_LOAD && address >= p.p_vaddr && address < p.p_vaddr + p.p_filesz) {
        return at<T>(p.p_offset + address - p.p_vaddr);
      }
    }
    return nullptr;
  }
  std::string refusal() const { return why_not_closed(elf).value_or("none"); }

  std::string elf;
  uint64_t dynamic = 0;             // in the file
  uint64_t tripwire = 0, room = 0;  // in memory

 private:
  template <class T>
  T* at(uint64_t offset) {
    return reinterpret_cast<T*>(elf.data() + offset);
  }
  bool is(uint64_t address, uint32_t flag) {
    for (size_t i = 0; i < header()->e_phnum; ++i) {
      const Elf64_Phdr& p = *segment(i);
      if (p.p_type == PT_LOAD && (p.p_flags & flag) && address >= p.p_vaddr &&
          address < p.p_vaddr + p.p_memsz) {
        return true;
      }
    }
    return false;
  }
};

// Opens the object in a child process, without a check; returns the child's status.
int status_of_opening(const std::string& elf) {
  const pid_t child = fork();
  if (child == 0) {
    const MemoryFile file("test", elf);
    dlopen(file.path().c_str(), RTLD_NOW | RTLD_LOCAL);
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}
bool tripped(int status) {
  return WIFEXITED(status) && WEXITSTATUS(status) == 99;
}

TEST(ElfCheck, TakesWhatTheCompilerMakes) {
  Object object;
  ASSERT_TRUE(object.tripwire && object.room);
  EXPECT_EQ(object.refusal(), "none");
  EXPECT_THAT(KernelObject::open(object.elf, "test")->names(), testing::ElementsAre("tripwire"));
}

// So that a failure of the dynamic loader is the system's, and not called damage.
TEST(ElfCheck, TakesNothingThatTheLoaderRefuses) {
  Object object;
  const size_t headers = object.header()->e_phoff + object.header()->e_phnum * sizeof(Elf64_Phdr);
  int taken = 0;
  for (size_t i = 0; i < headers; ++i) {
    // Large segments may need more memory than there is.
    const size_t in_segment = (i - object.header()->e_phoff) % sizeof(Elf64_Phdr);
    if (i >= object.header()->e_phoff && in_segment / 8 == offsetof(Elf64_Phdr, p_memsz) / 8) {
      continue;
    }
    for (const int change : {1, 2, 4, 8, 16, 32, 64, 128}) {
      std::string mutant = object.elf;
      mutant[i] = static_cast<char>(mutant[i] ^ change);
      if (why_not_closed(mutant)) continue;
      ++taken;
      const MemoryFile file("test", mutant);
      void* const handle = dlopen(file.path().c_str(), RTLD_NOW | RTLD_LOCAL);
      ASSERT_TRUE(handle) << "byte " << i << ", bit " << change << ": " << dlerror();
      dlclose(handle);
    }
  }
  EXPECT_GT(taken, 0);
}

// As when code fills its last page: the range to be made read-only begins where the code ends.
TEST(ElfCheck, TakesDataRightBehindCode) {
  Object object;
  Elf64_Phdr *code = nullptr, *data = nullptr, *relro = nullptr;
  for (size_t i = 0; i < object.header()->e_phnum; ++i) {
    Elf64_Phdr* p = object.segment(i);
    if (p->p_type == PT_GNU_RELRO) relro = p;
    if (p->p_type != PT_LOAD || data != nullptr) continue;
    (p->p_flags & PF_W ? data : code) = p;
  }
  ASSERT_TRUE(code && data && relro && relro->p_vaddr == data->p_vaddr);
  const uint64_t into_page = data->p_vaddr % 4096;
  for (Elf64_Phdr* p : {data, relro}) {
    p->p_vaddr -= into_page;
    p->p_offset -= into_page;
    p->p_filesz += into_page;
    p->p_memsz += into_page;
  }
  code->p_memsz = data->p_vaddr - code->p_vaddr;
  EXPECT_EQ(object.refusal(), "none");
}

// After an empty segment at 0, the loader would map others over those that were checked.
TEST(ElfCheck, RefusesEmptySegments) {
  Object object;
  for (size_t i = 0; i < object.header()->e_phnum; ++i) {
    Elf64_Phdr* p = object.segment(i);
    if (p->p_type != PT_GNU_STACK) continue;
    *p = Elf64_Phdr{};
    p->p_type = PT_LOAD;
    p->p_flags = PF_R;
  }
  EXPECT_EQ(object.refusal(), "an empty segment");
}

TEST(ElfCheck, RefusesSegmentsThatDoNotAscend) {
  Object object;
  std::vector<Elf64_Phdr*> loads;
  for (size_t i = 0; i < object.header()->e_phnum; ++i) {
    if (object.segment(i)->p_type == PT_LOAD) loads.push_back(object.segment(i));
  }
  ASSERT_GE(loads.size(), 2u);
  std::swap(*loads[0], *loads[1]);
  EXPECT_EQ(object.refusal(), "segments that overlap in memory");
}

#if defined(__x86_64__)
// A relocation table in writable data, whose first relocation makes the second call the tripwire.
TEST(ElfCheck, RefusesRelocationsThatChangeRelocations) {
  Object object;
  object.symbol()->st_shndx = SHN_ABS;
  object.symbol()->st_value = 0;
  auto* table = object.in_memory<Elf64_Rela>(object.room);
  table[0] = {object.room + sizeof *table + offsetof(Elf64_Rela, r_info),
              ELF64_R_INFO(1, R_X86_64_64), R_X86_64_IRELATIVE};
  table[1] = {object.room + 2 * sizeof *table, ELF64_R_INFO(0, R_X86_64_RELATIVE),
              static_cast<Elf64_Sxword>(object.tripwire)};
  object.entry(DT_RELA)->d_un.d_ptr = object.room;
  object.entry(DT_RELASZ)->d_un.d_val = 2 * sizeof *table;
  object.entry(DT_RELACOUNT)->d_un.d_val = 0;
  ASSERT_TRUE(tripped(status_of_opening(object.elf)));
  EXPECT_EQ(object.refusal(), "relocations outside of its read-only memory");
}
#endif

TEST(ElfCheck, RefusesTablesThatCanChange) {
  for (const Elf64_Sxword tag : {DT_SYMTAB, DT_STRTAB, DT_GNU_HASH, DT_RELA}) {
    Object object;
    object.entry(tag)->d_un.d_ptr = object.room;
    EXPECT_THAT(object.refusal(), testing::HasSubstr("read-only memory")) << tag;
  }
}

TEST(ElfCheck, RefusesRelocationsOfTheDynamicSection) {
  Object object;
  for (size_t i = 0; i < object.header()->e_phnum; ++i) {
    if (object.segment(i)->p_type != PT_DYNAMIC) continue;
    object.relocations()[0].r_offset = object.segment(i)->p_vaddr + 8;
  }
  EXPECT_EQ(object.refusal(), "a relocation of its dynamic section");
}

TEST(ElfCheck, RefusesRelocationsThatAskSomebody) {
  for (const uint32_t type : {1u, 6u, 7u, 37u, 1032u}) {
    Object object;
    object.relocations()[0].r_info = ELF64_R_INFO(1, type);
    EXPECT_EQ(object.refusal(), cat("a relocation of type ", type));
  }
}

TEST(ElfCheck, EachMachineHasItsOwnRelativeRelocation) {
  const std::pair<uint16_t, uint32_t> x86_64 = {EM_X86_64, R_X86_64_RELATIVE},
                                      aarch64 = {EM_AARCH64, R_AARCH64_RELATIVE},
                                      riscv64 = {EM_RISCV, R_RISCV_RELATIVE};
  for (const auto& [machine, other] :
       {std::pair(x86_64, aarch64), std::pair(aarch64, riscv64), std::pair(riscv64, x86_64)}) {
    Object object;
    object.header()->e_machine = machine.first;
    const size_t count = object.entry(DT_RELASZ)->d_un.d_val / sizeof(Elf64_Rela);
    for (size_t i = 0; i < count; ++i) {
      object.relocations()[i].r_info = ELF64_R_INFO(0, machine.second);
    }
    EXPECT_EQ(object.refusal(), "none");
    object.relocations()[count - 1].r_info = ELF64_R_INFO(0, other.second);
    EXPECT_EQ(object.refusal(), cat("a relocation of type ", other.second));
  }
}

TEST(ElfCheck, AttributesOfCodeAreOfOneMachine) {
  Object object;
  for (size_t i = 0; i < object.header()->e_phnum; ++i) {
    if (object.segment(i)->p_type == PT_PHDR) {
      object.segment(i)->p_type = PT_RISCV_ATTRIBUTES;
    }
  }
  for (const uint16_t machine : {EM_X86_64, EM_AARCH64}) {
    object.header()->e_machine = machine;
    EXPECT_EQ(object.refusal(), "a program header of type 0x70000003");
  }
  object.header()->e_machine = EM_RISCV;
  for (Elf64_Rela* r = object.relocations();
       r < object.relocations() + object.entry(DT_RELASZ)->d_un.d_val / sizeof *r; ++r) {
    r->r_info = ELF64_R_INFO(0, R_RISCV_RELATIVE);
  }
  EXPECT_EQ(object.refusal(), "none");
}

TEST(ElfCheck, RefusesWhatItDoesNotKnow) {
  Object entry;
  entry.entry(DT_RELACOUNT)->d_tag = DT_PLTGOT;
  EXPECT_EQ(entry.refusal(), "an entry of type 0x3 in its dynamic section");
  Object segment;
  for (size_t i = 0; i < segment.header()->e_phnum; ++i) {
    if (segment.segment(i)->p_type == PT_GNU_STACK) segment.segment(i)->p_type = PT_GNU_PROPERTY;
  }
  EXPECT_EQ(segment.refusal(), "a program header of type 0x6474e553");
  Object machine;
  machine.header()->e_machine = EM_PPC64;
  EXPECT_EQ(machine.refusal(), "code for machine 21");
  Object relro;
  for (size_t i = 0; i < relro.header()->e_phnum; ++i) {
    if (relro.segment(i)->p_type == PT_GNU_RELRO) relro.segment(i)->p_memsz = 1 << 20;
  }
  EXPECT_EQ(relro.refusal(), "a range to be made read-only outside of its data");
}

TEST(ElfCheck, RefusesWhatRunsOrNeedsOthers) {
  const auto with = [](Elf64_Sxword tag, uint64_t value = 0) {
    Object object;
    object.entry(DT_RELACOUNT)->d_un.d_val = value;
    object.entry(DT_RELACOUNT)->d_tag = tag;
    return object.refusal();
  };
  EXPECT_EQ(with(DT_NEEDED), "a needed library");
  for (const Elf64_Sxword tag :
       {DT_INIT, DT_FINI, DT_INIT_ARRAY, DT_FINI_ARRAY, DT_PREINIT_ARRAY}) {
    EXPECT_EQ(with(tag), "a constructor or destructor") << tag;
  }
  EXPECT_EQ(with(DT_TEXTREL), "relocations in its code");
  EXPECT_EQ(with(DT_FLAGS, DF_TEXTREL), "relocations in its code");
  EXPECT_EQ(with(DT_FLAGS, DF_STATIC_TLS), "thread-local storage");
  EXPECT_EQ(with(DT_VERNEED), "versioned imports");
  EXPECT_EQ(with(DT_FLAGS_1, DF_1_GLOBAL), "flags 0x2 for the loader");
  EXPECT_EQ(with(DT_RELAENT, 16), "relocations of the wrong size");
}

// What KernelObject::open says of an object that is closed.
std::string error_of_opening(const Object& object) {
  EXPECT_EQ(object.refusal(), "none");
  return failure_of([&] { KernelObject::open(object.elf, "net.tnx"); });
}

TEST(KernelObject, OfAnotherAbiIsUnsupported) {
  Object object;
  *object.in_memory<uint32_t>(object.symbol()->st_value) = kKernelAbiVersion + 1;
  EXPECT_THAT(error_of_opening(object),
              testing::HasSubstr("net.tnx has native code for another kernel ABI"));
}

TEST(KernelObject, ForFeaturesThatNoMachineHasTogetherIsUnsupported) {
  Object object;
  std::memset(object.in_memory<char>(object.symbol()->st_value + 8), 0xff, 2 * sizeof(uint64_t));
  const std::string error = error_of_opening(object);
  EXPECT_THAT(error, testing::HasSubstr("net.tnx needs CPU features that this machine lacks"));
  EXPECT_THAT(error, testing::HasSubstr("`tenon targets` lists them"));
}

TEST(KernelObject, WithoutATableIsDamaged) {
  Object object;
  ++object.symbol()->st_name;  // "enon_kernel_table"
  EXPECT_THAT(error_of_opening(object), testing::HasSubstr("no kernel table"));
}

TEST(KernelObject, IsChosenByTheFeaturesThatAreAvailable) {
  Unit unit;
  unit.kernels = {{cat(kHostArchitecture, "-linux"), "any", {"no-such-feature"}, {}},
                  {"z80", "any", {}, {}},
                  {cat(kHostArchitecture, "-linux"), "any", {}, {}}};
  std::vector<std::string> reasons;
  EXPECT_EQ(choose_kernels(unit, std::vector<std::string>{}, &reasons), nullptr);
  ASSERT_EQ(reasons.size(), 3u);
  EXPECT_THAT(reasons[0], testing::HasSubstr("code that needs no-such-feature"));
  EXPECT_EQ(reasons[1], "code for z80");
  EXPECT_THAT(reasons[2], testing::HasSubstr("no code for the host of "));
  EXPECT_THAT(failure_of([&] { KernelObject::open_best(unit, "net.tnx"); }),
              testing::HasSubstr("net.tnx has no native code that this machine can run"));
}

TEST(ElfCheck, RefusesWhatTheLoaderFollowsUnseen) {
  const auto without = [](Elf64_Sxword tag) {
    Object object;
    object.entry(tag)->d_tag = DT_RELACOUNT;
    object.entry(DT_RELACOUNT)->d_un.d_val = 0;
    return object.refusal();
  };
  EXPECT_EQ(without(DT_SYMTAB), "no symbol table");
  EXPECT_EQ(without(DT_STRTAB), "no names of its symbols in read-only memory");
  for (const Elf64_Sxword tag : {DT_RELA, DT_RELASZ, DT_RELAENT}) {
    EXPECT_EQ(without(tag), "relocations without their place and size") << tag;
  }
  Object dynamic, stack, note;
  for (size_t i = 0; i < dynamic.header()->e_phnum; ++i) {
    if (dynamic.segment(i)->p_type == PT_DYNAMIC) dynamic.segment(i)->p_flags ^= PF_W;
    if (stack.segment(i)->p_type != PT_GNU_STACK) continue;
    stack.segment(i)->p_type = PT_NULL;
    note.segment(i)->p_type = PT_NOTE;
    note.segment(i)->p_memsz = sizeof(Elf64_Nhdr);
  }
  EXPECT_EQ(dynamic.refusal(), "a dynamic section that isn't writable as its segment is");
  EXPECT_EQ(stack.refusal(), "no header for its stack, which would be executable");
  EXPECT_EQ(note.refusal(), "a note");
}

// If the check accepts an object, the loader opens or refuses it without running any of its code.
TEST(ElfCheck, NothingRunsWhileWhatItTakesIsOpened) {
  const Object whole;
  uint64_t random = 1;
  auto below = [&](uint64_t n) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return (random >> 33) % n;
  };
  int taken = 0;
  for (int i = 0; i < 5000; ++i) {
    Object object = whole;
    // Words of the tables that the loader reads are replaced by each other, by addresses, and by
    // values with small changes.
    const std::vector<std::pair<char*, size_t>> tables = {
        {object.elf.data(), 64 + object.header()->e_phnum * sizeof(Elf64_Phdr)},
        {object.elf.data() + object.dynamic, 10 * sizeof(Elf64_Dyn)},
        {reinterpret_cast<char*>(object.symbol()), sizeof(Elf64_Sym)},
        {object.in_memory<char>(object.entry(DT_GNU_HASH)->d_un.d_ptr), 40},
        {reinterpret_cast<char*>(object.relocations()), 3 * sizeof(Elf64_Rela)},
    };
    const uint64_t values[] = {object.tripwire,
                               object.room,
                               37,
                               8,
                               0,
                               1,
                               24,
                               UINT64_MAX,
                               4096,
                               object.entry(DT_RELA)->d_un.d_ptr,
                               object.entry(DT_SYMTAB)->d_un.d_ptr};
    // Or a field is another of its kind.
    constexpr Elf64_Sxword kTags[] = {DT_NULL,  DT_SYMTAB,   DT_STRTAB,  DT_STRSZ,
                                      DT_RELA,  DT_RELASZ,   DT_RELAENT, DT_RELACOUNT,
                                      DT_FLAGS, DT_GNU_HASH, DT_SYMENT,  DT_FLAGS_1};
    constexpr uint32_t kTypes[] = {PT_NULL, PT_LOAD,         PT_DYNAMIC,   PT_NOTE,
                                   PT_PHDR, PT_GNU_EH_FRAME, PT_GNU_STACK, PT_GNU_RELRO};
    if (below(3) == 0) {
      auto* const entries = reinterpret_cast<Elf64_Dyn*>(object.elf.data() + object.dynamic);
      entries[below(10)].d_tag = kTags[below(std::size(kTags))];
    }
    if (below(3) == 0) {
      Elf64_Phdr& p = *object.segment(below(object.header()->e_phnum));
      (below(2) ? p.p_type : p.p_flags) =
          below(2) ? kTypes[below(std::size(kTypes))] : static_cast<uint32_t>(below(8));
    }
    for (uint64_t changes = below(3); changes-- > 0;) {
      const auto& [begin, size] = tables[below(tables.size())];
      char* word = begin + below(size / 4 - 1) * 4;
      uint64_t value;
      std::memcpy(&value, word, sizeof value);
      if (below(2)) {
        value = values[below(std::size(values))];
      } else {
        value ^= uint64_t{1} << below(64);
      }
      std::memcpy(word, &value, below(2) ? 4 : 8);
    }
    if (object.elf == whole.elf || why_not_closed(object.elf)) continue;
    ++taken;
    const int status = status_of_opening(object.elf);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "mutant " << i;
  }
  EXPECT_GT(taken, 200);
}

}  // namespace
}  // namespace tenon::vm
