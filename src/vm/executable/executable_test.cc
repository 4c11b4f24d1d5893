#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "object/shape.h"
#include "object/tensor.h"
#include "support/test_error.h"
#include "support/text.h"
#include "vm/asm/assemble.h"
#include "vm/executable/cpu_features.h"
#include "vm/executable/elf_check.h"
#include "vm/executable/hash.h"
#include "vm/executable/kernel_object.h"
#include "vm/executable/read_file.h"
#include "vm/executable/verify.h"
#include "vm/executable/write_file.h"
#include "vm/isa/limits.h"

namespace tenon::vm {
namespace {

using testing::HasSubstr;

Unit sample() {
  return assemble(R"(producer "test"
span "a.tn" 1 2 "/n"
const "w" = tensor[2, 2; f32] hex "0000803f000000400000404000008040"
const = "text"
const = shape[1, 2]
const = float 0.25
const = tensor[0; i64] hex ""
packed $host.f
func @main(x: tensor[n; f32]) -> tensor[n; f32] {
  results "y"
  at 0
  match_tensor %0, f32, ->%1
  %2 = call_packed $host.f, %0, #0
  ret %2!
}
)");
}

LoadedUnit load(std::string_view bytes) {
  return read_unit(copy_bytes(bytes));
}

TEST(Hash, MatchesThePublishedVectors) {
  EXPECT_EQ(xxh64("", 0), 0xEF46DB3751D8E999u);
  EXPECT_EQ(xxh64("a", 1), 0xD24EC4F1A98C6E5Bu);
  EXPECT_EQ(xxh64("abc", 3), 0x44BC2CF5AD770999u);
  std::string_view text = "Nobody inspects the spammish repetition";
  EXPECT_EQ(xxh64(text.data(), text.size()), 0xFBCEA83C8A378BF1u);
}

TEST(File, ReadsBackEqualAndWritesTheSameBytes) {
  std::string bytes = write_to_bytes(sample());
  LoadedUnit loaded = load(bytes);
  EXPECT_EQ(write_to_bytes(loaded.unit), bytes);
  EXPECT_EQ(loaded.unit.functions[0].params[0].name, "x");
  EXPECT_EQ(loaded.unit.spans[0].nodes[0], "/n");
  const Tensor w = loaded.unit.constants[0].value.as<Tensor>();
  EXPECT_EQ(w.data_as<float>()[3], 4);
  EXPECT_TRUE(w.read_only());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(w.data()) % 64, 0u);
}

TEST(File, ConstantsAreUsedWhereTheFileIsMapped) {
  std::string path = testing::TempDir() + "sample.tnx";
  save(sample(), path);
  Ref<FileBytes> file = map_file(path);
  std::filesystem::remove(path);
  Unit unit = read_unit(file).unit;
  auto* data = static_cast<const char*>(unit.constants[0].value.as<Tensor>().data());
  EXPECT_GE(data, file->data);
  EXPECT_LT(data, file->data + file->size);
  file = {};  // the constants keep it
  EXPECT_EQ(unit.constants[0].value.as<Tensor>().data_as<float>()[0], 1);
}

TEST(File, PathsThatCannotBeReadOrWrittenAreUsageErrors) {
  EXPECT_THAT(failure_of([] { map_file("/nowhere/x.tnx"); }), HasSubstr("No such file"));
  EXPECT_THAT(failure_of([] { map_file("/"); }), HasSubstr("is no regular file"));
  EXPECT_THAT(failure_of([] { save(sample(), "/nowhere/x.tnx"); }), HasSubstr("No such file"));
}

TEST(Damage, IsFoundWhereverAByteIsFlipped) {
  const std::string bytes = write_to_bytes(sample());
  FileHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  const SectionEntry& constants = header.sections[1];
  for (size_t at = 0; at < bytes.size(); ++at) {
    // Constants' data has no hash, and padding between sections says nothing.
    bool covered = at < sizeof header;
    for (const SectionEntry& s : header.sections) {
      covered = covered || (at >= s.offset && at < s.offset + s.hashed);
    }
    (void)constants;
    if (!covered) continue;
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    EXPECT_THROW(load(damaged), Error) << "byte " << at;
  }
}

TEST(Damage, IsFoundAtEveryTruncation) {
  const std::string bytes = write_to_bytes(sample());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(load(std::string_view(bytes).substr(0, size)), Error) << size;
  }
}

TEST(Damage, IsNamedByItsSection) {
  std::string bytes = write_to_bytes(sample());
  FileHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  bytes[header.sections[3].offset + 2] ^= 1;
  EXPECT_THAT(failure_of([&] { load(bytes); }), HasSubstr("section code"));
  EXPECT_THAT(failure_of([&] { load("not a tnx file at all"); }), HasSubstr("is no .tnx file"));
}

// Lists then lie at addresses that their elements' type doesn't like: UBSan sees it.
TEST(Damage, OfOffsetsIsReadOrRefused) {
  const std::string bytes = write_to_bytes(sample());
  FileHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  const SectionEntry& constants = header.sections[static_cast<size_t>(SectionId::Constants)];
  int loaded = 0, refused = 0;
  for (uint64_t at = constants.offset + 8; at < constants.offset + constants.hashed; at += 4) {
    for (uint32_t step : {4u, ~3u}) {
      std::string moved = bytes;
      uint32_t word;
      std::memcpy(&word, moved.data() + at, sizeof word);
      word += step;
      std::memcpy(moved.data() + at, &word, sizeof word);
      repair_hashes(moved);
      ++(failure_of([&] { load(moved); }) == "no error" ? loaded : refused);
    }
  }
  EXPECT_GT(loaded, 0);
  EXPECT_GT(refused, 0);
}

TEST(Damage, OfAnotherFormatIsUnsupported) {
  std::string bytes = write_to_bytes(sample());
  uint32_t version = kFormatVersion + 1;
  std::memcpy(bytes.data() + 8, &version, 4);
  EXPECT_THAT(failure_of([&] { load(bytes); }), HasSubstr(cat("format ", version)));
}

// The rules that assembly can't break.

TEST(Verify, CodeOfAFileIsNamedByItsByte) {
  Unit unit = sample();
  unit.functions[0].register_count = 2;
  std::string bytes = write_to_bytes(unit);
  std::string error = failure_of([&] { load(bytes); });
  EXPECT_THAT(error, HasSubstr("code, function 'main', instruction 1, byte 0x"));
  EXPECT_THAT(error, HasSubstr("register-range"));
}

TEST(Verify, ConstantForm) {
  Unit unit = sample();
  unit.constants[2].value = Any(Shape({-1, 2}));
  EXPECT_THAT(failure_of([&] { verify(unit); }), HasSubstr("constant-form"));
  // In the file: the tensor's byte count is damaged and the hashes repaired.
  std::string bytes = write_to_bytes(sample());
  size_t broken = 0;
  for (size_t at = 0; at + 8 <= bytes.size(); at += 4) {
    std::string damaged = bytes;
    uint64_t huge = uint64_t{1} << 62;
    std::memcpy(damaged.data() + at, &huge, 8);
    repair_hashes(damaged);
    if (failure_of([&] { load(damaged); }).find("constant-form") != std::string::npos) ++broken;
  }
  EXPECT_GT(broken, 0u);
}

TEST(Verify, SignatureText) {
  std::string bytes = write_to_bytes(sample());
  size_t at = bytes.find("tensor[n; f32]");
  ASSERT_NE(at, std::string::npos);
  bytes[at + 6] = '(';
  ASSERT_TRUE(repair_hashes(bytes));
  EXPECT_THAT(failure_of([&] { load(bytes); }), HasSubstr("signature-text"));
}

TEST(Verify, OpcodeSince) {
  for (const OpcodeInfo& info : all_opcodes()) {
    EXPECT_GE(info.since, 1u);
    EXPECT_LE(info.since, kFormatVersion);
  }
  const Unit unit = assemble("func @main(a: i64) -> i64 {\n  %0 = ashr %0, 1\n  ret %0\n}\n");
  EXPECT_EQ(failure_of([&] { verify(unit); }), "no error");
  const std::string error = failure_of([&] { verify(unit, {.name = "old", .version = 1}); });
  EXPECT_THAT(error, HasSubstr("opcode-since"));
  EXPECT_THAT(error, HasSubstr("ashr, which format 2 brought"));
}

TEST(Verify, TableSize) {
  Unit unit = sample();
  unit.libraries.assign(kMaxLibraries + 1, "x");
  EXPECT_THAT(failure_of([&] { verify(unit); }), HasSubstr("table-size"));
}

TEST(Verify, KernelClosed) {
  Unit unit = sample();
  unit.kernels.push_back({"x86_64", "any", {}, "no elf"});
  EXPECT_THAT(failure_of([&] { verify(unit); }), HasSubstr("kernel-closed"));
}

// An ELF of this process imports, needs libraries and has constructors.
std::string a_real_library() {
  for (const char* path : {"/lib/x86_64-linux-gnu/libm.so.6", "/usr/lib/libm.so.6",
                           "/lib64/libm.so.6", "/lib/aarch64-linux-gnu/libm.so.6"}) {
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

TEST(CpuFeatures, HaveNumbersAndNames) {
  EXPECT_EQ(cpu_feature_bit("avx2"), 8);
  EXPECT_EQ(cpu_feature_bit("nothing"), -1);
  auto set = cpu_feature_set({"avx2", "sse3", "nothing"});
  EXPECT_THAT(cpu_feature_names(set), testing::ElementsAre("sse3", "avx2"));
  EXPECT_THAT(missing_cpu_features({"nothing"}), testing::ElementsAre("nothing"));
  EXPECT_TRUE(missing_cpu_features(cpu_feature_names(host_cpu_features())).empty());
}

}  // namespace
}  // namespace tenon::vm
