// Kernels compiled from loop IR by LLVM and LLD and loaded by dlopen, compared with
// loop/evaluator.h.
#include "codegen/llvm/emit.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>

#include "codegen/llvm/jit_testing.h"
#include "loop/statements_testing.h"
#include "loop/tensors_testing.h"
#include "support/error.h"
#include "support/poll.h"
#include "vm/executable/elf_check.h"

namespace tenon::codegen {
namespace {

using namespace loop;  // NOLINT: for the kernels below

StmtRef nest(const Ref<const Var>& v, const ExprRef& extent, ForKind kind, const StmtRef& body) {
  return nest(v, index(0), extent, kind, body);
}

// Compiles, runs with new outputs, and compares with the evaluator, both with and without checked
// accesses.
void expect_as_evaluated(const KernelRef& given, const std::vector<Tensor>& inputs,
                         const Symbols& symbols = {}, double tolerance = 1e-6,
                         bool in_bounds = true) {
  if (in_bounds) expect_as_evaluated(given, inputs, symbols, tolerance, false);
  auto k = make<Kernel>(*given);
  k->in_bounds = in_bounds;
  OpenedKernels opened(compile_kernels({k}, host_target()));
  std::vector<Tensor> expected = evaluate(*k, inputs, symbols);
  std::vector<Any> arguments(inputs.begin(), inputs.end());
  std::vector<Tensor> outputs;
  for (const Tensor& e : expected) {
    outputs.push_back(Tensor::empty(e.shape(), e.dtype()));
    arguments.push_back(outputs.back());
  }
  for (const String& name : k->integers) arguments.push_back(symbols.at(name.str()));
  ASSERT_EQ(opened.call(k->name.str(), arguments), 0) << to_text(*k);
  EXPECT_EQ(opened.workspaces_held, 0);
  for (size_t i = 0; i < outputs.size(); ++i) expect_close(outputs[i], expected[i], tolerance);
}

const Dim n = Dim::symbol("n"), m = Dim::symbol("m");

KernelRef add_kernel(const Dim& size = n) {
  auto a = buffer("a", f32, {size}), b = buffer("b", f32, {size}), c = buffer("c", f32, {size});
  auto i = var("i", i64);
  return kernel("add", {a, b}, {c},
                nest(i, dim_value(size), ForKind::kSerial, put(c, {i}, at(a, {i}) + at(b, {i}))));
}

Tensor numbers(const std::vector<int64_t>& shape, DataType t = f32, uint32_t seed = 1) {
  std::mt19937 rng(seed);
  return random_tensor(t, shape, &rng);
}

TEST(Emit, SymbolsTakeTheirValuesFromShapes) {
  for (int64_t size : {0, 1, 7, 100})
    expect_as_evaluated(add_kernel(), {numbers({size}), numbers({size}, f32, 2)});
}

// 30 kernels: enough for two modules, which two threads compile.
Array<KernelRef> many_kernels() {
  Array<KernelRef> kernels;
  for (int i = 0; i < 30; ++i) {
    auto k = make<Kernel>(*add_kernel());
    k->name = cat("k", i);
    kernels.push_back(k);
  }
  return kernels;
}

EmitOptions two_threads() {
  EmitOptions options;
  options.threads = 2;
  return options;
}

TEST(Emit, TheSameKernelsGiveTheSameBytes) {
  const Array<KernelRef> forward = many_kernels();
  Array<KernelRef> backward;
  for (const KernelRef& k : forward) backward.insert(0, k);
  const Target target = parse_target("x86-64-v3");
  EXPECT_EQ(compile_kernels(forward, target), compile_kernels(backward, target, two_threads()));
}

// New threads need more address space than there is.
class NoMoreThreads {
 public:
  NoMoreThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, size_t{1} << 50);
    pthread_setattr_default_np(&huge);
    pthread_attr_destroy(&huge);
  }
  ~NoMoreThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }

 private:
  pthread_attr_t before_;
};

TEST(Emit, ASystemWithoutThreadsIsAnError) {
  const NoMoreThreads none;
  try {
    compile_kernels(many_kernels(), parse_target("x86-64-v3"), two_threads());
    FAIL() << "the linker's reader needs a thread";
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "cannot link kernels: no thread: Resource temporarily unavailable");
  }
}

TEST(Emit, NamesAreSortedInTheTableAndFeaturesListed) {
  auto b = make<Kernel>(*add_kernel());
  b->name = "beta";
  auto a = make<Kernel>(*add_kernel());
  a->name = "alpha";
  OpenedKernels opened(compile_kernels({b, a}, parse_target("x86-64-v3")));
  ASSERT_EQ(opened.table().count, 2u);
  EXPECT_STREQ(opened.table().entries[0].name, "alpha");
  EXPECT_STREQ(opened.table().entries[1].name, "beta");
  EXPECT_EQ(opened.table().abi_version, vm::kKernelAbiVersion);
  EXPECT_EQ(opened.table().cpu_features[0] >> 8 & 1, 1u);   // avx2
  EXPECT_EQ(opened.table().cpu_features[0] >> 13 & 1, 0u);  // avx512f
}

TEST(Emit, SeveralObjectsMayBeOpenAtOnce) {
  auto other = make<Kernel>(*add_kernel());
  other->name = "other";
  OpenedKernels first(compile_kernels({add_kernel()}, host_target()));
  OpenedKernels second(compile_kernels({other}, host_target()));
  EXPECT_NE(first.entry("add"), second.entry("other"));
}

TEST(Emit, CompilesForAnotherArchitecture) {
  auto bytes = compile_kernels({add_kernel()}, parse_target("aarch64"));
  ASSERT_GT(bytes.size(), 64u);
  EXPECT_EQ(bytes[18] | bytes[19] << 8, 183);  // e_machine: AArch64
}

TEST(Emit, CompilesForRiscV) {
  auto bytes = compile_kernels({add_kernel()}, parse_target("rv64gc"));
  ASSERT_GT(bytes.size(), 64u);
  EXPECT_EQ(bytes[18] | bytes[19] << 8, 243);  // e_machine: RISC-V
  EXPECT_EQ(bytes[48], 1 | 4);  // e_flags: compressed instructions, floats in double registers
  EXPECT_EQ(vm::why_not_closed({reinterpret_cast<const char*>(bytes.data()), bytes.size()}),
            std::nullopt);
}

// Their extensions differ: code for one uses none that another lacks, and is tuned for it.
TEST(Emit, RiscVCpusHaveTheBaseline) {
  const Architecture& riscv64 = architecture_of("riscv64-linux-gnu");
  const std::vector<std::string> names = cpu_names(riscv64);
  EXPECT_EQ(names.front(), "rv64gc");
  EXPECT_EQ(std::ranges::count(names, "sifive-u74"), 1);
  EXPECT_EQ(std::ranges::count(names, "sifive-s21"), 0);  // has no floats
  EXPECT_TRUE(parse_target("sifive-u74", &riscv64).features.empty());
  EXPECT_EQ(parse_target("sifive-u74", &riscv64).tune, "sifive-u74");
}

TEST(Emit, AnUnknownProcessorIsTheUsersMistake) {
  try {
    parse_target("z80");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Usage);
    EXPECT_EQ(e.message(), "unknown x86_64 CPU 'z80'");
  }
}

TEST(Emit, ParallelLoopsBecomeTasksThatCaptureTheirSurroundings) {
  auto a = buffer("a", f32, {n, m}), c = buffer("c", f32, {n, m}), s = buffer("s", f32, {n});
  auto i = var("i", i64), j = var("j", i64), k = var("k", i64);
  // Scratch of symbolic size is workspace, both around the parallel loop and in it.
  auto row = buffer("row", f32, {m}), all = buffer("all", f32, {n});
  StmtRef copy =
      nest(k, dim_value(m), ForKind::kSerial, put(row, {k}, at(a, {i, k}) * at(all, {i})));
  StmtRef write =
      nest(j, dim_value(m), ForKind::kSerial, put(c, {i, j}, at(row, {j}) + at(s, {i})));
  StmtRef body =
      both({nest(k, dim_value(n), ForKind::kSerial, put(all, {k}, at(s, {k}) + literal(f32, 1))),
            nest(i, dim_value(n), ForKind::kParallel, scratch(row, both({copy, write})))});
  KernelRef kern = kernel("tasks", {a, s}, {c}, scratch(all, body));
  expect_as_evaluated(kern, {numbers({3, 5}), numbers({3})});
  expect_as_evaluated(kern, {numbers({300, 500}), numbers({300})});
  expect_as_evaluated(kern, {numbers({0, 5}), numbers({0})});

  OpenedKernels opened(compile_kernels({kern}, host_target()));
  ASSERT_EQ(opened.call("tasks", {numbers({2, 2}), numbers({2}), Tensor::empty({2, 2}, f32)}), 0);
  EXPECT_EQ(opened.parallel_calls, 0) << "too little work to share";
  ASSERT_EQ(
      opened.call("tasks", {numbers({300, 500}), numbers({300}), Tensor::empty({300, 500}, f32)}),
      0);
  EXPECT_EQ(opened.parallel_calls, 1);
}

// Reads uninitialised scratch, where anybody's data may have been.
TEST(Emit, ClearedScratchOnTheStackIsZero) {
  auto c = buffer("c", f32, {100}), t = buffer("t", f32, {100});
  auto i = var("i", i64);
  KernelRef k =
      kernel("peek", {}, {c},
             scratch(t, nest(i, dim_value(100), ForKind::kSerial, put(c, {i}, at(t, {i})))));
  EmitOptions options;
  options.clear_scratch = true;
  OpenedKernels opened(compile_kernels({k}, host_target(), options));
  const Tensor result = numbers({100});
  ASSERT_EQ(opened.call("peek", {result}), 0);
  const auto* values = static_cast<const float*>(result.data());
  for (int64_t at = 0; at < 100; ++at) EXPECT_EQ(values[at], 0) << at;
}

TEST(Emit, RefusedWorkspaceStopsTheKernel) {
  auto a = buffer("a", f32, {n}), c = buffer("c", f32, {n}), t = buffer("t", f32, {n});
  auto i = var("i", i64), j = var("j", i64);
  KernelRef k =
      kernel("work", {a}, {c},
             scratch(t, both({nest(i, dim_value(n), ForKind::kSerial, put(t, {i}, at(a, {i}))),
                              nest(j, dim_value(n), ForKind::kSerial, put(c, {j}, at(t, {j})))})));
  OpenedKernels opened(compile_kernels({k}, host_target()));
  opened.workspace_limit = 100;
  EXPECT_EQ(opened.call("work", {numbers({50}), Tensor::empty({50}, f32)}), -1);
  EXPECT_EQ(opened.call("work", {numbers({10}), Tensor::empty({10}, f32)}), 0);
  EXPECT_EQ(opened.workspaces_held, 0);
}

TEST(Emit, AnIndexFromDataIsChecked) {
  for (ForKind kind : {ForKind::kSerial, ForKind::kParallel}) {
    auto a = buffer("a", f32, {n}), idx = buffer("idx", i32, {m}), c = buffer("c", f32, {m});
    auto i = var("i", i64);
    auto t = buffer("t", f32, {n});
    // The workspace is released on the way out.
    ExprRef taken = at(a, {checked_index(cast(i64, at(idx, {i})), n)});
    KernelRef k =
        kernel("take", {a, idx}, {c}, scratch(t, nest(i, dim_value(m), kind, put(c, {i}, taken))));
    const int32_t good[] = {0, -1, 4, -5, 2};
    Tensor indices = Tensor::copy_of(std::vector<int64_t>{5}, i32, std::span<const int32_t>(good));
    expect_as_evaluated(k, {numbers({5}), indices});
    OpenedKernels opened(compile_kernels({k}, host_target()));
    for (int32_t bad : {5, -6, INT32_MAX, INT32_MIN}) {
      indices.data_as<int32_t>()[3] = bad;
      EXPECT_NE(opened.call("take", {numbers({5}), indices, Tensor::empty({5}, f32)}), 0);
      EXPECT_EQ(opened.raised.code, vm::KernelError::IndexOutOfRange);
      EXPECT_EQ(opened.raised.found, bad);
      EXPECT_EQ(opened.raised.expected, 5);
      EXPECT_EQ(opened.workspaces_held, 0);
    }
  }
}

TEST(Emit, DivisionByZeroStopsTheKernelInLanesToo) {
  for (ForKind kind : {ForKind::kSerial, ForKind::kVector}) {
    auto a = buffer("a", i32, {Dim(8)}), b = buffer("b", i32, {Dim(8)}),
         c = buffer("c", i32, {Dim(8)});
    auto i = var("i", i64);
    KernelRef k = kernel("divide", {a, b}, {c},
                         nest(i, index(8), kind, put(c, {i}, at(a, {i}) / at(b, {i}))));
    OpenedKernels opened(compile_kernels({k}, host_target()));
    Tensor y = numbers({8}, i32, 3);
    for (int64_t e = 0; e < 8; ++e) y.data_as<int32_t>()[e] |= 1;
    EXPECT_EQ(opened.call("divide", {numbers({8}, i32), y, Tensor::empty({8}, i32)}), 0);
    y.data_as<int32_t>()[5] = 0;
    EXPECT_NE(opened.call("divide", {numbers({8}, i32), y, Tensor::empty({8}, i32)}), 0);
    EXPECT_EQ(opened.raised.code, vm::KernelError::DivisionByZero);
    // A guard keeps the lane from failing.
    ExprRef zero = literal_int(i32, 0);
    KernelRef guarded = kernel(
        "guarded", {a, b}, {c},
        nest(i, index(8), kind,
             put(c, {i},
                 select(binary(BinaryOp::kNe, at(b, {i}), zero), at(a, {i}) / at(b, {i}), zero))));
    expect_as_evaluated(guarded, {numbers({8}, i32), y});
  }
}

// ---- vector loops -------------------------------------------------------------------------------

TEST(Vector, AccessesOfEveryStride) {
  const Dim rows(4), columns(32);
  auto a = buffer("a", f32, {rows, columns}), t = buffer("t", f32, {columns, rows});
  auto line = buffer("line", f32, {columns}), one = buffer("one", f32, {rows});
  auto c = buffer("c", f32, {rows, columns}), d = buffer("d", f32, {columns, rows});
  auto i = var("i", i64), j = var("j", i64), v = var("v", i64);
  ExprRef column = j * index(8) + v;
  ExprRef reversed = index(31) - column;
  // Contiguous, strided, backwards, uniform, two columns per element, by remainder.
  ExprRef sum = at(a, {i, column}) + at(t, {column, i}) + at(line, {reversed}) + at(one, {i}) +
                at(line, {binary(BinaryOp::kFloorDiv, column, index(2))}) +
                at(line, {binary(BinaryOp::kMod, column, index(16))}) +
                at(line, {binary(BinaryOp::kFloorDiv, column, index(16))}) +
                at(line, {binary(BinaryOp::kMod, column * index(3), index(32))});
  StmtRef body = both({put(c, {i, column}, sum), put(d, {column, i}, sum * sum)});
  expect_as_evaluated(
      kernel("strides", {a, t, line, one}, {c, d},
             nest(i, index(4), ForKind::kSerial,
                  nest(j, index(4), ForKind::kSerial, nest(v, index(8), ForKind::kVector, body)))),
      {numbers({4, 32}), numbers({32, 4}, f32, 2), numbers({32}, f32, 3), numbers({4}, f32, 4)});
}

TEST(Vector, ConditionsOfLanesMaskLoadsAndStores) {
  auto a = buffer("a", f32, {n}), c = buffer("c", f32, {Dim(32)}), s = buffer("s", i8, {Dim(32)});
  auto j = var("j", i64), v = var("v", i64);
  ExprRef i = j * index(8) + v;
  ExprRef inside = less(i, dim_value(n));
  // Nothing beyond n may be read: the tensor ends there.
  ExprRef guarded = select(inside, at(a, {i}), literal(f32, -1));
  ExprRef strided =
      select(less(i * index(2), dim_value(n)), at(a, {i * index(2)}), literal(f32, 3));
  ExprRef by_any = select(inside, at(a, {j}), literal(f32, 9));
  StmtRef body =
      both({put(c, {i}, guarded + strided + by_any),
            when(binary(BinaryOp::kEq, binary(BinaryOp::kMod, i, index(3)), index(0)),
                 put(s, {i}, literal_int(i8, 1)),
                 when(inside, put(s, {i}, literal_int(i8, 2)), put(s, {i}, literal_int(i8, 3))))});
  KernelRef k =
      kernel("masks", {a}, {c, s},
             nest(j, index(4), ForKind::kSerial, nest(v, index(8), ForKind::kVector, body)));
  for (int64_t size : {4, 5, 13, 32, 40}) expect_as_evaluated(k, {numbers({size})});
}

TEST(Vector, ScratchOfLanesAndUnrolledLoopsWithinThem) {
  auto a = buffer("a", f32, {Dim(6), Dim(16)}), c = buffer("c", f32, {Dim(16)});
  auto k = var("k", i64), v = var("v", i64), q = var("q", i64);
  auto hist = buffer("hist", f32, {Dim(6)}), sum = buffer("sum", f32, {Dim(1)});
  StmtRef body =
      both({put(sum, {index(0)}, literal(f32, 0)),
            nest(k, index(6), ForKind::kUnrolled,
                 both({put(sum, {index(0)}, at(sum, {index(0)}) + at(a, {k, v})),
                       put(hist, {k}, at(sum, {index(0)}))})),
            nest(q, index(6), ForKind::kUnrolled,
                 put(sum, {index(0)}, at(sum, {index(0)}) + at(hist, {q}) * literal(f32, 0.5))),
            put(c, {v}, at(sum, {index(0)}))});
  expect_as_evaluated(
      kernel("lanes", {a}, {c},
             nest(v, index(16), ForKind::kVector, scratch(sum, scratch(hist, body)))),
      {numbers({6, 16})}, {}, 1e-5);
}

TEST(Vector, LoopsThatLanesCannotShareRunInOrder) {
  auto a = buffer("a", f32, {Dim(8)}), c = buffer("c", f32, {Dim(1)});
  auto v = var("v", i64), i = var("i", i64);
  // Every lane adds to the same element.
  StmtRef body = both(
      {put(c, {index(0)}, literal(f32, 0)),
       nest(v, index(8), ForKind::kVector, put(c, {index(0)}, at(c, {index(0)}) + at(a, {v})))});
  expect_as_evaluated(kernel("sum", {a}, {c}, body), {numbers({8})}, {}, 1e-5);
}

// Values in per-lane scratch may differ between lanes, like lane numbers.
TEST(Vector, LoopsThatScratchOfLanesGovernsRunInOrder) {
  auto s = buffer("s", i64, {Dim(1)}), y = buffer("y", i64, {Dim(16)});
  auto i = var("i", i64), j = var("j", i64);
  expect_as_evaluated(
      kernel("staggered", {}, {y},
             nest(i, index(8), ForKind::kVector,
                  scratch(s, both({put(s, {index(0)}, i * index(2)),
                                   nest(j, at(s, {index(0)}), index(2), ForKind::kUnrolled,
                                        put(y, {j}, index(7)))})))),
      {});
}

TEST(Vector, ScratchThatIsAllocatedTwiceHasRoomForTheWiderLoop) {
  auto s = buffer("s", i64, {Dim(1)}), y = buffer("y", i64, {Dim(64)});
  auto i = var("i", i64), j = var("j", i64);
  auto through = [&](const Ref<const Var>& v) {
    return scratch(s, both({put(s, {index(0)}, v), put(y, {v}, at(s, {index(0)}))}));
  };
  const StmtRef wide = nest(i, index(64), ForKind::kVector, through(i)),
                narrow = nest(j, index(2), ForKind::kVector, through(j));
  expect_as_evaluated(kernel("twice", {}, {y}, both({wide, narrow})), {});
  expect_as_evaluated(kernel("twice", {}, {y}, both({narrow, wide})), {});
}

TEST(Vector, LetsKeepTheirValueAndTheirStride) {
  auto a = buffer("a", f32, {Dim(64)}), c = buffer("c", f32, {Dim(32)});
  auto j = var("j", i64), v = var("v", i64), where = var("where", i64), x = var("x", f32);
  auto bind = [](const Ref<const Var>& name, const ExprRef& e, const StmtRef& body) {
    auto l = make<Let>();
    l->var = name;
    l->value = e;
    l->body = body;
    return StmtRef(l);
  };
  StmtRef body = bind(where, j * index(8) + v,
                      bind(x, at(a, {where}) * literal(f32, 2),
                           put(c, {where}, ExprRef(x) * x + at(a, {where + index(32)}))));
  expect_as_evaluated(
      kernel("lets", {a}, {c},
             nest(j, index(4), ForKind::kSerial, nest(v, index(8), ForKind::kVector, body))),
      {numbers({64})}, {}, 1e-5);
}

// A chain of choices over shared values takes time linear in its length.
TEST(Emit, SharedNodesAreComputedOnce) {
  auto a = buffer("a", f32, {Dim(16)}), c = buffer("c", f32, {Dim(16)});
  auto i = var("i", i64);
  ExprRef e = at(a, {i});
  for (int k = 0; k < 60; ++k) {
    ExprRef shared = e + literal(f32, 0.25);
    e = select(less(shared, literal(f32, k % 7)), shared * at(a, {index(k % 16)}), shared - e);
  }
  for (ForKind kind : {ForKind::kSerial, ForKind::kVector})
    expect_as_evaluated(kernel("chain", {a}, {c}, nest(i, index(16), kind, put(c, {i}, e))),
                        {numbers({16})}, {}, 1e-4);
}

// So does an index of lanes that are neighbours, of which the first alone is computed.
TEST(Emit, SharedIndicesOfLanesAreComputedOnce) {
  auto a = buffer("a", f32, {Dim(16)}), c = buffer("c", f32, {Dim(16)});
  auto i = var("i", i64);
  ExprRef place = i;
  for (int level = 0; level < 60; ++level) place = (place + i) - place;
  const StmtRef body = nest(i, index(0), index(16), ForKind::kVector, put(c, {i}, at(a, {place})));
  auto k = make<Kernel>(*kernel("places", {a}, {c}, body));
  k->in_bounds = true;
  expect_as_evaluated(k, {numbers({16})}, {}, 0);
}

// Wherever an expression is, in loops of either kind: nothing recurses over it before this check.
TEST(Emit, TooDeepNestingIsAnError) {
  auto a = buffer("a", f32, {Dim(8)}), b = buffer("b", i64, {Dim(1)}),
       c = buffer("c", f32, {Dim(8)});
  auto i = var("i", i64), j = var("j", i64), t = var("t", i64);
  ExprRef deep = at(b, {index(0)});
  for (int k = 0; k < 100000; ++k) {
    deep = binary(k % 2 == 0 ? BinaryOp::kAdd : BinaryOp::kMin, deep, dim_value(Dim::symbol("k")));
  }
  StmtRef one = put(c, {i}, at(a, {i}));
  const std::pair<const char*, StmtRef> places[] = {
      {"nothing", one},
      {"begin", for_loop(j, deep, index(1), ForKind::kSerial, one)},
      {"value", put(c, {i}, cast(f32, deep))},
      {"index", put(c, {checked_index(deep, 1)}, at(a, {i}))},
      {"loaded", put(c, {i}, at(a, {checked_index(deep, 1)}))},
      {"condition", when(less(deep, index(1)), one)},
      {"let", let(t, deep, one)},
  };
  for (ForKind kind : {ForKind::kSerial, ForKind::kVector}) {
    for (const auto& [place, body] : places) {
      auto compile = [&] {
        compile_kernels({kernel("deep", {a, b}, {c}, nest(i, index(8), kind, body), {"k"})},
                        host_target());
      };
      if (body == one) {
        EXPECT_NO_THROW(compile());
        continue;
      }
      try {
        compile();
        ADD_FAILURE() << place;
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::Unsupported) << place;
        EXPECT_EQ(e.message(), "kernel 'deep' nests expressions too deeply") << place;
      }
    }
  }
}

// Facts about a variable come from its value, so lets nest expressions too.
TEST(Emit, TooDeepNestingThroughLetsIsAnError) {
  auto a = buffer("a", f32, {Dim(1)}), c = buffer("c", f32, {Dim(1)});
  auto i = var("i", i64);
  std::vector<Ref<const Var>> vars;
  ExprRef last = dim_value(Dim::symbol("k"));
  std::vector<ExprRef> values;
  for (int l = 0; l < 100; ++l) {
    for (int k = 0; k < 1000; ++k) last = binary(BinaryOp::kXor, last, index(k % 2 + 1));
    values.push_back(last);
    vars.push_back(var(cat("t", l), i64));
    last = vars.back();
  }
  StmtRef body = put(c, {i}, at(a, {checked_index(last, 1)}));
  for (size_t l = 100; l-- > 0;) body = let(vars[l], values[l], body);
  EXPECT_THROW(
      compile_kernels({kernel("deep", {a}, {c}, nest(i, index(1), ForKind::kSerial, body), {"k"})},
                      host_target()),
      Error);
}

// Processors without arithmetic on halves compare a vector of them lane by lane.
TEST(Emit, HalvesAreComparedWidened) {
  auto a = buffer("a", f16, {n}), b = buffer("b", f16, {n}), c = buffer("c", f16, {n});
  auto i = var("i", i64);
  const KernelRef greatest =
      kernel("greatest", {a, b}, {c},
             nest(i, dim_value(n), ForKind::kSerial,
                  put(c, {i}, binary(BinaryOp::kMax, at(a, {i}), at(b, {i})))));
  const auto compares_halves = [&](std::string_view cpu) {
    std::string text;
    EmitOptions options;
    options.ir_text = &text;
    compile_kernels({greatest}, parse_target(cpu), options);
    EXPECT_NE(text.find("fcmp"), std::string::npos);
    for (size_t at = 0; (at = text.find("fcmp", at)) != std::string::npos; ++at) {
      const std::string line = text.substr(at, text.find('\n', at) - at);
      if (line.find("half") != std::string::npos) return true;
    }
    return false;
  };
  EXPECT_FALSE(compares_halves("x86-64-v3"));
  EXPECT_FALSE(compares_halves("znver5"));
  EXPECT_TRUE(compares_halves("sapphirerapids"));
}

// Counts polls, and throws at one of them.
class CountingPoller final : public Poller {
 public:
  explicit CountingPoller(int stop_at = 0) : stop_at_(stop_at) {}
  void poll() override {
    if (++polls == stop_at_) throw Error(ErrorKind::Runtime, "stopped");
  }
  int polls = 0;

 private:
  int stop_at_;
};

TEST(Emit, StopsBetweenFunctionsAndCanCompileLater) {
  Array<KernelRef> kernels;
  for (int i = 0; i < 10; ++i) {
    auto k = make<Kernel>(*add_kernel());
    k->name = cat("add", i);
    kernels.push_back(k);
  }
  auto polls_with = [&](std::string* assembly) {
    CountingPoller poller;
    Poller::Scope scope(&poller);
    EmitOptions options;
    options.assembly_text = assembly;
    compile_kernels(kernels, host_target(), options);
    return poller.polls;
  };
  std::string assembly;
  polls_with(nullptr);  // compiles what is shared by all objects of this process
  const int once = polls_with(nullptr), generated_twice = polls_with(&assembly);
  // Each kernel is an entry and a body.
  EXPECT_GE(generated_twice - once, 20);
  for (int stop_at = 1; stop_at <= once; stop_at += stop_at < once - 40 ? 17 : 1) {
    CountingPoller poller(stop_at);
    Poller::Scope scope(&poller);
    EXPECT_THROW(compile_kernels(kernels, host_target()), Error);
  }
  EXPECT_EQ(polls_with(nullptr), once);
}

}  // namespace
}  // namespace tenon::codegen
