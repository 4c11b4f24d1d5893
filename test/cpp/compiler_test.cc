// The compiler's library and the builder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "test_program.h"

namespace {

using namespace tenon;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kTwice = "fn @main(%x: tensor[n; f32]) -> tensor[n; f32] { add(%x, %x) }";

TEST(CppCompiler, CompilesAModel) {
  const Program digits =
      compile(TENON_TEST_MODEL, {{"dims", Map{{"batch", 2}}}, {"level", 1}, {"libraries", "none"}});
  EXPECT_EQ(digits.signature().params[0].dims->at(0).size, 2);
  const auto y = digits(Tensor::zeros({2, 1, 8, 8}, dtype_of<float>)).as<Tensor>();
  EXPECT_THAT(y.shape(), ElementsAre(2, 10));
}

TEST(CppCompiler, CompilesAProgram) {
  const auto module = ir::Module::parse(kTwice);
  EXPECT_THAT(module.text(), HasSubstr("add(%x, %x)"));
  const Program twice = compile(module);
  EXPECT_THAT(twice(Tensor::copy({1.0f, 2.0f}, {2})).as<Tensor>().to_vector<float>(),
              ElementsAre(2, 4));
  EXPECT_EQ(module.interpret("main", {Tensor::copy({3.0f}, {1})}).as<Tensor>().at<float>({0}), 6);
}

TEST(CppCompiler, ErrorsNameTheProgram) {
  const Program of_module = compile(ir::Module::parse(kTwice));
  EXPECT_THAT(caught<UsageError>([&] { of_module(1); }), HasSubstr("does not fit <module>"));
  const Program of_file = compile(TENON_TEST_MODEL);
  EXPECT_THAT(caught<UsageError>([&] { of_file["nope"](1); }), HasSubstr(TENON_TEST_MODEL));
}

TEST(CppCompiler, MakesASharedObject) {
  const std::string path = TENON_TEST_FOLDER "/libtwice.so";
  compile(ir::Module::parse(kTwice), {{"shared", true}}).save(path);
  const Module twice = Program::load(path).module();
  EXPECT_THAT(twice.functions(), ElementsAre("main"));
  const auto y = twice["main"](Tensor::copy({1.0f, 2.0f}, {2})).as<Tensor>();
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(2, 4));
  LoadOptions untrusted;
  untrusted.untrusted = true;
  EXPECT_THAT(caught<UnsupportedError>([&] { Program::load(path, untrusted); }),
              HasSubstr("a shared object, which is native code"));
}

TEST(CppCompiler, SaysWhatIsWrong) {
  try {
    ir::Module::parse("fn @main(%x: tensor[n; f32]) -> tensor[n; f32] { relo(%x) }", "a.tn");
    FAIL();
  } catch (const UsageError& e) {
    EXPECT_THAT(e.span(), HasSubstr("a.tn:1"));
    EXPECT_THAT(e.what(), HasSubstr("relo"));
  }
  try {
    ir::Module::parse("fn @main(%x: f32) -> f32 {\n  %a = relo(%x)\n  %b = add(%a, %c)\n  %b\n}",
                      "b.tn");
    FAIL();
  } catch (const UsageError& e) {
    EXPECT_EQ(e.span().substr(0, 6), "b.tn:2");
    EXPECT_THAT(e.message(), HasSubstr("relo"));
    ASSERT_EQ(e.also().size(), 1u);
    EXPECT_EQ(e.also()[0].parts[0].label, "span");
    EXPECT_EQ(e.also()[0].parts[0].text.substr(0, 6), "b.tn:3");
  }
  EXPECT_THAT(caught<UsageError>([] {
                compile(ir::Module::parse(kTwice), {{"levle", 2}});
              }),
              HasSubstr("levle"));
}

TEST(CppCompiler, ProgramsAreSaved) {
  const Program program = compile(ir::Module::parse(kTwice));
  const std::string path = TENON_TEST_FOLDER "/saved.tnx";
  program.save(path);
  const Program saved = Program::load(path);
  EXPECT_TRUE(std::ranges::equal(saved.file(), program.file()));
  EXPECT_THAT(caught<UsageError>([&] { program.save("/nowhere/a.tnx"); }),
              HasSubstr("cannot write /nowhere/a.tnx: No such file or directory"));
}

TEST(CppCompiler, AnUnknownOptionListsThoseOfTheImportToo) {
  const std::string path = TENON_TEST_FOLDER "/options.tn";
  ir::Module::parse(kTwice).save(path);
  EXPECT_THAT(caught<UsageError>([&] {
                compile(path, {{"levle", 2}});
              }),
              AllOf(HasSubstr("one of dims, shapes, "), HasSubstr("did you mean level")));
}

TEST(CppCompiler, ATextIsNoPath) {
  EXPECT_THAT(caught<UsageError>([] { compile(kTwice); }), HasSubstr("ir::Module::parse(text)"));
}

TEST(CppCompiler, ModulesAreSavedAndRead) {
  const auto module = ir::Module::parse(kTwice);
  EXPECT_EQ(ir::Module::from_json(module.to_json(2)), module);
  const std::string path = TENON_TEST_FOLDER "/twice.tn";
  module.save(path);
  EXPECT_EQ(ir::Module::open(path).text(), module.text());
  EXPECT_TRUE(module.functions().contains("main"));
  EXPECT_THAT(module.fields(), Contains("functions"));
}

TEST(CppCompiler, ReadsAnOnnxModelFromMemory) {
  std::ifstream file(TENON_TEST_MODEL, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const auto module =
      ir::Module::from_onnx(std::as_bytes(std::span(bytes)), {{"dims", Map{{"batch", 1}}}});
  EXPECT_TRUE(module.functions().contains("main"));
}

TEST(CppCompiler, RunsPassesOfTheHost) {
  int runs = 0;
  register_function("test.cpp.count", [&runs](ir::Module module, Map context) {
    runs += context.contains("level");
    return module;
  });
  std::vector<std::string> passes = ir::passes(2);
  EXPECT_FALSE(passes.empty());
  passes.insert(passes.begin(), "test.cpp.count");
  const auto module = ir::Module::parse(kTwice);
  compile(module, {{"passes", passes}});
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(module.run_passes({"test.cpp.count"}), module);
  EXPECT_EQ(runs, 2);
  EXPECT_LT(ir::passes(0).size(), ir::list_passes().size());
}

TEST(CppCompiler, CompilesForOtherMachines) {
  const Bytes file = compile_to_bytes(ir::Module::parse(kTwice),
                                      {{"target", "aarch64-linux-gnu"}, {"keep_computes", true}});
  EXPECT_GT(file.size(), 0u);
}

// Not only in a process that has compiled something before.
TEST(CppCompiler, LoadingAnUntrustedFileLoadsTheCompiler) {
  const std::string path = testing::TempDir() + "untrusted.tnx";
  EXPECT_EXIT(
      {
        compile(ir::Module::parse(kTwice), {{"keep_computes", true}}).save(path);
        std::_Exit(0);
      },
      testing::ExitedWithCode(0), "");
  const Program program = Program::load(path, {.untrusted = true});
  EXPECT_THAT(program(Tensor::copy({1.0f}, {1})).as<Tensor>().to_vector<float>(), ElementsAre(2));
}

TEST(CppCompiler, AnUntrustedFileIsCompiledAnew) {
  const Bytes file = compile_to_bytes(ir::Module::parse(kTwice), {{"keep_computes", true}});
  const Program program = Program::from_bytes(file.view(), {.untrusted = true});
  EXPECT_THAT(program(Tensor::copy({1.0f}, {1})).as<Tensor>().to_vector<float>(), ElementsAre(2));
}

TEST(CppCompiler, ShowsWhatAProgramHolds) {
  const Program twice = compile(ir::Module::parse(kTwice));
  EXPECT_EQ(twice.stats()["functions"].as<Array>()[0].as<Map>()["name"].as<std::string>(), "main");
  EXPECT_THAT(twice.as_python(), HasSubstr("def main("));
  EXPECT_THAT(twice.as_text(), HasSubstr("func @main"));
  const Bytes file = assemble(twice.as_text(/*full=*/true));
  const Program again = Program::from_bytes(file.view());
  EXPECT_THAT(again(Tensor::copy({2.0f}, {1})).as<Tensor>().to_vector<float>(), ElementsAre(4));
}

TEST(CppBuilder, BuildsAFunction) {
  ir::Builder b;
  const Value x = b.param("x", "tensor[n, 4; f32]");
  const Value y = b.op("reshape", {x}, {{"shape", Array{"2*n", 2}}});
  b.finish("main", b.tuple({b.op("add", {y, y}), x}), {.results = {"doubled", "same"}});
  const Program program = compile(b.module());
  EXPECT_EQ(program.signature().results[0].name, "doubled");
  const auto [doubled, same] = program(Tensor::full({1, 4}, 1.0f)).as<std::tuple<Tensor, Tensor>>();
  EXPECT_THAT(doubled.shape(), ElementsAre(2, 2));
  EXPECT_THAT(doubled.to_vector<float>(), ElementsAre(2, 2, 2, 2));
}

TEST(CppBuilder, BuildsCallsAndBranches) {
  ir::Builder b;
  b.declare("count", "fn(i64) -> i64");
  const Value n = b.param("n", "i64");
  b.finish("count", b.if_(
                        b.op("less", {n, 1}), [] { return 0; },
                        [&] {
                          const Value rest = b.call_function("count", {b.op("sub", {n, 1})});
                          return b.op("add", {rest, 1});
                        }));
  EXPECT_EQ(b.module().interpret("count", {7}).as<int>(), 7);
}

TEST(CppBuilder, BuildsALoop) {
  ir::Builder b;
  const Value n = b.param("n", "i64");
  const Value end = b.loop(
      {{"i", "i64", 0}, {"sum", "i64", 0}},
      [&](Array v) {
        return b.op("less", {v[0], n});
      },
      [&](Array v) {
        const Value next = b.op("add", {v[0], 1});
        return b.tuple({next, b.op("add", {v[1], next})});
      });
  b.finish("main", b.field(end, 1));
  EXPECT_EQ(b.module().interpret("main", {4}).as<int>(), 10);
}

TEST(CppBuilder, NumbersTakeTheTypeThatIsExpected) {
  ir::Builder b;
  const Value x = b.param("x", "i8");
  b.finish("same", x, {.exported = false, .inlined = false});
  const Value n = b.param("n", "i32");
  const Value end = b.loop(
      {{"i", "i32", 0}, {"half", "f32", 0.5}},
      [&](Array v) {
        return b.op("less", {v[0], n});
      },
      [&](Array v) {
        return Array{b.op("add", {v[0], b.scalar("i32", 1)}), 0.25};
      });
  const Value chosen = b.if_(
      b.op("less", {n, b.scalar("i32", 3)}), [&] { return b.field(end, 1); }, [] { return 2; });
  const Value closure = b.function("", {"y"}, {"i16"}, "(i16, f64)", [](Array v) {
    return Array{v[0], 3};
  });
  const Value pair = b.call_closure(closure, {7});
  b.finish("main", Array{chosen, b.call_function("same", {5}), pair});
  EXPECT_THAT(b.module().text(), HasSubstr("inline=false"));
  const auto results = b.module().interpret("main", {4}).as<std::vector<Value>>();
  EXPECT_EQ(results[0].as<double>(), 2);
  EXPECT_EQ(results[1].as<int>(), 5);
  EXPECT_EQ(results[2].as<std::vector<Value>>()[1].as<double>(), 3);
}

TEST(CppBuilder, ChecksSizesAndCallsTheHost) {
  register_function("test.cpp.same", [](Tensor t) { return t; });
  ir::Builder b;
  b.at("node_7");
  const Value x = b.param("x", "tensor[rank=1; f32]");
  const Value sized = b.match_shape(x, {"n"});
  b.check("less_equal", "n", 3, "too many");
  b.finish("main", b.call_packed("test.cpp.same", {sized}, "tensor[n; f32]"));
  const auto module = b.module();
  EXPECT_EQ(module.interpret("main", {Tensor::full({3}, 2.0f)}).as<Tensor>().at<float>({2}), 2);
  EXPECT_THAT(caught<Error>([&] { module.interpret("main", {Tensor::full({4}, 2.0f)}); }),
              HasSubstr("too many"));
}

TEST(CppBuilder, AU64HasAllItsBits) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  ir::Builder b;
  const Value x = b.param("x", "u64"), f = b.param("f", "fn(u64) -> u64");
  const Value less = b.op("sub", {b.scalar("u64", kMost), b.scalar("u64", 1)});
  b.finish("main", b.tuple({less, x, b.call_closure(f, {x})}));
  const auto half = [](uint64_t number) { return number / 2; };
  for (const Value& results : {b.module().interpret("main", {kMost, Function(half)}),
                               compile(b.module())["main"](kMost, Function(half))}) {
    const auto [first, same, halved] = results.as<std::tuple<uint64_t, uint64_t, uint64_t>>();
    EXPECT_EQ(first, kMost - 1);
    EXPECT_EQ(same, kMost);
    EXPECT_EQ(halved, kMost / 2);
  }
}

TEST(CppBuilder, SaysWhatIsWrong) {
  ir::Builder b;
  b.declare("later", "fn(i64) -> i64");
  EXPECT_THAT(caught<UsageError>([&] { b.module(); }),
              HasSubstr("'later' is declared but not built"));
  const Value x = b.param("x", "tensor[n; f32]");
  EXPECT_THAT(caught<UsageError>([&] { b.op("relo", {x}); }), HasSubstr("relo"));
  EXPECT_THROW(ir::type("tensor["), UsageError);
  EXPECT_THROW(ir::node("graph.Nothing", {}), UsageError);
  b.discard();
  EXPECT_THAT(caught<UsageError>([&] { b.declare("f", "i64"); }),
              HasSubstr("'f' is declared, but not as a function"));
}

}  // namespace
