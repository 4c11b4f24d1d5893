#include "graph/ir/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <time.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include "graph/ir/builder.h"
#include "graph/ir/check.h"
#include "graph/ir/operators_testing.h"
#include "object/reflect.h"
#include "support/error_testing.h"
#include "support/poll.h"

namespace tenon::graph {
namespace {

using ::testing::HasSubstr;

class TextTest : public ::testing::Test {
 protected:
  TextTest() {
    register_test_operators();
    register_graph_types();
  }
  std::string error(std::string_view text) {
    try {
      parse_module(text, "t.tn");
    } catch (const Error& e) {
      return e.render();
    }
    return "no error";
  }
  // Parses the text, prints the module, and requires that this parses back to an equal module.
  std::string again(std::string_view text) {
    Module m = parse_module(text, "t.tn");
    check_module(m);
    std::string once = to_text(m);
    Module back = parse_module(once, "once.tn");
    EXPECT_TRUE(structural_equal(m, back)) << once;
    EXPECT_EQ(structural_hash(m), structural_hash(back)) << once;
    EXPECT_EQ(to_text(back), once);
    return once;
  }
};

TEST_F(TextTest, AFunction) {
  EXPECT_EQ(again(R"(
    fn @main(%x: tensor[n, 4; f32], %w: tensor[4, 8; f32]) -> tensor[n, 8; f32] {
      %y = matmul(%x, %w)
      relu(%y)
    })"),
            R"(fn @main(%x: tensor[n, 4; f32], %w: tensor[4, 8; f32]) -> tensor[n, 8; f32] {
  %y: tensor[n, 8; f32] = matmul(%x, %w)
  %0: tensor[n, 8; f32] = relu(%y)
  %0
}
)");
}

TEST_F(TextTest, RecursionOnScalars) {
  EXPECT_THAT(again(R"(
    fn @fib(%n: i64) -> i64 {
      %c = less(%n, 2)
      %r = if %c { %n } else {
        %a = sub(%n, 1)
        %b = sub(%n, 2)
        %x = @fib(%a)
        %y = @fib(%b)
        add(%x, %y)
      }
      %r
    })"),
              HasSubstr("%r: i64 = if %c {\n    %n\n  } else {"));
}

TEST_F(TextTest, Loops) {
  again(R"(
    fn @count(%limit: i64, %x: tensor[n; f32]) -> (i64, tensor[n; f32]) {
      loop (%i: i64 = 0, %acc: tensor[n; f32] = %x) while { less(%i, %limit) } {
        %next = add(%i, 1)
        %sum = add(%acc, %x)
        (%next, %sum)
      }
    })");
}

TEST_F(TextTest, DataTypesMatchAndLiterals) {
  again(R"(
    type tree[T] { Leaf, Node(tree[T], T, tree[T]) }
    fn @map[T, U](%f: fn(T) -> U, %xs: list[T]) -> list[U] {
      match %xs {
        Nil => { Nil[U]() }
        Cons(%h, %t) => {
          %y = %f(%h)
          %ys = @map(%f, %t)
          Cons(%y, %ys)
        }
      }
    }
    fn @main(%xs: list[i64], %k: i64) -> option[list[i64]] {
      %f = fn(%x: i64) -> i64 { add(%x, %k) }
      %ys = @map(%f, %xs)
      Some(%ys)
    }
    fn @depth(%t: tree[f32]) -> i64 {
      match %t {
        Leaf => { 0 }
        Node(%l, _, %r) => {
          %a = @depth(%l)
          %b = @depth(%r)
          %c = less(%a, %b)
          %m = if %c { %b } else { %a }
          add(%m, 1)
        }
      }
    }
    fn @rec(%n: i64) -> i64 {
      %down = fn %self(%i: i64) -> i64 {
        %c = less(%i, 1)
        if %c { 0 } else {
          %j = sub(%i, 1)
          %self(%j)
        }
      }
      %down(%n)
    })");
}

TEST_F(TextTest, SizesThatOnlyRunningTells) {
  std::string text = again(R"(
    fn @main(%x: tensor[n; f32], %y: tensor[m; f32], %s: tensor[2; i64]) -> tensor[rank=2; i64] {
      %z = add(%x, %y)
      check n <= 2*m + 1, "room"
      %e = match_elements(%s, [a, b])
      %i = nonzero(%z)
      %i
    })");
  EXPECT_THAT(text, HasSubstr("check n ~ m, \"add: sizes of axis -1 to broadcast\""));
  EXPECT_THAT(text, HasSubstr("tensor[bcast(m, n); f32] = add(%x, %y)"));
  EXPECT_THAT(text, HasSubstr("tensor[1, nonzero; i64] = match_shape(%i, [1, nonzero])"));
  EXPECT_THAT(text, HasSubstr("tensor[2; i64] = [a, b] = match_elements(%s, [a, b])"));
}

TEST_F(TextTest, CallsOfAllKinds) {
  again(R"(
    kernel @k(%a: tensor[n; f32], %b: tensor[m; f32]) -> (%c: tensor[n*p; f32]) integers(p) {
      for %i from 0 count dim(n*p) { %c[%i] = 0.0 }
    }
    fn @main(%x: tensor[n; f32], %t: array[tensor[*; f32]], %o: opaque["handle"])
        -> (tensor[*; f32], tensor[2*n; f32], ()) attrs(export=false) {
      %a = packed "lib.pick"(%t, 3, "key", shape[2, 3], how=[1.5, -2.0], t=i8, tag="a", ks=[1, 2], d=dim(n+1)) -> tensor[*; f32]
      %b = kernel @k(%x, %x, integers=[2])
      %s = packed "memory.storage"(size=dim(8*n)) -> opaque["storage"]
      %m = packed "memory.tensor"(%s, offset=dim(0), shape=[dim(2*n)]) -> tensor[2*n; f32]
      %c = kernel @k(%x, %x, %m, integers=[2])
      %d = packed "lib.none"(%o) -> ()
      %e = clip(%x, (), tensor[f32]{1.0})
      (%a, %b, %d)
    })");
}

TEST_F(TextTest, AttributesOfAllKinds) {
  EXPECT_THAT(again(R"(
    fn @main(%x: tensor[n; f32]) -> tensor[n; f32] {
      tagged(%x, i=-3, f=2, b=true, s="a\"b\n", t=bool, is=[1, -2], fs=[0.5, inf], d=n+1, ds=[n, 2*n])
    })"),
              HasSubstr("tagged(%x, i=-3, f=2.0, b=true, s=\"a\\\"b\\n\", t=bool, is=[1, -2], "
                        "fs=[0.5, inf], d=n + 1, ds=[n, 2*n])"));
  EXPECT_THAT(again("fn @main(%x: tensor[n; f32]) -> tensor[n; f32] { tagged(%x) }"),
              HasSubstr("= tagged(%x)\n"));
}

TEST_F(TextTest, OddNames) {
  std::string text = again(R"(
    fn @"/a b"(%"x.1": tensor["batch size", "min"; f32]) -> tensor["batch size", "min"; f32] {
      %"y\x01" = relu(%"x.1")
      %"y\x01"
    })");
  EXPECT_THAT(text, HasSubstr("tensor[\"batch size\", \"min\"; f32]"));
}

TEST_F(TextTest, FloatsAreExact) {
  float values[] = {0.1f,     -0.0f,     1e-45f, std::numeric_limits<float>::max(),
                    INFINITY, -INFINITY, NAN,    3.0f};
  uint32_t payload = 0xffc12345;
  float odd;
  std::memcpy(&odd, &payload, 4);
  values[7] = odd;
  Builder b;
  b.at(Span::node("/t"));
  Operand c = constant(Tensor::copy_of<float>(Shape{8}.dims(), f32, values));
  Operand d = b.tuple({c, constant_float(f32, 0.1f), constant_float(f64, 0.1),
                       constant_float(f64, -std::numeric_limits<double>::infinity())});
  Map<String, FunctionRef> functions;
  functions.set("main", b.finish("main", d));
  Module m = make_module(functions);
  std::string text = to_text(m);
  EXPECT_THAT(text, HasSubstr("{0.1, -0.0, 1e-45, 3.4028235e+38, inf, -inf, nan, "
                              "nan(0xffc12345)}, 0.1, f64(0.1), f64(-inf))"));
  EXPECT_TRUE(structural_equal(m, parse_module(text, "t.tn"))) << text;
}

TEST_F(TextTest, ASizeAlone) {
  const Dim n = Dim::symbol("n"), odd = Dim::symbol("batch size");
  EXPECT_EQ(parse_size("2*n + 1"), 2 * n + 1);
  EXPECT_EQ(parse_size("floordiv(n, 2)"), floordiv(n, 2));
  EXPECT_EQ(parse_size("\"batch size\""), odd);
  for (const char* text : {"", "n +", "n n", "n)", "batch size", "?", "1 / 0"}) {
    EXPECT_THROW(parse_size(text), Error) << text;
  }
}

TEST_F(TextTest, LargeConstantsLieBesideTheText) {
  std::string folder = ::testing::TempDir() + "/tenon_text_test";
  std::filesystem::create_directories(folder);
  std::vector<int64_t> shape = {5, 20};
  Tensor t = Tensor::empty(shape, f32);
  for (int i = 0; i < 100; ++i) t.data_as<float>()[i] = static_cast<float>(i) / 3;
  Builder b;
  b.at(Span::node("/t"));
  Operand y = b.op("relu", {constant(t, "conv.w")});
  Map<String, FunctionRef> functions;
  functions.set("main", b.finish("main", y));
  Module m = make_module(functions);
  EXPECT_THAT(error(to_text(m)), HasSubstr("constant \"conv.w\" are left out"));
  save_module(m, folder + "/m.tn");
  std::string text = to_text(m, {"m.tn.weights", false});
  EXPECT_THAT(text, HasSubstr("tensor[5, 20; f32] from \"conv.w\""));
  Module back = parse_module(text, folder + "/m.tn");
  EXPECT_TRUE(structural_equal(m, back));
  const std::string other = text.replace(text.find("[5, 20; f32] from"), 7, "[5, 21;");
  const std::string mismatch = failure_of([&] { parse_module(other, folder + "/m.tn"); });
  EXPECT_THAT(mismatch, HasSubstr("the weight file's \"conv.w\" doesn't fit the type in the text"));
  EXPECT_THAT(mismatch, HasSubstr("found     tensor[5, 20; f32]"));
  EXPECT_THAT(mismatch, HasSubstr("expected  tensor[5, 21; f32]"));
  EXPECT_THAT(error("weights \"../x\" fn @f() -> i64 { %a = tensor[70; f32] from \"k\" 0 }"),
              HasSubstr("leaves the folder"));
}

TEST_F(TextTest, SpansCanBePrinted) {
  Module m = parse_module(
      "fn @f(%x: tensor[n; f32]) -> tensor[n; f32] {\n  %y = relu(%x) at(\"a.onnx\", 3, 4, nodes "
      "\"/r\", \"/s\")\n  relu(%y)\n}",
      "t.tn");
  PrintOptions spans;
  spans.show_spans = true;
  std::string text = to_text(m, spans);
  EXPECT_THAT(text, HasSubstr("relu(%x) at(\"a.onnx\", 3, 4, nodes \"/r\", \"/s\")"));
  EXPECT_THAT(text, HasSubstr("relu(%y) at(\"t.tn\", 3, 3)"));
  EXPECT_EQ(to_text(parse_module(text, "u.tn"), spans), text);
}

TEST_F(TextTest, Kernels) {
  EXPECT_EQ(
      again(R"(
    kernel @k(%x: tensor[n, 4; f32], %b: tensor[4; f16]) -> (%y: tensor[n, 4; f32]) in_place(0 = 0) {
      parallel %i from 0 count dim(n) {
        scratch %s: tensor[4; f32]
        let %t = (%i * 4) + 1
        $0 = cast(f32, %b[0])
        vector %j from 0 count 4 {
          %s[%j] = select(%t <= 7, $0 + exp($0), max(%x[%i, %j], nan))
        }
        seq { %y[%i, 0] = %s[checked(%t, n)] }
        { let %u = i8(-3)  if cast(i64, %u) == 0 { } else { %y[0] = f32(2.5) } }
        unrolled %k from 1 count 3 { %y[%i, %k] = -1.5 }
      }
    })"),
      R"(kernel @k(%x: tensor[n, 4; f32], %b: tensor[4; f16]) -> (%y: tensor[n, 4; f32]) in_place(0 = 0) {
  parallel %i from 0 count dim(n) {
    scratch %s: tensor[4; f32]
    let %t = (%i * 4) + 1
    vector %j from 0 count 4 {
      $0 = cast(f32, %b[0])
      %s[%j] = select(%t <= 7, $0 + exp($0), max(%x[%i, %j], nan))
    }
    seq {
      %y[%i, 0] = %s[checked(%t, n)]
    }
    {
      let %u = i8(-3)
      if cast(i64, %u) == 0 {
      } else {
        %y[0] = 2.5
      }
    }
    unrolled %k from 1 count 3 {
      %y[%i, %k] = -1.5
    }
  }
}
)");
}

// Each production that may hold itself, as often as the text says.
TEST_F(TextTest, DeepTextIsRefused) {
  const auto deep = [](std::string_view open, std::string_view inside, std::string_view close) {
    std::string out;
    for (int i = 0; i < 100'000; ++i) out += open;
    out += inside;
    for (int i = 0; i < 100'000; ++i) out += close;
    return out;
  };
  for (const std::string& value :
       {deep("Some(", "1", ")"), deep("Cons(1, ", "Nil", ")"), deep("@main(", "1", ")"),
        deep("array[i64](", "1", ")"), deep("(", "1", ")"), deep("add(", "1", ", 1)"),
        deep("fn(%x: i64) -> i64 {", "1", "}"), deep("if true {", "1", "} else { 1 }"),
        deep("closure @main(", "1", ")"), deep("match 1 { _ => {", "1", "} }"),
        deep("size(", "1", ")"), deep("size(-", "1", ")")}) {
    const std::string found = error(cat("fn @main(%n: i64) -> i64 { %y = ", value, " %n }"));
    EXPECT_THAT(found, HasSubstr("t.tn:1:")) << value.substr(0, 20);
  }
  for (const std::string& type :
       {deep("option[", "i64", "]"), deep("(", "i64", ",)"), deep("fn(", "i64", ") -> i64"),
        deep("array[", "i64", "]"), deep("tensor[", "1", "; f32]")}) {
    EXPECT_THAT(error(cat("fn @main(%n: ", type, ") -> i64 { 1 }")), HasSubstr("t.tn:1:"));
  }
  EXPECT_THAT(error(cat("fn @main(%n: option[i64]) -> i64 { match %n { ", deep("Some(", "_", ")"),
                        " => { 1 } } }")),
              HasSubstr("t.tn:1:"));
}

// A literal takes the type of the parameter that it is captured for.
TEST_F(TextTest, CapturesHaveTheTypesOfParameters) {
  const std::string text = again(R"(
    fn @pair[T](%x: T, %y: f32) -> (T, f32) { (%x, %y) }
    fn @main() -> (fn(f32) -> (f16, f32), fn() -> (f32, f32)) {
      %f = closure @pair[f16](1)
      %g = closure @pair[f32](1, 2)
      (%f, %g)
    })");
  EXPECT_THAT(text, HasSubstr("closure @pair[f16](f16(1.0))"));
}

TEST_F(TextTest, ErrorsShowThePlace) {
  EXPECT_EQ(error("fn @f(%x: tensor[n; f32]) -> tensor[n; f32] {\n  %y = relu(%z)\n  %y\n}"),
            "error: t.tn:2:13: unknown variable %z\n"
            "  found     %z\n"
            "  expected  a parameter, or a variable that is already bound\n"
            "  2         |   %y = relu(%z)\n"
            "            |             ^");
}

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

TEST_F(TextTest, ParsesLongSumsOfSizesInLinearTime) {
  auto seconds = [](int terms) {
    std::string sum = "s0";
    for (int i = 1; i < terms; ++i) sum += cat(" + s", i);
    double least = 1e9;
    for (int attempt = 0; attempt < 3; ++attempt) {
      const double start = cpu_seconds();
      for (int i = 0; i < 10; ++i) parse_size(sum);
      least = std::min(least, cpu_seconds() - start);
    }
    return least;
  };
  // Sorting adds a logarithm. Adding one term after the other took four times as long.
  EXPECT_LT(seconds(2000), 3 * seconds(1000));
}

class PollCount final : public Poller {
 public:
  void poll() override { ++polls; }
  int polls = 0;
};

TEST_F(TextTest, ParsingIsPolled) {
  auto polls = [](const std::function<void()>& parse) {
    PollCount count;
    Poller::Scope scope(&count);
    parse();
    return count.polls;
  };
  EXPECT_GE(polls([] { parse_size("n + m"); }), 1);
  EXPECT_GE(polls([] { parse_size("(n + m) * (n + 1)"); }), 3);
  // 11 tokens each, and a poll per 4096 of them: when they are read, and when they are parsed.
  std::string kernel = "kernel @k(%x: tensor[n; f32]) -> (%y: tensor[n; f32]) {\n";
  for (int i = 0; i < 4096; ++i) kernel += "  %y[0] = %x[0] + 1.0\n";
  EXPECT_GE(polls([&] { parse_kernels(kernel + "}\n", "k.tn"); }), 20);
  // Also within one token, and where there is none: per kPollBytes, and per 4096 bytes.
  const size_t large = 4 * kPollBytes;
  EXPECT_GE(polls([&] { parse_kernels(std::string(large, ' '), "k.tn"); }), 2000);
  EXPECT_GE(polls([&] { parse_kernels("//" + std::string(large, '/'), "k.tn"); }), 4);
  const auto parse = [](const std::string& text) { EXPECT_THROW(parse_size(text), Error); };
  EXPECT_GE(polls([&] { parse(std::string(large, 'n') + "*"); }), 2000);
  EXPECT_GE(polls([&] { parse('"' + std::string(large, 's')); }), 2000);
}

}  // namespace
}  // namespace tenon::graph
