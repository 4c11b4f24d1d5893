// Every kind of argument that an entry must refuse, and its error.
#include <gtest/gtest.h>

#include "codegen/llvm/jit_testing.h"
#include "loop/kernel.h"
#include "loop/tensors_testing.h"

namespace tenon::codegen {
namespace {

using namespace loop;  // NOLINT: for the kernels below
using vm::KernelError;

const Dim n = Dim::symbol("n"), m = Dim::symbol("m"), k = Dim::symbol("k");

// out[n, m+1] = a[n, m] (its last column repeated) + b[m, 4] + k
const OpenedKernels& opened() {
  static OpenedKernels kernels([] {
    auto a = buffer("a", f32, {n, m}), b = buffer("b", i32, {m, Dim(4)});
    auto out = buffer("out", f32, {n, m + Dim(1)});
    auto i = var("i", i64), j = var("j", i64);
    auto nest = [](const Ref<const Var>& v, const ExprRef& extent, const StmtRef& body) {
      auto f = make<For>();
      f->var = v;
      f->begin = index(0);
      f->extent = extent;
      f->body = body;
      return StmtRef(f);
    };
    auto s = make<Store>();
    s->buffer = out;
    s->indices = {i, j};
    s->value = cast(f32, dim_value(k));
    auto kernel = make<Kernel>();
    kernel->name = "subject";
    kernel->inputs = {a, b};
    kernel->outputs = {out};
    kernel->integers = {"k"};
    kernel->body = nest(i, dim_value(n), nest(j, dim_value(m + Dim(1)), s));

    auto x = buffer("x", f32, {n}), y = buffer("y", f32, {n});
    auto copy = make<Store>();
    copy->buffer = y;
    copy->indices = {i};
    copy->value = at(x, {i}) + literal(f32, 1);
    auto in_place = make<Kernel>();
    in_place->name = "in_place";
    in_place->inputs = {x};
    in_place->outputs = {y};
    in_place->in_place = {InPlace(0, 0)};
    in_place->body = nest(i, dim_value(n), copy);

    auto p = buffer("p", f32, {n, m}), q = buffer("q", f32, {n * m}),
         r = buffer("r", f32, {bcast(n, m)});
    auto zero = make<Store>();
    zero->buffer = q;
    zero->indices = {i};
    zero->value = literal(f32, 0);
    auto product = make<Kernel>();
    product->name = "product";
    product->inputs = {p, r};
    product->outputs = {q};
    product->body = nest(i, dim_value(n * m), zero);

    // b0[n + m], ..., b8[n + m] from a0[n], ..., a60[n], c[m], which are checked in loops. Each bJ
    // may take c's place.
    auto wide = make<Kernel>();
    wide->name = "wide";
    std::vector<Ref<const Buffer>> from, to;
    for (int a = 0; a <= 60; ++a) from.push_back(buffer(cat("a", a), f32, {n}));
    from.push_back(buffer("c", f32, {m}));
    for (int b = 0; b <= 8; ++b) to.push_back(buffer(cat("b", b), f32, {n + m}));
    wide->inputs = Array<Ref<const Buffer>>(from.begin(), from.end());
    wide->outputs = Array<Ref<const Buffer>>(to.begin(), to.end());
    wide->in_place = {InPlace(0, 61), InPlace(8, 61)};
    auto last = make<Store>();
    last->buffer = to[8];
    last->indices = {index(0)};
    last->value = at(from[60], {index(0)}) + cast(f32, dim_value(m));
    wide->body = last;
    return compile_kernels({kernel, in_place, product, wide}, host_target());
  }());
  return kernels;
}
OpenedKernels& subject() {
  return const_cast<OpenedKernels&>(opened());
}

std::vector<Any> good() {
  return {Tensor::empty({3, 2}, f32), Tensor::empty({2, 4}, i32), Tensor::empty({3, 3}, f32),
          int64_t{7}};
}
void expect_refused(const std::vector<Any>& arguments, KernelError code, int32_t argument,
                    int32_t axis, int64_t found, int64_t expected,
                    const std::string& kernel = "subject") {
  OpenedKernels& s = subject();
  EXPECT_NE(s.call(kernel, arguments), 0);
  EXPECT_EQ(s.raised.kernel, kernel);
  EXPECT_EQ(s.raised.code, code);
  EXPECT_EQ(s.raised.argument, argument);
  EXPECT_EQ(s.raised.axis, axis);
  EXPECT_EQ(s.raised.found, found);
  EXPECT_EQ(s.raised.expected, expected);
}
std::vector<Any> with(size_t i, Any value) {
  auto arguments = good();
  arguments[i] = std::move(value);
  return arguments;
}

TEST(Entry, TakesWhatFits) {
  auto arguments = good();
  ASSERT_EQ(subject().call("subject", arguments), 0);
  EXPECT_EQ(arguments[2].as<Tensor>().data_as<float>()[8], 7);
  // Empty tensors at any address.
  EXPECT_EQ(subject().call("subject", {Tensor::empty({0, 2}, f32), Tensor::empty({2, 4}, i32),
                                       Tensor::empty({0, 3}, f32), int64_t{7}}),
            0);
}

TEST(Entry, RefusesAnotherCount) {
  auto arguments = good();
  arguments.pop_back();
  expect_refused(arguments, KernelError::ArgumentCount, -1, -1, 3, 4);
  expect_refused({}, KernelError::ArgumentCount, -1, -1, 0, 4);
}

TEST(Entry, RefusesWhatIsNoTensor) {
  for (size_t i = 0; i < 3; ++i) {
    auto at = static_cast<int32_t>(i);
    expect_refused(with(i, Any()), KernelError::NotATensor, at, -1, TypeIndex::None,
                   TypeIndex::Tensor);
    expect_refused(with(i, int64_t{0x1234}), KernelError::NotATensor, at, -1, TypeIndex::Int,
                   TypeIndex::Tensor);
    expect_refused(with(i, String("a longer string")), KernelError::NotATensor, at, -1,
                   TypeIndex::Str, TypeIndex::Tensor);
  }
}

TEST(Entry, RefusesWhatIsNoIntegerOrNegative) {
  expect_refused(with(3, 1.5), KernelError::NotAnInteger, 3, -1, TypeIndex::Float, TypeIndex::Int);
  expect_refused(with(3, true), KernelError::NotAnInteger, 3, -1, TypeIndex::Bool, TypeIndex::Int);
  expect_refused(with(3, int64_t{-5}), KernelError::NegativeSize, 3, -1, -5, 0);
}

TEST(Entry, RefusesAnotherElementType) {
  expect_refused(with(0, Tensor::empty({3, 2}, f64)), KernelError::Dtype, 0, -1, f64.word(),
                 f32.word());
  expect_refused(with(1, Tensor::empty({2, 4}, u32)), KernelError::Dtype, 1, -1, u32.word(),
                 i32.word());
}

TEST(Entry, RefusesAnotherRank) {
  expect_refused(with(0, Tensor::empty({3, 2, 1}, f32)), KernelError::Rank, 0, -1, 3, 2);
  expect_refused(with(2, Tensor::empty({9}, f32)), KernelError::Rank, 2, -1, 1, 2);
}

TEST(Entry, RefusesSizesThatDisagree) {
  expect_refused(with(1, Tensor::empty({3, 4}, i32)), KernelError::Dimension, 1, 0, 3, 2);
  expect_refused(with(1, Tensor::empty({2, 5}, i32)), KernelError::Dimension, 1, 1, 5, 4);
  expect_refused(with(2, Tensor::empty({3, 2}, f32)), KernelError::Dimension, 2, 1, 2, 3);
  expect_refused(with(2, Tensor::empty({4, 3}, f32)), KernelError::Dimension, 2, 0, 4, 3);
}

TEST(Entry, RefusesSizesThatOverflowOrDoNotBroadcast) {
  // Tensors without elements may have huge sizes; their products must not wrap.
  const int64_t huge = int64_t{1} << 40;
  auto empty = [](std::vector<int64_t> shape) {
    static float element;
    return Tensor::view(&element, shape, f32, {}, false);
  };
  Tensor one = Tensor::empty({1}, f32);
  EXPECT_EQ(subject().call("product", {Tensor::empty({2, 2}, f32), Tensor::empty({2}, f32),
                                       Tensor::empty({4}, f32)}),
            0);
  expect_refused({Tensor::empty({2, 3}, f32), Tensor::empty({3}, f32), Tensor::empty({6}, f32)},
                 KernelError::Dimension, -1, -1, 2, 3, "product");
  try {
    Tensor wide = empty({huge, 0});
    EXPECT_NE(subject().call("product", {wide, one, Tensor::empty({0}, f32)}), 0);
  } catch (const Error&) {
    // A tensor that can't exist needs no check.
  }
}

TEST(Entry, RefusesAnotherDevice) {
  alignas(64) static float data[6];
  Tensor elsewhere =
      Tensor::view(data, std::vector<int64_t>{3, 2}, f32, {}, false, DLDevice{kDLCUDA, 1});
  expect_refused(with(0, elsewhere), KernelError::Device, 0, -1, kDLCUDA | int64_t{1} << 32,
                 kDLCPU);
}

TEST(Entry, RefusesOutputsThatAreReadOnly) {
  Tensor constant = Tensor::empty({3, 3}, f32).as_read_only();
  expect_refused(with(2, constant), KernelError::NotWritable, 2, -1, 0, 0);
  EXPECT_EQ(subject().call("subject", with(0, Tensor::empty({3, 2}, f32).as_read_only())), 0);
}

TEST(Entry, RefusesStridedAndUnalignedData) {
  static float data[64];
  static int64_t shape[] = {3, 2}, strides[] = {4, 1};
  auto managed = [](float* at) {
    auto* t = new DLManagedTensor();
    t->dl_tensor = {at, kCpu, 2, f32, shape, strides, 0};
    t->deleter = [](DLManagedTensor* self) { delete self; };
    return Tensor::from_dlpack(t);
  };
  strides[0] = 4;
  expect_refused(with(0, managed(data)), KernelError::NotCompact, 0, 0, 4, 2);
  strides[0] = 2;
  EXPECT_EQ(subject().call("subject", with(0, managed(data + 1))), 0)
      << "unaligned to 64 bytes is fine";
  auto* odd = reinterpret_cast<float*>(reinterpret_cast<char*>(data) + 2);
  expect_refused(with(0, managed(odd)), KernelError::Alignment, 0, -1, 2, 4);
}

TEST(Entry, RefusesOutputsThatOverlap) {
  auto storage = Tensor::empty({100}, f32);
  auto view = [&](int64_t offset, std::vector<int64_t> shape) {
    return Tensor::view(storage.data_as<float>() + offset, shape, f32, storage.ref(), false);
  };
  auto arguments = good();
  arguments[0] = view(0, {3, 2});
  arguments[2] = view(5, {3, 3});
  expect_refused(arguments, KernelError::Overlap, 2, -1, 0, 0);
  arguments[2] = view(6, {3, 3});
  EXPECT_EQ(subject().call("subject", arguments), 0) << "side by side";
  arguments[0] = view(14, {3, 2});
  expect_refused(arguments, KernelError::Overlap, 2, -1, 0, 0);
  // Only in place where declared, and only as a whole.
  EXPECT_EQ(subject().call("in_place", {view(0, {8}), view(0, {8})}), 0);
  expect_refused({view(0, {8}), view(1, {8})}, KernelError::Overlap, 1, -1, 0, 0, "in_place");
  EXPECT_EQ(subject().call("in_place", {view(3, {0}), view(3, {0})}), 0)
      << "nothing overlaps nothing";
}

TEST(Entry, OfManyTensorsChecksTheSame) {
  auto all = [] {
    std::vector<Any> arguments;
    for (int a = 0; a <= 60; ++a) arguments.emplace_back(Tensor::empty({1}, f32));
    arguments.emplace_back(Tensor::empty({2}, f32));
    for (int b = 0; b <= 8; ++b) arguments.emplace_back(Tensor::empty({3}, f32));
    return arguments;
  };
  auto changed = [&](size_t i, Any value) {
    auto arguments = all();
    arguments[i] = std::move(value);
    return arguments;
  };
  auto good = all();
  good[60].as<Tensor>().data_as<float>()[0] = 5;
  ASSERT_EQ(subject().call("wide", good), 0);
  EXPECT_EQ(good[70].as<Tensor>().data_as<float>()[0], 7);

  auto short_of_one = all();
  short_of_one.pop_back();
  expect_refused(short_of_one, KernelError::ArgumentCount, -1, -1, 70, 71, "wide");
  expect_refused(changed(70, Any()), KernelError::NotATensor, 70, -1, TypeIndex::None,
                 TypeIndex::Tensor, "wide");
  expect_refused(changed(60, Tensor::empty({1}, f64)), KernelError::Dtype, 60, -1, f64.word(),
                 f32.word(), "wide");
  expect_refused(changed(3, Tensor::empty({1, 1}, f32)), KernelError::Rank, 3, -1, 2, 1, "wide");
  expect_refused(changed(60, Tensor::empty({2}, f32)), KernelError::Dimension, 60, 0, 2, 1, "wide");
  expect_refused(changed(69, Tensor::empty({2}, f32)), KernelError::Dimension, 69, 0, 2, 3, "wide");
  expect_refused(changed(70, Tensor::empty({3}, f32).as_read_only()), KernelError::NotWritable, 70,
                 -1, 0, 0, "wide");

  auto storage = Tensor::empty({100}, f32);
  auto view = [&](int64_t offset, int64_t size) {
    return Tensor::view(storage.data_as<float>() + offset, std::vector<int64_t>{size}, f32,
                        storage.ref(), false);
  };
  auto overlapping = changed(2, view(2, 1));
  overlapping[66] = view(0, 3);
  expect_refused(overlapping, KernelError::Overlap, 66, -1, 2, 0, "wide");
  overlapping[66] = view(3, 3);
  EXPECT_EQ(subject().call("wide", overlapping), 0) << "side by side";
  overlapping[70] = view(5, 3);
  expect_refused(overlapping, KernelError::Overlap, 66, -1, 70, 0, "wide");
  auto shared = changed(61, view(0, 2));
  shared[62] = view(0, 3);
  EXPECT_EQ(subject().call("wide", shared), 0) << "in place";
  shared[62] = view(1, 3);
  expect_refused(shared, KernelError::Overlap, 62, -1, 61, 0, "wide");
  shared[62] = all()[62];
  shared[63] = view(0, 3);
  expect_refused(shared, KernelError::Overlap, 63, -1, 61, 0, "wide");
}

}  // namespace
}  // namespace tenon::codegen
