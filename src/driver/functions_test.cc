// The compiler's packed functions, called as a host calls them.
#include "driver/functions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "driver/functions_testing.h"
#include "graph/ir/module.h"
#include "loop/kernel.h"
#include "object/map.h"
#include "object/reflect.h"
#include "object/registry.h"
#include "object/shape.h"
#include "support/error_testing.h"
#include "vm/builtin/register.h"
#include "vm/interp/machine.h"

namespace tenon::driver {
namespace {

using testing::HasSubstr;

constexpr char kTwice[] = R"(fn @main(%x: tensor[n; f32]) -> tensor[n; f32] {
  %y = add(%x, %x)
  %z = relu(%y)
  %z
})";

graph::Module parsed(const char* text) {
  return call("tenon.parse", text, "test.tn", Any()).as<graph::Module>();
}

TEST(CompilerFunctions, CompileToTheBytesOfAnExecutable) {
  const Any bytes =
      call("tenon.compile", parsed(kTwice), Map<String, Any>{{"level", 0}, {"libraries", "none"}});
  vm::register_builtins();
  vm::Machine machine(vm::Program::load_bytes(bytes.as<Bytes>().view()));
  EXPECT_EQ(first(machine.call("main", ones(3))), 2);
}

TEST(CompilerFunctions, InterpretWhatIsNotCompiled) {
  EXPECT_EQ(first(call("tenon.interpret", parsed(kTwice), "main", Args{ones(2)}, Any())), 2);
  EXPECT_THAT(failure_of([] { call("tenon.interpret", parsed(kTwice), "mian", Args{}, Any()); }),
              HasSubstr("the module has no function \"mian\""));
  EXPECT_THAT(failure_of([] { call("tenon.interpret", parsed(kTwice), "main", Args{}, Any()); }),
              HasSubstr("takes a different number of arguments"));
}

TEST(CompilerFunctions, TellWhatAModelSaysOfItself) {
  // IR version 8 by "maker", version -1; the graph "g" with the input "w", which has an
  // initializer, and "x"; the property "k": "v".
  const std::string_view model(
      "\x08\x08\x12\x05maker\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
      "\x3a\x1a\x12\x01g\x5a\x03\x0a\x01w\x5a\x03\x0a\x01x"
      "\x2a\x0b\x10\x01\x42\x01w\x22\x04\0\0\0\0"
      "\x72\x06\x0a\x01k\x12\x01v",
      56);
  const auto said = call("tenon.model_metadata", Bytes(model), Any()).as<Map<String, Any>>();
  EXPECT_EQ(said.at("graph_name").as<String>().view(), "g");
  EXPECT_EQ(said.at("producer_name").as<String>().view(), "maker");
  EXPECT_EQ(said.at("version").as<int64_t>(), -1);
  const auto properties = said.at("custom_metadata_map").as<Map<String, String>>();
  EXPECT_EQ(properties.at("k").view(), "v");
  const auto defaults = said.at("defaults").as<Array<String>>();
  ASSERT_EQ(defaults.size(), 1);
  EXPECT_EQ(defaults[0].view(), "w");
  EXPECT_TRUE(call("tenon.model_metadata", Bytes(kTwice), Any()).is_none());
  EXPECT_THAT(failure_of([] { call("tenon.model_metadata", "none.onnx", Any()); }),
              HasSubstr("can't be opened"));
  EXPECT_THAT(failure_of([] { call("tenon.model_metadata", 1, Any()); }), HasSubstr("found"));
}

TEST(CompilerFunctions, AreHeldToLimits) {
  const Map<String, Any> late{{"deadline_ns", 0}}, small{{"memory", 1}}, wide{{"memory", 1 << 28}};
  const graph::Module module = parsed(kTwice);
  for (const char* name : {"tenon.compile", "tenon.interpret"}) {
    auto run = [&](const Map<String, Any>& options) {
      return failure_of([&] {
        const Function f = function_named(name);
        if (name == std::string_view("tenon.compile")) {
          f(module, options);
        } else {
          f(module, "main", Array<Any>({Any(Tensor::empty({2}, f32))}), options);
        }
      });
    };
    EXPECT_THAT(run(late), HasSubstr("ran past its deadline")) << name;
    EXPECT_THAT(run(small), HasSubstr("exceeds its memory limit")) << name;
    EXPECT_EQ(run(wide), "no error") << name;
  }
  EXPECT_THAT(failure_of([&] {
                call("tenon.run_passes", module, Any(), Map<String, Any>{{"memory", 0}});
              }),
              HasSubstr("option memory is out of range"));
}

TEST(CompilerFunctions, CompileToAFile) {
  const std::string path = cat(testing::TempDir(), "compiled.tnx");
  const Map<String, Any> options{{"libraries", "none"}, {"memory", 1 << 28}};
  const auto bytes = call("tenon.compile", parsed(kTwice), options).as<Bytes>();
  EXPECT_EQ(call("tenon.compile_to_file", parsed(kTwice), options, path).as<int64_t>(),
            static_cast<int64_t>(bytes.view().size()));
  std::stringstream written;
  written << std::ifstream(path).rdbuf();
  EXPECT_EQ(written.view(), bytes.view());
  EXPECT_THAT(
      failure_of([&] { call("tenon.compile_to_file", parsed(kTwice), Any(), "/missing/x.tnx"); }),
      HasSubstr("/missing/x.tnx"));
}

// The bytes of an executable count for its compilation's memory, those of a file don't.
TEST(CompilerFunctions, CompileLargeConstants) {
  constexpr int64_t kBytes = int64_t{32} << 20;
  const Tensor weights = Tensor::empty({kBytes}, u8);
  std::memset(weights.data(), 0, kBytes);
  const Any b = call("tenon.build_begin");
  call("tenon.build_at", b, "/w");
  call("tenon.build_finish", b, "main", weights, Any());
  const Any module = call("tenon.build_module", b);
  const Map<String, Any> options{{"memory", kBytes / 2}};
  EXPECT_THAT(failure_of([&] { call("tenon.compile", module, options); }),
              HasSubstr("compiling a module exceeds its memory limit"));
  const std::string path = cat(testing::TempDir(), "large.tnx");
  EXPECT_GT(call("tenon.compile_to_file", module, options, path).as<int64_t>(), kBytes);
}

TEST(CompilerFunctions, WriteFiles) {
  const std::string path = cat(testing::TempDir(), "written");
  call("tenon.write_file", path, Bytes("text"));
  call("tenon.write_file", path,
       Tensor::copy_of<uint8_t>(std::vector<int64_t>{2}, u8, std::vector<uint8_t>{'o', 'k'}));
  std::stringstream written;
  written << std::ifstream(path).rdbuf();
  EXPECT_EQ(written.str(), "ok");
  EXPECT_THAT(failure_of([&] { call("tenon.write_file", path, Tensor::empty({1}, f32)); }),
              HasSubstr("bytes or a compact tensor of u8"));
  try {
    call("tenon.write_file", "/missing/file", Bytes("text"));
    FAIL();
  } catch (const Error& error) {
    const auto rows = error.all_rows();
    EXPECT_TRUE(std::ranges::any_of(
        rows, [](const auto& row) { return row.label == ".errno" && row.text == cat(ENOENT); }));
  }
}

TEST(CompilerFunctions, ReadWithinLimits) {
  const std::string text = call("tenon.to_json", parsed(kTwice), 2).as<String>().str();
  const auto expect = [&](const Map<String, Any>& limit, const char* message) {
    EXPECT_THAT(failure_of([&] { call("tenon.parse", kTwice, "test.tn", limit); }),
                HasSubstr(cat("parsing test.tn ", message)));
    EXPECT_THAT(failure_of([&] { call("tenon.from_json", text, limit); }),
                HasSubstr(cat("reading JSON ", message)));
  };
  expect({{"deadline_ns", 0}}, "ran past its deadline");
  expect({{"memory", 1}}, "exceeds its memory limit");
  std::string zeros = "0";
  for (int i = 0; i < 100'000; ++i) zeros += ",0";
  EXPECT_THAT(failure_of([&] {
                call("tenon.from_json", cat("{\"tenon\":1,\"root\":null,\"nodes\":[", zeros, "]}"),
                     Map<String, Any>{{"memory", 1 << 20}});
              }),
              HasSubstr("reading JSON exceeds its memory limit"));
  EXPECT_THAT(failure_of([&] {
                call("tenon.from_json", text, Map<String, Any>{{"indent", 1}});
              }),
              HasSubstr("there is no option \"indent\""));
}

TEST(CompilerFunctions, RefuseSizesThatCanNotBe) {
  const std::string path = testing::TempDir() + "sizes.tn";
  std::ofstream(path) << kTwice;
  auto open = [&](const Map<String, Any>& options) {
    return failure_of([&] { call("tenon.open", path.c_str(), options); });
  };
  EXPECT_EQ(open({{"dims", Map<String, Any>()}}), "no error");
  EXPECT_THAT(open({{"dims", Map<String, Any>{{"n", 3}}}}),
              HasSubstr("the options dims and shapes have no effect on a textual program"));
  EXPECT_THAT(open({{"dims", Map<String, Any>{{"n", -3}}}}),
              HasSubstr("option dims has an invalid size for \"n\"\n  found     -3\n"
                        "  expected  an integer >= 0"));
  const int64_t shape[] = {2, -2};
  EXPECT_THAT(open({{"shapes", Map<String, Any>{{"x", Shape(shape)}}}}),
              HasSubstr("option shapes has an invalid size for \"x\"\n  found     -2\n"
                        "  expected  an integer >= -1"));
}

TEST(CompilerFunctions, RefuseOptionsThatTheyDoNotKnow) {
  auto compile = [](const Map<String, Any>& options) {
    return failure_of([&] { call("tenon.compile", parsed(kTwice), options); });
  };
  EXPECT_THAT(compile({{"levl", 2}}), HasSubstr("did you mean level?"));
  EXPECT_THAT(compile({{"level", "two"}}), HasSubstr("option level has the wrong type"));
  EXPECT_THAT(compile({{"level", 4}}), HasSubstr("option level is out of range"));
  EXPECT_THAT(compile({{"libraries", "mkl"}}), HasSubstr("option libraries has an unknown value"));
  EXPECT_THAT(failure_of([] { call("tenon.compile", parsed(kTwice), 3); }),
              HasSubstr("the options are not a map"));
}

// The table of architectures is what a build needs; with a shared LLVM, there are more.
TEST(BuildInfo, NamesTheCodeGeneratorsOfTheTable) {
  const auto info = call("tenon.build_info").as<Map<String, Any>>();
  const auto texts = [&](const char* key) {
    std::vector<std::string> out;
    for (const String& text : info.at(key).as<Array<String>>()) out.push_back(text.str());
    return out;
  };
  EXPECT_THAT(texts("code_generators"),
              testing::IsSupersetOf({"AArch64", "NVPTX", "RISCV", "WebAssembly", "X86"}));
  EXPECT_THAT(texts("targets"), testing::Contains("riscv64-linux-gnu"));
  EXPECT_THAT(info.at("llvm").as<String>().str(), testing::MatchesRegex("[0-9]+\\.[0-9]+\\..*"));
}

TEST(ListOptions, HasTheRowsOfTheTable) {
  const auto rows = call("tenon.list_options").as<Array<Any>>();
  const auto row = std::find_if(rows.begin(), rows.end(), [](const Any& r) {
    return r.as<Map<String, Any>>().at("name").as<String>() == "level";
  });
  ASSERT_NE(row, rows.end());
  const auto level = (*row).as<Map<String, Any>>();
  EXPECT_EQ(level.at("of").as<String>(), "compile");
  EXPECT_EQ(level.at("type").as<String>(), "int");
  EXPECT_EQ(level.at("default").as<String>(), "2");
  EXPECT_THAT(level.at("meaning").as<String>().str(),
              HasSubstr("one kernel per operator; 1: fold"));
}

// Every step that tenon.list_passes names, the last of which makes loop nests, can be run by name.
TEST(ListPasses, NamesWhatRunPassesTakes) {
  Array<String> names;
  for (const Any& row : call("tenon.list_passes").as<Array<Any>>()) {
    names.push_back(row.as<Map<String, Any>>().at("name").as<String>());
  }
  names.push_back("schedule");  // a step that code generation runs by itself
  const auto module = call("tenon.run_passes", parsed(kTwice), names, Any()).as<graph::Module>();
  ASSERT_FALSE(module->kernels.empty());
  for (const auto& [name, kernel] : module->kernels) {
    EXPECT_NE(kernel.as<loop::Kernel>(), nullptr) << name.view();
  }
}

// ---- passes of the host's ----

struct HostPass {
  HostPass(const char* n, const Function& pass) : name(n) { register_function(n, pass); }
  ~HostPass() { unregister_function(name); }
  const char* name;
};

std::string run_pass(const char* name) {
  return failure_of([&] {
    call("tenon.run_passes", parsed(kTwice), Array<String>{"simplify", name}, Any());
  });
}

TEST(HostPass, RunsWhereThePipelineNamesIt) {
  Map<String, Any> seen;
  HostPass pass("test.pass", Function::from_typed([&](const graph::Module& m, const Any& context) {
                  EXPECT_TRUE(m->functions.contains("main"));
                  seen = context.as<Map<String, Any>>();
                  return parsed("fn @other() -> i64 { 7 }");
                }));
  const Any result = call("tenon.run_passes", parsed(kTwice),
                          Array<String>{"simplify", "test.pass"}, Map<String, Any>{{"level", 1}});
  EXPECT_TRUE(result.as<graph::Module>()->functions.contains("other"));
  EXPECT_EQ(seen.at("level").as<int>(), 1);
  for (const char* key : {"cpu", "fold_limit", "vector_bytes", "dot_products"})
    EXPECT_TRUE(seen.contains(key));
}

TEST(HostPass, IsCheckedWhateverItReturns) {
  HostPass number("test.number", Function::from_typed([](const Any&, const Any&) { return 3; }));
  EXPECT_THAT(run_pass("test.number"),
              HasSubstr("the pass returned no module\n  pass      test.number"));
  HostPass nothing("test.nothing", Function::from_typed([](const Any&, const Any&) {}));
  EXPECT_THAT(run_pass("test.nothing"),
              HasSubstr("the pass returned no module\n  pass      test.nothing"));
  HostPass broken("test.broken", Function::from_typed([](const graph::Module& m, const Any&) {
                    auto f = make<graph::FunctionExpr>(**m->functions.find("main"));
                    f->body = {};
                    return graph::make_module({{"main", graph::FunctionRef(f)}});
                  }));
  EXPECT_THAT(run_pass("test.broken"), HasSubstr("a block is missing"));
  EXPECT_THAT(run_pass("test.broken"), HasSubstr("test.broken"));
  HostPass failing("test.failing", Function::from_typed([](const Any&, const Any&) {
                     throw Error(ErrorKind::Unsupported, "not this one");
                   }));
  EXPECT_THAT(run_pass("test.failing"), HasSubstr("not this one\n  pass      test.failing"));
  EXPECT_THAT(run_pass("simplfy"), HasSubstr("did you mean simplify?"));
  EXPECT_THAT(failure_of([] { call("tenon.run_passes", parsed(kTwice), "simplify", Any()); }),
              HasSubstr("the passes are not an array of names"));
}

// `passes` replaces all passes, so a host adds its own to those that tenon.list_passes names.
TEST(HostPass, RunsWithinACompilation) {
  const graph::Module module = parsed(kTwice);
  HostPass same("test.same",
                Function::from_typed([](const graph::Module& m, const Any&) { return m; }));
  Array<String> names{"test.same"};
  std::vector<String> required;
  for (const Any& row : call("tenon.list_passes").as<Array<Any>>()) {
    const auto pass = row.as<Map<String, Any>>();
    const auto name = pass.at("name").as<String>();
    if (pass.at("level").as<int>() <= 2) names.push_back(name);
    if (pass.at("level").as<int>() == 0) required.push_back(name);
  }
  const Any compiled = call("tenon.compile", module, Map<String, Any>{{"passes", names}});
  // Of the files, only the record of the passes differs.
  const auto code = [](const Any& file) {
    std::string text = call("tenon.disassemble", file, true, Any()).as<String>().str();
    const size_t record = text.find("provenance ");
    return record == std::string::npos ? text
                                       : text.erase(record, text.find('\n', record) - record);
  };
  EXPECT_EQ(code(compiled), code(call("tenon.compile", module, Any())));
  // A module that was lowered before needs no more passes.
  const Any lowered = call("tenon.run_passes", module, Any(), Any());
  const Any again = call("tenon.compile", lowered, Map<String, Any>{{"passes", Array<String>()}});
  EXPECT_EQ(code(compiled), code(again));

  auto compile = [&](const Array<String>& passes) {
    return failure_of([&] { call("tenon.compile", module, Map<String, Any>{{"passes", passes}}); });
  };
  for (const Array<String>& passes :
       {Array<String>{}, Array<String>{"test.same"}, Array<String>{"simplify", "test.same"}}) {
    EXPECT_THAT(compile(passes), HasSubstr("leave what code can't be generated for"));
    EXPECT_THAT(compile(passes), HasSubstr("in @main: the operator add"));
    EXPECT_THAT(compile(passes), HasSubstr("lower_to_kernels, make_allocation_explicit"));
    EXPECT_THAT(compile(passes), HasSubstr("the option `passes` replaces all passes"));
  }
  EXPECT_THAT(compile({"fuse_operators"}), HasSubstr("in @fused_add_relu"));
  EXPECT_THAT(compile({"fuse_operators", "lower_to_kernels"}),
              HasSubstr("which has no memory for its result"));
  for (const String& left_out : required) {
    Array<String> others;
    for (const String& name : required) {
      if (name != left_out) others.push_back(name);
    }
    EXPECT_THAT(compile(others), testing::Not(HasSubstr("internal error"))) << left_out.view();
  }
}

// ---- JSON ----

TEST(Json, AModuleComesBackEqual) {
  const graph::Module module = parsed(kTwice);
  const Any text = call("tenon.to_json", module, 0);
  const Any back = call("tenon.from_json", text, Any());
  EXPECT_TRUE(structural_equal(module, back, {true}));
  EXPECT_EQ(call("tenon.print", module).as<String>(), call("tenon.print", back).as<String>());
}

TEST(Json, IsIndentedWithinReason) {
  EXPECT_THAT(call("tenon.to_json", 7, 16).as<String>().str(), HasSubstr("\n                "));
  for (const int indent : {-1, 17, 1'000'000'000}) {
    EXPECT_THAT(failure_of([&] { call("tenon.to_json", 7, indent); }),
                HasSubstr(cat("the indent is out of range\n  found     ", indent,
                              "\n  expected  an integer from 0 to 16")));
  }
}

// Each reference to a node is removed or redirected to another node: reading must give an error or
// a module that the checker accepts.
TEST(Json, AModuleThatIsDamagedIsAnErrorAndNoCrash) {
  const std::string text = call("tenon.to_json", parsed(R"(
fn @main(%x: tensor[n; f32], %k: i64) -> (tensor[n; f32], i64) {
  %c = less(%k, 3)
  %y = if %c { add(%x, %x) } else { %x }
  %i = loop (%j: i64 = 0) while { less(%j, %k) } { add(%j, 1) }
  %t = (%y, %i)
  %t
})"),
                                0)
                               .as<String>()
                               .str();
  const std::string mark = "{\"node\":";
  int read = 0;
  for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
    const size_t end = text.find('}', at) + 1;
    const int64_t node = std::stoll(text.substr(at + mark.size()));
    for (const std::string& other : {std::string("null"), cat(mark, node / 2, "}"),
                                     cat(mark, node > 0 ? node - 1 : 0, "}"), cat(mark, "0}")}) {
      const std::string mutant = text.substr(0, at) + other + text.substr(end);
      try {
        const Any value = call("tenon.from_json", mutant, Any());
        if (value.is_none() || !value.is<graph::Module>()) continue;
        call("tenon.print", value);
        ++read;
      } catch (const Error& error) {
        EXPECT_NE(error.kind(), ErrorKind::Internal) << error.render();
      }
    }
  }
  EXPECT_GT(read, 0);
}

// The kind of each size is replaced by each other kind: reading must give an error or a size that
// arithmetic makes, whether the size is in a module or alone.
TEST(Json, ASizeThatArithmeticDoesNotMakeIsRefused) {
  const graph::Module module =
      parsed("fn @main(%x: tensor[n, m, 2*n + m, floordiv(n, 2), min(n, m); f32]) -> i64 { 7 }");
  const auto& type =
      *module->functions.find("main")->get()->params[0]->type.as<graph::TensorType>();
  const std::string mark = "\"kind\":";
  int refused = 0;
  for (const Any& value : {Any(module), Any(type.dims[2])}) {
    const std::string text = call("tenon.to_json", value, 0).as<String>().str();
    for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
      for (char kind = '0'; kind <= '9'; ++kind) {
        std::string mutant = text;
        mutant[at + mark.size()] = kind;
        try {
          const Any read = call("tenon.from_json", mutant, Any());
          if (read.is<graph::Module>()) call("tenon.print", read);
        } catch (const Error& error) {
          EXPECT_NE(error.kind(), ErrorKind::Internal) << error.render();
          refused += error.render().find("not in canonical form") != std::string::npos;
        }
      }
    }
  }
  EXPECT_GT(refused, 50);
}

// Types that contradict themselves, or are larger than what walks them can take.
TEST(Json, ADamagedTypeIsAnErrorAndNoCrash) {
  const graph::Module module = parsed(
      "fn @main(%x: tensor[2; i64], %y: tensor[n, 3; f32], %s: shape[n, 3]) -> i64 {\n"
      "  %e = match_elements(%x, [p, q]) size(p) }");
  const std::string text = call("tenon.to_json", module, 0).as<String>().str();
  int refused = 0;
  const auto check = [&](const std::string& mutant) {
    try {
      call("tenon.print", call("tenon.from_json", mutant, Any()));
    } catch (const Error& error) {
      EXPECT_NE(error.kind(), ErrorKind::Internal) << error.render();
      refused += error.render().find("contradicts itself") != std::string::npos;
    }
  };
  // Other arrays, and the opposite of what is said to be known.
  const std::string node = "{\"node\":";
  for (size_t at = text.find(node); at != std::string::npos; at = text.find(node, at + 1)) {
    for (const char* other : {"0", "1", "2", "3"}) {
      std::string mutant = text;
      const size_t number = at + node.size();
      mutant.replace(number, mutant.find('}', number) - number, other);
      check(mutant);
    }
  }
  for (const char* known : {"true", "false"}) {
    for (size_t at = text.find(known); at != std::string::npos; at = text.find(known, at + 1)) {
      std::string mutant = text;
      mutant.replace(at, std::strlen(known), known[0] == 't' ? "false" : "true");
      check(mutant);
    }
  }
  EXPECT_GT(refused, 5);

  std::string deep = R"({"tenon":1,"root":{"node":200},"nodes":[{"array":[]},{"$type":)"
                     R"("graph.TupleType","fields":{"node":0}})";
  for (int i = 1; i < 200; ++i) {
    deep += cat(R"(,{"$type":"graph.ArrayType","element":{"node":)", i, "}}");
  }
  EXPECT_THAT(failure_of([&] { call("tenon.from_json", deep + "]}", Any()); }),
              HasSubstr("a type is too large"));
  // A tree of 2^40 parts.
  std::string wide = R"({"tenon":1,"root":{"node":80},"nodes":[{"array":[]},{"$type":)"
                     R"("graph.TupleType","fields":{"node":0}})";
  for (int i = 1; i < 80; i += 2) {
    wide += cat(R"(,{"array":[{"node":)", i, R"(},{"node":)", i, "}]}");
    wide += cat(R"(,{"$type":"graph.TupleType","fields":{"node":)", i + 1, "}}");
  }
  EXPECT_THAT(failure_of([&] { call("tenon.from_json", wide + "]}", Any()); }),
              HasSubstr("a type is too large"));
}

TEST(Json, ObjectsThatNestDeepAreRefused) {
  std::string text = R"({"tenon":1,"root":{"node":0},"nodes":[{"$type":"graph.TypeVar"},)"
                     R"({"$type":"graph.Var","type":{"node":0}})";
  for (int i = 1; i < 3000; ++i) {
    text += cat(R"(,{"$type":"graph.Field","tuple":{"node":)", i, "}}");
  }
  EXPECT_THAT(failure_of([&] { call("tenon.from_json", text + "]}", Any()); }),
              HasSubstr("objects are nested deeper than"));
}

// A kernel of each kind, with statements, stages and expressions of most kinds.
constexpr const char* kKernels = R"(
compute @soft(%x: tensor[n, m; f32], %at: tensor[n; i64]) -> (%y) {
  reduce max %top: tensor[n; f32] at [%i] over [%j < m] { %x[%i, %j] }
  map %y: tensor[n, m; f32] at [%i, %j] {
    $0 = checked(%at[%i], m)
    select(%j < $0, exp(%x[%i, %j] - %top[%i]), cast(f32, %j))
  }
}

kernel @blur(%x: tensor[n, m; f32]) -> (%y: tensor[n, m; f32]) {
  parallel %i from 0 count dim(n) {
    scratch %s: tensor[4; f32]
    vector %j from 0 count 4 {
      %s[%j] = 0.5
    }
    let %k = floordiv(dim(m), 2)
    for %j from 0 count dim(m) {
      if %j < %k {
        %y[%i, %j] = %x[%i, %j] * %s[mod(%j, 4)]
      } else {
        %y[%i, %j] = abs(%x[%i, %j])
      }
    }
  }
}

fn @main(%x: tensor[n, m; f32], %at: tensor[n; i64]) -> tensor[n, m; f32] {
  %y = kernel @soft(%x, %at)
  %z = kernel @blur(%y)
  %z
}
)";

// Each dtype, each number and each reference to a node is replaced: reading must give an error or a
// module that compiles.
TEST(Json, AKernelThatIsDamagedIsAnErrorAndNoCrash) {
  const std::string text = call("tenon.to_json", parsed(kKernels), 0).as<String>().str();
  int refused = 0, compiled = 0;
  auto attempt = [&](size_t at, size_t end, const std::string& other) {
    const std::string mutant = text.substr(0, at) + other + text.substr(end);
    if (mutant == text) return;
    try {
      const Any value = call("tenon.from_json", mutant, Any());
      if (value.is_none() || !value.is<graph::Module>()) return;
      call("tenon.compile", value, Map<String, Any>());
      ++compiled;
    } catch (const Error& error) {
      EXPECT_NE(error.kind(), ErrorKind::Internal) << error.render() << mutant;
      ++refused;
    }
  };
  auto each = [&](const std::string& mark, const std::function<void(size_t at)>& visit) {
    for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
      visit(at + mark.size());
    }
  };
  each("{\"dtype\":\"", [&](size_t at) {
    for (const char* other : {"float32", "int64", "int8", "bool", "void", "float32x4"}) {
      attempt(at, text.find('"', at), other);
    }
  });
  for (const char* mark : {"\"op\":", "\"bits\":", "\"kind\":", "\"loop\":", "\"reduction\":"}) {
    each(mark, [&](size_t at) {
      for (int64_t other : {int64_t{0}, int64_t{5}, int64_t{255}, INT64_MIN}) {
        attempt(at, text.find_first_of(",}", at), cat(other));
      }
    });
  }
  each("{\"node\":", [&](size_t at) {
    const size_t end = text.find('}', at);
    const int64_t node = std::stoll(text.substr(at));
    for (int64_t other : {node - 1, node - 7}) {
      if (other >= 0) attempt(at, end, cat(other));
    }
    attempt(at - 8, end + 1, "null");
  });
  EXPECT_GT(refused, 100);
  EXPECT_GT(compiled, 10);
}

}  // namespace
}  // namespace tenon::driver
