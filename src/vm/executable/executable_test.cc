#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "device/work_budget.h"
#include "object/array.h"
#include "object/shape.h"
#include "object/tensor.h"
#include "support/error_testing.h"
#include "support/poll.h"
#include "support/text.h"
#include "vm/asm/assemble.h"
#include "vm/executable/generated_schema.h"
#include "vm/executable/hash.h"
#include "vm/executable/late_constants.h"
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
  EXPECT_EQ(xxh64(""), 0xEF46DB3751D8E999u);
  EXPECT_EQ(xxh64("a"), 0xD24EC4F1A98C6E5Bu);
  EXPECT_EQ(xxh64("abc"), 0x44BC2CF5AD770999u);
  std::string_view text = "Nobody inspects the spammish repetition";
  EXPECT_EQ(xxh64(text), 0xFBCEA83C8A378BF1u);
}

TEST(Hash, DependsOnNoPieces) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += static_cast<char>(i * 7);
  for (size_t first : {0, 1, 31, 32, 33, 64, 100, 200}) {
    for (size_t second : {0, 1, 31, 32, 65}) {
      Xxh64 hash(5);
      hash.update(std::string_view(text).substr(0, first));
      hash.update(std::string_view(text).substr(first, second));
      if (first + second < text.size()) hash.update(std::string_view(text).substr(first + second));
      EXPECT_EQ(hash.digest(), xxh64(text, 5)) << first << " " << second;
    }
  }
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

// Hashing a large file's constants polls, and so does copying them; the copy counts.
TEST(Executable, IsWrittenWithinLimits) {
  struct Counting final : Poller {
    void poll() override { ++polls; }
    int polls = 0;
  } counting;
  constexpr int64_t kParts = 6;
  Unit unit = sample();
  unit.constants[0].value = Any(Tensor::empty({kParts * int64_t{kPollBytes}}, u8));
  std::memset(unit.constants[0].value.as<Tensor>().data(), 0, kParts * kPollBytes);
  {
    const Poller::Scope scope(&counting);
    write_to_bytes(unit);
  }
  EXPECT_GE(counting.polls, 2 * (kParts - 1));
  WorkBudget budget({.memory = kPollBytes}, "writing", "a file");
  const WorkBudget::Scope scope(&budget);
  EXPECT_THAT(failure_of([&] { write_to_bytes(unit); }), HasSubstr("exceeds its memory limit"));
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
  file = {};  // the constants keep it alive
  EXPECT_EQ(unit.constants[0].value.as<Tensor>().data_as<float>()[0], 1);
}

// The bytes of the sample with a section "ABCD" of the given flags.
std::string with_unknown_section(uint32_t flags) {
  Unit unit = sample();
  unit.computes = "from a later version";
  std::string bytes = write_to_bytes(unit);
  const size_t entry = bytes.find("CMPT");
  bytes.replace(entry, 4, "ABCD");
  std::memcpy(bytes.data() + entry + 4, &flags, sizeof flags);
  repair_hashes(bytes);
  return bytes;
}

TEST(File, UnknownSectionsAreSkippedUnlessTheyAreRequired) {
  const LoadedUnit loaded = load(with_unknown_section(0));
  EXPECT_EQ(loaded.table.entries.size(), 6u);
  EXPECT_TRUE(loaded.unit.computes.empty());
  EXPECT_EQ(write_to_bytes(loaded.unit), write_to_bytes(sample()));
  // Other flags of a section that isn't required are ignored.
  EXPECT_EQ(failure_of([] { load(with_unknown_section(0x80)); }), "no error");
  const std::string error = failure_of([] { load(with_unknown_section(kSectionRequired)); });
  EXPECT_THAT(error, HasSubstr("<memory> needs a feature that this build doesn't have"));
  EXPECT_THAT(error, HasSubstr("a section \"ABCD\""));
  EXPECT_THAT(
      error,
      HasSubstr("globals, constants, packed functions, code, kernels, debug, computes, graph"));
}

TEST(File, AFlagOfAKnownSectionThatThisBuildDoesNotKnowIsRefused) {
  std::string bytes = write_to_bytes(sample());
  bytes[bytes.find("CODE") + 4] = 3;
  repair_hashes(bytes);
  EXPECT_THAT(failure_of([&] { load(bytes); }), HasSubstr("flags 0x3 of section code"));
}

TEST(File, EachTagStandsOnce) {
  std::string bytes = write_to_bytes(sample());
  bytes.replace(bytes.find("DBUG"), 4, "CODE");
  repair_hashes(bytes);
  EXPECT_THAT(failure_of([&] { load(bytes); }), HasSubstr("two sections with one tag"));
}

TEST(File, SectionsThatSayNothingAreLeftOut) {
  const LoadedUnit loaded = load(write_to_bytes(assemble("func @f() {\n ret 1\n}\n")));
  ASSERT_EQ(loaded.table.entries.size(), 2u);
  EXPECT_NE(loaded.table.find(SectionId::Globals), nullptr);
  EXPECT_NE(loaded.table.find(SectionId::Code), nullptr);
}

TEST(File, CarriesComputesEffectsAndImages) {
  Unit unit = sample();
  unit.computes = std::string("any\0bytes", 9);
  unit.graph = std::string("other\0bytes", 11);
  unit.provenance = "{\"source\":\"net.onnx\"}";
  unit.packed.push_back({"cache.read", false, Effect::Reads});
  unit.packed.push_back({"host.sum", false, Effect::Pure});
  unit.kernels.push_back({"x86_64-linux", "v3", {"avx2"}, {{ImageKind::Ptx, "sm_80", "// ptx"}}});
  unit.kernels.push_back({"x86_64-linux", "v2", {}, {{ImageKind::OpenClC, "", "kernel void f()"}}});
  const std::string bytes = write_to_bytes(unit);
  const Unit back = load(bytes).unit;
  EXPECT_EQ(write_to_bytes(back), bytes);
  EXPECT_EQ(back.computes, unit.computes);
  EXPECT_EQ(back.graph, unit.graph);
  EXPECT_EQ(back.provenance, unit.provenance);
  EXPECT_EQ(back.packed, unit.packed);
  ASSERT_EQ(back.kernels.size(), 2u);
  EXPECT_EQ(back.kernels[0].images[0].architecture, "sm_80");
  EXPECT_EQ(back.kernels[1].images[0].bytes, "kernel void f()");
  EXPECT_EQ(back.kernels[0].host_object(), nullptr);
}

TEST(File, ImagesOfUnknownKindsAreSkipped) {
  Unit unit = sample();
  const auto later = static_cast<ImageKind>(200);
  unit.kernels.push_back({"x86_64", "", {}, {{later, "", "later"}, {ImageKind::Wasm, "", "wasm"}}});
  const Unit back = load(write_to_bytes(unit)).unit;
  ASSERT_EQ(back.kernels[0].images.size(), 1u);
  EXPECT_EQ(back.kernels[0].images[0].kind, ImageKind::Wasm);
}

TEST(LateConstants, AreSharedWhereTheirDataIsAligned) {
  Unit unit = load(write_to_bytes(assemble(
                       "const \"w\" = late tensor[2; f32]\n"
                       "const \"v\" = late tensor[2; f32] align 256\nfunc @f() {\n ret #0\n}\n")))
                  .unit;
  ASSERT_TRUE(unit.constants[0].late && unit.constants[0].value.is_none());
  const Tensor all = Tensor::empty({64}, f32);
  for (int i = 0; i < 64; ++i) all.data_as<float>()[i] = static_cast<float>(i);
  for (const int64_t offset :
       {0, 8}) {  // alignments of 64 and of 32 bytes, as in other weight files
    Unit bound = unit;
    bind_late_constants(
        bound,
        [&](std::string_view) {
          return Tensor::view(all.data_as<float>() + offset, std::vector<int64_t>{2}, f32,
                              all.ref());
        },
        "test");
    const Tensor w = bound.constants[0].value.as<Tensor>();
    EXPECT_EQ(w.data() == all.data(), offset == 0);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(w.data()) % 64, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(bound.constants[1].value.as<Tensor>().data()) % 256, 0u);
    EXPECT_EQ(w.data_as<float>()[1], static_cast<float>(offset + 1));
    EXPECT_TRUE(w.constant());
  }
}

TEST(LateConstants, OfOneNameShareOneCopy) {
  Unit unit = assemble(
      "const \"w\" = late tensor[2; f32]\nconst \"v\" = late tensor[2; f32] align 4096\n"
      "const \"w\" = late tensor[2; f32] align 4096\n"
      "const \"w\" = late tensor[2; f32] align 128\nfunc @f() {\n ret #0\n}\n");
  const Tensor all = Tensor::empty({64}, f32);
  std::vector<std::string> asked;
  bind_late_constants(
      unit,
      [&](std::string_view name) {
        asked.emplace_back(name);
        return Tensor::view(all.data_as<float>() + 8, std::vector<int64_t>{2}, f32, all.ref());
      },
      "test");
  EXPECT_THAT(asked, testing::UnorderedElementsAre("v", "w"));
  const void* copy = unit.constants[2].value.as<Tensor>().data();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(copy) % 4096, 0u);
  EXPECT_EQ(unit.constants[0].value.as<Tensor>().data(), copy);
  EXPECT_EQ(unit.constants[3].value.as<Tensor>().data(), copy);
  EXPECT_NE(unit.constants[1].value.as<Tensor>().data(), copy);
}

TEST(LateConstants, ThatAreMissingOrOfAnotherTypeAreNamed) {
  Unit unit = assemble("const \"w\" = late tensor[2; f32]\nfunc @f() {\n ret #0\n}\n");
  EXPECT_THAT(failure_of([&] { bind_late_constants(unit, {}, "net.tnx"); }),
              HasSubstr("net.tnx needs weights that weren't provided\n  found     no w"));
  const std::string error = failure_of([&] {
    bind_late_constants(
        unit, [](std::string_view) { return Tensor::empty({3}, f32); }, "net.tnx");
  });
  EXPECT_THAT(error, HasSubstr("weight \"w\" doesn't fit net.tnx"));
  EXPECT_THAT(error, HasSubstr("found     tensor[3; f32]"));
  EXPECT_THAT(error, HasSubstr("expected  tensor[2; f32]"));
  unit.constants[0].late->alignment = 3;
  EXPECT_THAT(failure_of([&] { verify(unit); }), HasSubstr("constant-form"));
  unit.constants[0].late->alignment = 64;
  unit.constants[0].late->shape = {INT64_MAX, 4};
  EXPECT_THAT(failure_of([&] { verify(unit); }), HasSubstr("constant-form"));
}

TEST(File, PathsThatCannotBeReadOrWrittenAreUsageErrors) {
  EXPECT_THAT(failure_of([] { map_file("/nowhere/x.tnx"); }), HasSubstr("No such file"));
  EXPECT_THAT(failure_of([] { map_file("/"); }), HasSubstr("not a regular file"));
  EXPECT_THAT(failure_of([] { save(sample(), "/nowhere/x.tnx"); }), HasSubstr("No such file"));
}

TEST(File, ReadingIsHeldToTheThreadsLimits) {
  const std::string bytes = write_to_bytes(sample());
  {
    WorkBudget budget({.memory = 100}, "reading", "t.tnx");
    const CallContext::Scope scope(&budget);
    EXPECT_THAT(failure_of([&] { load(bytes); }), HasSubstr("t.tnx exceeds its memory limit"));
  }
  const std::atomic<bool> stop = true;
  WorkBudget budget({.cancel = &stop}, "reading", "t.tnx");
  const CallContext::Scope scope(&budget);
  EXPECT_THAT(failure_of([&] { load(bytes); }), HasSubstr("reading t.tnx was cancelled"));
}

TEST(Verifier, ListsTheInstructionsThatMayEndAFunction) {
  const Unit unit = assemble("func @f() {\n %0 = load_int 1\n}");
  EXPECT_THAT(
      failure_of([&] { verify(unit); }),
      HasSubstr("one of ret, goto, switch, fatal, tail_call, tail_call_closure as the last"));
}

TEST(Damage, IsFoundWhereverAByteIsFlipped) {
  const std::string bytes = write_to_bytes(sample());
  const SectionTable table = read_section_table(bytes, "test", true);
  for (size_t at = 0; at < bytes.size(); ++at) {
    // Only `tenon verify` checks the hash of constants' data, and padding between sections is
    // ignored.
    bool read = at < sizeof(FileHeader) + table.entries.size() * sizeof(SectionEntry);
    bool checked = read;
    for (const SectionEntry& s : table.entries) {
      read = read || (at >= s.offset && at < s.offset + s.checked);
      checked = checked || (at >= s.offset && at < s.offset + s.size);
    }
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    if (read) {
      EXPECT_THROW(load(damaged), Error) << "byte " << at;
    } else {
      const LoadedUnit loaded = load(damaged);
      const std::string found =
          failure_of([&] { check_data_hashes(damaged, loaded.table, "test"); });
      EXPECT_EQ(found != "no error", checked) << "byte " << at;
    }
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
  bytes[read_section_table(bytes, "test", true).find(SectionId::Code)->offset + 2] ^= 1;
  EXPECT_THAT(failure_of([&] { load(bytes); }), HasSubstr("section code"));
  EXPECT_THAT(failure_of([&] { load("not a tnx file at all"); }), HasSubstr("is not a .tnx file"));
}

// Lists are then misaligned for their element type: UBSan sees it.
TEST(Damage, OfOffsetsIsReadOrRefused) {
  const std::string bytes = write_to_bytes(sample());
  const SectionTable table = read_section_table(bytes, "test", true);
  const SectionEntry& constants = *table.find(SectionId::Constants);
  int loaded = 0, refused = 0;
  for (uint64_t at = constants.offset + 8; at < constants.offset + constants.checked; at += 4) {
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

// The error of a file with this table in the place of its debug section.
std::string error_with_debug(const flatbuffers::FlatBufferBuilder& builder) {
  const std::string_view table(reinterpret_cast<const char*>(builder.GetBufferPointer()),
                               builder.GetSize());
  const std::string room(table.size(), 'n');
  std::string bytes = write_to_bytes(
      assemble(cat("span \"a.tn\" 1 2 \"", room, "\"\nfunc @f() {\n at 0\n ret 1\n}")));
  const SectionEntry debug = *read_section_table(bytes, "test", true).find(SectionId::Debug);
  EXPECT_GE(debug.size, table.size());
  bytes.replace(debug.offset, table.size(), table);
  repair_hashes(bytes);
  return failure_of([&] { load(bytes); });
}

// Reading such lists would take time in proportion to the square of the file's size.
TEST(Damage, OfListsThatShareTheirStringsIsFound) {
  flatbuffers::FlatBufferBuilder builder;
  const std::vector<flatbuffers::Offset<flatbuffers::String>> nodes(100, builder.CreateString("n"));
  const auto span = tnx::CreateSpan(builder, 0, 0, 0, builder.CreateVector(nodes));
  const std::vector<flatbuffers::Offset<tnx::Span>> spans(100, span);
  builder.Finish(tnx::CreateDebug(builder, builder.CreateVector(spans)));
  EXPECT_THAT(error_with_debug(builder), HasSubstr("offsets outside of the section"));
}

TEST(Damage, OfSpansThatShareLongTextIsFound) {
  flatbuffers::FlatBufferBuilder builder;
  const auto file = builder.CreateString(std::string(60'000, 'f'));
  std::vector<flatbuffers::Offset<tnx::Span>> spans;
  spans.reserve(200);
  for (int i = 0; i < 200; ++i) spans.push_back(tnx::CreateSpan(builder, file));
  builder.Finish(tnx::CreateDebug(builder, builder.CreateVector(spans)));
  EXPECT_THAT(error_with_debug(builder), HasSubstr("bytes of metadata can hold"));
}

TEST(Damage, OfSpansForOtherFunctionsIsFound) {
  flatbuffers::FlatBufferBuilder builder;
  const std::vector<flatbuffers::Offset<tnx::FunctionSpans>> functions(
      2, tnx::CreateFunctionSpans(builder));
  builder.Finish(tnx::CreateDebug(builder, 0, builder.CreateVector(functions)));
  EXPECT_THAT(error_with_debug(builder), HasSubstr("spans of 2 functions"));
}

TEST(Damage, OfTheSizeOfAHashIsFound) {
  std::string bytes = write_to_bytes(sample());
  const SectionTable table = read_section_table(bytes, "test", true);
  const SectionEntry debug = *table.find(SectionId::Debug);
  SectionEntry damaged = debug;
  damaged.checked -= 1;
  const std::string_view written(reinterpret_cast<const char*>(&debug), sizeof debug);
  bytes.replace(bytes.find(written), written.size(), reinterpret_cast<const char*>(&damaged),
                sizeof damaged);
  ASSERT_TRUE(repair_hashes(bytes));
  EXPECT_THAT(failure_of([&] { load(bytes); }), HasSubstr(cat("of all ", debug.size)));
}

// How often the value, written to a word of the file whose hashes are then repaired, gives this
// error.
template <class T>
int errors_of_damage(const std::string& bytes, T value, const char* error) {
  int found = 0;
  for (size_t at = 0; at + sizeof value <= bytes.size(); at += sizeof value) {
    std::string damaged = bytes;
    std::memcpy(damaged.data() + at, &value, sizeof value);
    repair_hashes(damaged);
    if (failure_of([&] { load(damaged); }).find(error) != std::string::npos) ++found;
  }
  return found;
}

TEST(Damage, OfConstantsIsNamed) {
  std::string text;
  for (int i = 0; i < 12; ++i) text += "const = \"it lies behind the tensor\"\n";
  text += "const = tensor[1, 1; string] {\"abc\"}\nfunc @f() {\n ret 1\n}\n";
  const std::string bytes = write_to_bytes(assemble(text));
  EXPECT_GT(errors_of_damage<uint8_t>(bytes, 99, "a kind that the format has"), 0);
  EXPECT_GT(errors_of_damage<uint8_t>(bytes, 0xff, "the end of each string, then their UTF-8"), 0);
  EXPECT_GT(errors_of_damage<uint32_t>(bytes, 33, "rank 33"), 0);
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
  // The tensor's byte count in the file is damaged, and the hashes are repaired.
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

TEST(Verify, EachConstantHasAForm) {
  const auto error = [](Any value) {
    Unit unit = sample();
    unit.constants[2].value = std::move(value);
    return failure_of([&] { verify(unit); });
  };
  EXPECT_EQ(error(Any(f32)), "no error");
  EXPECT_THAT(error(Any(DataType())), HasSubstr("dtype-known"));
  EXPECT_THAT(error(Any(Array<Any>())),
              HasSubstr("a tensor, shape, string, number, dtype or device"));
  EXPECT_THAT(error(Any(Shape(std::vector<int64_t>(33, 1)))), HasSubstr("constant-form"));
  const Tensor host = Tensor::empty({4}, f32);
  const Tensor elsewhere =
      Tensor::view(host.data(), host.shape(), f32, host.ref(), true, {kDLCUDA, 0});
  EXPECT_THAT(error(Any(elsewhere)), HasSubstr("a compact tensor on the CPU"));
}

TEST(Verify, EachLateConstantHasAForm) {
  const auto error = [](const LateTensor& late) {
    Unit unit = sample();
    unit.constants[0] = {"w", Any(), late};
    return failure_of([&] { verify(unit); });
  };
  EXPECT_EQ(error({f32, {2, 2}}), "no error");
  EXPECT_THAT(error({DataType(), {2}}), HasSubstr("dtype-known"));
  EXPECT_THAT(error({f32, {INT64_MAX, 2}}), HasSubstr("dimensions whose product is a size"));
  EXPECT_THAT(error({f32, std::vector<int64_t>(33, 1)}), HasSubstr("at most 32 dimensions"));
  for (const uint32_t alignment : {0u, 3u, 1u << 31}) {
    EXPECT_THAT(error({f32, {2}, alignment}), HasSubstr("a power of two up to")) << alignment;
  }
}

TEST(Verify, SpansAscend) {
  for (const CodeSpan span : {CodeSpan{1, 0}, CodeSpan{0, 1}, CodeSpan{1000, 0}}) {
    Unit unit = sample();
    unit.functions[0].spans = {span};
    EXPECT_THAT(failure_of([&] { verify(unit); }), HasSubstr("span-order"));
  }
  Unit unit = sample();
  unit.functions[0].spans = {{0, 0}, {0, 0}};
  EXPECT_THAT(failure_of([&] { verify(unit); }), HasSubstr("span-order"));
}

TEST(Verify, ResultsHaveANameEachOrNone) {
  Unit unit = sample();
  unit.functions[0].result_names = {"a", "b"};
  EXPECT_THAT(failure_of([&] { verify(unit); }),
              testing::AllOf(HasSubstr("2 names for 1 results"), HasSubstr("result-names")));
}

TEST(Verify, KernelsNeedCode) {
  Unit unit = sample();
  unit.packed.push_back({"k", true, Effect::Pure});
  EXPECT_THAT(failure_of([&] { verify(unit); }),
              testing::AllOf(HasSubstr("kernel-names"), HasSubstr("kernel objects or computes")));
}

TEST(Verify, FunctionsHaveCodeAndRegisters) {
  Unit unit = sample();
  unit.functions[0].code.clear();
  unit.functions[0].spans.clear();
  EXPECT_THAT(failure_of([&] { verify(unit); }), HasSubstr("code-size"));
  unit = sample();
  unit.functions[0].register_count = 0;
  EXPECT_THAT(failure_of([&] { verify(unit); }), HasSubstr("room for the parameters"));
  unit = sample();
  unit.functions[0].params.push_back(unit.functions[0].params[0]);
  unit.functions[0].register_count = 4;
  EXPECT_THAT(failure_of([&] { verify(unit); }), HasSubstr("two parameters \"x\""));
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
  EXPECT_THAT(error, HasSubstr("ashr of format 2"));
}

TEST(Verify, TableSize) {
  Unit unit = sample();
  unit.libraries.assign(kMaxLibraries + 1, "x");
  EXPECT_THAT(failure_of([&] { verify(unit); }), HasSubstr("table-size"));
}

TEST(Verify, KernelClosed) {
  Unit unit = sample();
  unit.kernels.push_back({"x86_64", "any", {}, {{ImageKind::Elf, "", "no elf"}}});
  EXPECT_THAT(failure_of([&] { verify(unit); }), HasSubstr("kernel-closed"));
}

}  // namespace
}  // namespace tenon::vm
