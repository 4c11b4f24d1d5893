// Shared objects that hold a program (vm/executable/model_abi.h).
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "driver/compile.h"
#include "graph/ir/check.h"
#include "graph/ir/text.h"
#include "object/tensor.h"
#include "support/error_testing.h"
#include "support/output_file.h"
#include "vm/executable/elf_check.h"
#include "vm/executable/kernel_object.h"
#include "vm/executable/model_abi.h"
#include "vm/executable/place_model.h"
#include "vm/executable/read_file.h"
#include "vm/executable/write_file.h"
#include "vm/interp/machine.h"

namespace tenon::driver {
namespace {

using testing::HasSubstr;
using vm::ElfModel;
using vm::ModelTable;
using vm::Program;

// A constant, a kernel, and a loop, which is compiled.
constexpr char kText[] = R"(
fn @main(%x: tensor[4; f32], %times: i64) -> tensor[4; f32] {
  %end = loop (%i: i64 = 0, %y: tensor[4; f32] = %x) while { less(%i, %times) } {
    %next = add(%i, 1)
    %z = add(%y, tensor[4; f32]{1, 2, 3, 4})
    (%next, %z)
  }
  %end.1
}
)";

vm::Unit unit_for_shared() {
  initialise();
  CompileOptions options;
  options.shared = true;
  const graph::Module module = graph::parse_module(kText, "test.tn");
  graph::check_module(module);
  return compile(module, options);
}

const std::string& object() {
  static const std::string bytes = vm::write_shared_to_bytes(unit_for_shared());
  return bytes;
}

std::string failure_of_loading(const std::string& bytes, bool trusted = true) {
  vm::ProgramOptions options;
  options.trusted = trusted;
  return failure_of([&] { Program::load_bytes(bytes, options); });
}

std::string with_table(const ModelTable& table) {
  ElfModel model;
  EXPECT_EQ(vm::why_not_closed(object(), &model), std::nullopt);
  std::string bytes = object();
  std::memcpy(bytes.data() + (model.place - object().data()), &table, sizeof table);
  return bytes;
}
ModelTable table_of_object() {
  ElfModel model;
  vm::why_not_closed(object(), &model);
  return model.table;
}

// Opens an object that may be damaged, and reads its tables.
void use(const std::string& bytes, const vm::Unit& unit) {
  try {
    const Ref<vm::KernelObject> opened = vm::KernelObject::open(bytes, "test");
    for (const std::string& name : opened->names()) opened->find(name);
    opened->code_of(unit, "test");
  } catch (const Error&) {
  }
}

// A damaged object is refused, or its tables can be read: everything but its code is changed, byte
// by byte.
TEST(SharedObject, EachByteOfItsTablesMayBeDamaged) {
  const std::string& whole = object();
  const vm::Unit unit = unit_for_shared();
  ElfModel model;
  ASSERT_EQ(vm::why_not_closed(whole, &model), std::nullopt);
  ASSERT_TRUE(model.kernels && model.code);
  const auto end = static_cast<size_t>(model.file.data() - whole.data());
  std::vector<bool> is_code(end);
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(whole.data());
  const auto* segments = reinterpret_cast<const Elf64_Phdr*>(whole.data() + header->e_phoff);
  for (int i = 0; i < header->e_phnum; ++i) {
    if (segments[i].p_type != PT_LOAD || !(segments[i].p_flags & PF_X)) continue;
    std::fill_n(is_code.begin() + static_cast<int64_t>(segments[i].p_offset), segments[i].p_filesz,
                true);
  }
  const auto try_changes = [&](size_t from, size_t to) {
    std::string mutant = whole;
    for (size_t at = from; at < to; ++at) {
      if (is_code[at]) continue;
      for (const int change : {1, 0x10, 0x80, 0xff}) {
        mutant[at] = static_cast<char>(whole[at] ^ change);
        use(mutant, unit);
      }
      mutant[at] = whole[at];
    }
  };
  constexpr size_t kPart = 512;
  for (size_t at = 0; at < end; at += kPart) {
    const pid_t child = fork();
    if (child == 0) {
      try_changes(at, std::min(at + kPart, end));
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "bytes from " << at << " on";
  }
}

float last_of(const Program& program, int64_t times) {
  const Tensor x = Tensor::empty({4}, f32);
  std::memset(x.data(), 0, 16);
  const Any y = program.function("main")(x, times);
  return static_cast<const float*>(y.as<Tensor>().data())[3];
}

class SharedFile : public testing::Test {
 protected:
  void SetUp() override {
    path = testing::TempDir() + "/tenon_shared_object_test.so";
    OutputFile out(path);
    out.write(object());
    out.commit();
  }
  void TearDown() override { std::filesystem::remove(path); }
  std::string path;
};

TEST_F(SharedFile, RunsInBothModes) {
  const Ref<Program> compiled = Program::load(path);
  EXPECT_NE(compiled->compiled(), nullptr);
  EXPECT_EQ(last_of(*compiled, 3), 12);
  vm::ProgramOptions options;
  options.bytecode_only = true;
  const Ref<Program> bytecode = Program::load(path, options);
  EXPECT_EQ(bytecode->compiled(), nullptr);
  EXPECT_EQ(last_of(*bytecode, 3), 12);
}

TEST_F(SharedFile, IsAModuleOfItsFunctions) {
  const Module module = Program::load(path)->module();
  EXPECT_EQ(module.get()->names, std::vector<std::string>{"main"});
  const Tensor x = Tensor::empty({4}, f32);
  EXPECT_TRUE(module.at("main")(x, int64_t{1}).is<Tensor>());
}

TEST_F(SharedFile, ConstantsAreUsedWhereTheFileIsMapped) {
  const Ref<Program> program = Program::load(path);
  const std::string_view file = program->file()->view();
  size_t tensors = 0;
  for (const vm::Constant& constant : program->unit().constants) {
    const auto tensor = constant.value.try_as<Tensor>();
    if (!tensor || !*tensor) continue;
    ++tensors;
    const auto* data = static_cast<const char*>(tensor->data());
    EXPECT_TRUE(data >= file.data() && data < file.data() + file.size());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
  }
  EXPECT_GT(tensors, 0u);
}

TEST_F(SharedFile, MayBeReplacedWhileItIsUsed) {
  const Ref<Program> before = Program::load(path);
  std::filesystem::remove(path);
  SetUp();
  const Ref<Program> after = Program::load(path);
  EXPECT_EQ(last_of(*before, 1) + last_of(*after, 2), 12);
}

TEST(SharedObject, LoadsFromMemory) {
  EXPECT_EQ(last_of(*Program::load_bytes(object()), 2), 8);
}

TEST(SharedObject, StoresTheCodeOnce) {
  const vm::Unit unit = unit_for_shared();
  const size_t code = unit.kernels[0].host_object()->bytes.size();
  vm::Unit rest = unit;
  rest.kernels[0].images.clear();
  EXPECT_LT(object().size(), code + vm::write_to_bytes(rest).size() + 4096);
}

TEST(SharedObject, IsRefusedByTheUntrustedPolicy) {
  EXPECT_THAT(failure_of_loading(object(), false),
              testing::AllOf(HasSubstr("can't be loaded as an untrusted file"),
                             HasSubstr("a shared object, which is native code")));
}

TEST(SharedObject, SaysWhichVersionItIs) {
  ModelTable table = table_of_object();
  table.abi_version = 7;
  EXPECT_THAT(failure_of_loading(with_table(table)),
              testing::AllOf(HasSubstr("a program for another runtime"), HasSubstr("version 7")));
}

TEST(SharedObject, TheFileMustBeInReadOnlyMemoryAligned) {
  const ModelTable good = table_of_object();
  for (const int64_t by : {int64_t{8}, int64_t{-64} - good.file, int64_t{1} << 40}) {
    ModelTable table = good;
    table.file += by;
    EXPECT_THAT(failure_of_loading(with_table(table)), HasSubstr("<memory>"));
  }
  ModelTable table = good;
  table.file_bytes += 1;
  EXPECT_THAT(failure_of_loading(with_table(table)),
              HasSubstr("no .tnx file in its read-only memory"));
}

TEST(SharedObject, OtherLibrariesAreRefusedBeforeTheyAreOpened) {
  std::string renamed = object();
  renamed.replace(renamed.find("tenon_model"), 11, "other_model");
  EXPECT_THAT(failure_of_loading(renamed), HasSubstr("no .tnx file in its read-only memory"));
  EXPECT_THAT(failure_of_loading(object().substr(0, object().size() - 1)),
              HasSubstr("a segment outside of its bytes"));
  EXPECT_THAT(failure_of_loading(object().substr(0, 100)), HasSubstr("program headers outside"));
}

// Reading opens no native code, so that damage anywhere can only end in an error.
TEST(SharedObject, DamageEndsInAnError) {
  uint64_t random = 11;
  for (int i = 0; i < 2000; ++i) {
    std::string mutant = object();
    for (int k = 0; k < 4; ++k) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      mutant[(random >> 20) % mutant.size()] = static_cast<char>(random >> 56);
    }
    failure_of([&] { vm::read_unit(vm::copy_bytes(mutant)); });
  }
}

TEST(SharedObject, ProgramsThatDontFitAreRefused) {
  const std::string code = unit_for_shared().kernels[0].host_object()->bytes;
  EXPECT_THAT(failure_of([&] { vm::place_model(code, vm::kMostElfMemory); }),
              testing::AllOf(HasSubstr("doesn't fit into a shared object"),
                             HasSubstr("--external-weights")));
  EXPECT_EQ(vm::place_model(code, 1000).size() % 4096, 0u);
}

}  // namespace
}  // namespace tenon::driver
