#include "library_cases.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "object/array.h"
#include "object/shape.h"
#include "object/string_tensor.h"
#include "object/tensor.h"
#include "support/text.h"

namespace tenon {
namespace {

using Arguments = std::vector<Any>;
constexpr int64_t kNone = INT64_MAX;

// ---- tensors of numbers ----

int64_t product(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (const int64_t d : shape) n *= d;
  return n;
}

template <class T, class F>
Tensor made(DataType dtype, const std::vector<int64_t>& shape, const F& element) {
  Tensor t = Tensor::empty(shape, dtype);
  for (int64_t i = 0, n = product(shape); i < n; ++i)
    t.data_as<T>()[i] = static_cast<T>(element(i));
  return t;
}

// In no order.
Tensor floats(const std::vector<int64_t>& shape) {
  const int64_t n = product(shape);
  return made<float>(f32, shape, [&](int64_t i) { return i * 7919 % n; });
}
Tensor zeros(const std::vector<int64_t>& shape) {
  return made<float>(f32, shape, [](int64_t) { return 0; });
}
Tensor list(std::vector<int64_t> values) {
  return Tensor::copy_of<int64_t>(std::vector<int64_t>{static_cast<int64_t>(values.size())}, i64,
                                  values);
}
Tensor counted(int64_t n) {
  return made<int64_t>(i64, {n}, [](int64_t i) { return i; });
}

// ---- the machine ----

constexpr int64_t kMany = 30'000'000;  // numbers, or bytes of a text

Array<Any> long_array() {
  Array<Any> array;
  for (int64_t i = 0; i < 5'000'000; ++i) array.push_back(i);
  return array;
}
String long_text() {
  std::string text;
  text.resize(100'000'000, 'a');
  return String(text);
}

void add_machine(std::vector<LibraryCase>& to) {
  const auto shared = [] {
    static const Array<Any> array = long_array();
    return array;
  };
  to.insert(
      to.end(),
      {
          {"vm.tensor_copy", "", [] { return Arguments{zeros({kMany})}; }},
          {"vm.tensor_copy_to", "",
           [] {
             return Arguments{zeros({kMany}), zeros({kMany})};
           }},
          {"vm.shape_to_tensor", "",
           [] { return Arguments{Shape(std::vector<int64_t>(kMaxRank, 1))}; }},
          {"vm.tensor_to_shape", "",
           [] { return Arguments{list(std::vector<int64_t>(kMaxRank, 1))}; }},
          {"vm.array_size", "", [=] { return Arguments{shared()}; }},
          {"vm.array_get", "",
           [=] {
             return Arguments{shared(), int64_t{4'999'999}};
           }},
          {"vm.array_append", "to a shared array",
           [=] {
             return Arguments{shared(), int64_t{1}};
           }},
          {"vm.array_set", "of a shared array",
           [=] {
             return Arguments{shared(), int64_t{1}, int64_t{1}};
           }},
          {"vm.array_empty", "", [] { return Arguments{}; }},
          {"vm.array_slice", "",
           [=] {
             return Arguments{shared(), int64_t{1}, int64_t{5'000'000}};
           }},
          {"vm.array_concat", "",
           [=] {
             return Arguments{shared(), shared()};
           }},
          {"vm.string_equal", "",
           [] {
             return Arguments{long_text(), long_text()};
           }},
          {"vm.string_concat", "",
           [] {
             return Arguments{long_text(), long_text()};
           }},
          {"vm.check_returned", "a long type",
           [] {
             return Arguments{int64_t{1}, String(std::string(1'000'000, ' ') + "i64"), String("f")};
           }},
          {"tenon.append", "of a long row",
           [] {
             return Arguments{zeros({1, kMany}), zeros({kMany})};
           }},
          {"tenon.shape.reshape", "",
           [] {
             return Arguments{list(std::vector<int64_t>(kMaxRank, 1)),
                              list(std::vector<int64_t>(kMaxRank, 1)), false};
           }},
          {"tenon.shape.slice", "",
           [] {
             const Tensor ones = list(std::vector<int64_t>(kMaxRank, 1));
             return Arguments{ones, ones, ones, counted(kMaxRank), ones};
           }},
          {"tenon.shape.range_count", "",
           [] {
             const auto scalar = [](int64_t v) { return Tensor::copy_of<int64_t>({}, i64, {{v}}); };
             return Arguments{scalar(0), scalar(kNone), scalar(1)};
           }},
      });
}

// ---- algorithms ----

// Boxes that overlap only their neighbours.
Arguments boxes_and_scores() {
  const int64_t n = 20'000;
  const Tensor boxes =
      made<float>(f32, {1, n, 4}, [](int64_t i) { return 10 * (i / 4) + 5 * (i % 4 / 2); });
  return {boxes, floats({1, 1, n}), list({n}), Any(), Any(), int64_t{0}};
}

void add_algorithms(std::vector<LibraryCase>& to) {
  const int64_t n = 3'000'000, wide = 10'000'000;
  to.insert(to.end(),
            {
                {"tenon.nonzero", "", [=] { return Arguments{floats({n})}; }},
                {"tenon.topk", "",
                 [=] {
                   return Arguments{floats({n}), n / 2, int64_t{0}, true, true};
                 }},
                {"tenon.topk", "of short rows",
                 [=] {
                   return Arguments{floats({n, 2}), int64_t{1}, int64_t{1}, true, true};
                 }},
                {"tenon.compress", "",
                 [=] {
                   const Tensor all = made<uint8_t>(boolean, {n}, [](int64_t) { return 1; });
                   return Arguments{floats({n}), all, int64_t{0}, false};
                 }},
                {"tenon.compress", "of long rows",
                 [=] {
                   const Tensor all = made<uint8_t>(boolean, {2}, [](int64_t) { return 1; });
                   return Arguments{zeros({2, wide}), all, int64_t{0}, false};
                 }},
                {"tenon.unique", "",
                 [=] {
                   return Arguments{floats({n}), int64_t{0}, false, false};
                 }},
                {"tenon.unique", "of long rows",
                 [=] {
                   return Arguments{zeros({2, wide}), int64_t{0}, false, true};
                 }},
                {"tenon.non_max_suppression", "", boxes_and_scores},
                {"tenon.dft", "of a prime length",
                 [] {
                   return Arguments{floats({80'000, 1}), int64_t{1'000'003}, int64_t{0}, int64_t{0},
                                    int64_t{0}};
                 }},
                {"tenon.det", "",
                 [] {
                   return Arguments{floats({1000, 1000})};
                 }},
                {"tenon.random", "",
                 [] {
                   return Arguments{Shape(std::vector<int64_t>{kMany}), int64_t{1}, true};
                 }},
            });
}

// ---- models trained on tables ----

// A tree that is a chain of nodes, of which no test passes, to a leaf with many weights.
Arguments chain_of_nodes() {
  const int64_t n = 2'000'000;
  const Tensor nodes = made<int32_t>(i32, {n, 4}, [](int64_t i) {
    const int64_t node = i / 4, column = i % 4;
    if (column == 3) return node + 1 < n ? node + 1 : int64_t{-1};
    return int64_t{column == 0 ? 0 : column == 1 ? 3 : -1};
  });
  const Tensor x = made<float>(f32, {9, 1}, [](int64_t) { return -1; });
  const Tensor root = made<int32_t>(i32, {1}, [](int64_t) { return 0; });
  const Tensor leaf = made<int32_t>(i32, {2}, [](int64_t i) { return i * n; });
  const Tensor targets = made<int32_t>(i32, {n}, [](int64_t) { return 0; });
  return {x, nodes, floats({n}), root, leaf, targets, floats({n}), int64_t{1}, int64_t{0}};
}

void add_learned(std::vector<LibraryCase>& to) {
  const auto coupling = [](int64_t classes) {
    return Arguments{zeros({1, classes * (classes - 1) / 2}), classes};
  };
  to.insert(to.end(), {
                          {"tenon.tree_ensemble", "", chain_of_nodes},
                          {"tenon.pairwise_coupling", "", [=] { return coupling(1000); }},
                          {"tenon.pairwise_coupling", "of many", [=] { return coupling(4000); }},
                      });
}

// ---- strings ----

Tensor strings(const std::vector<std::string>& elements) {
  const std::vector<std::string_view> views(elements.begin(), elements.end());
  return string_tensor(std::vector<int64_t>{static_cast<int64_t>(views.size())}, views);
}
// Many strings, in no order.
Tensor many_strings(int64_t n = 1'000'000) {
  StringTensorBuilder builder(std::vector<int64_t>{n});
  for (int64_t i = 0; i < n; ++i) builder.append(cat("text ", i * 7919 % n));
  return builder.finish();
}
// Few equal strings, each of many bytes.
Tensor long_strings(size_t n = 2, char byte = 'a', size_t bytes = kMany) {
  return strings(std::vector<std::string>(n, std::string(bytes, byte)));
}

std::string repeated(std::string_view text, int64_t times) {
  std::string out;
  for (int64_t i = 0; i < times; ++i) out += text;
  return out;
}

void add_lists(std::vector<LibraryCase>& to) {
  to.insert(to.end(),
            {
                {"tenon.text.take", "",
                 [] {
                   return Arguments{many_strings(), counted(1'000'000)};
                 }},
                {"tenon.text.take", "a long one",
                 [] {
                   return Arguments{long_strings(1), list({0, 0, 0, 0, 0})};
                 }},
                {"tenon.text.join", "",
                 [] {
                   return Arguments{many_strings(), many_strings()};
                 }},
                {"tenon.text.join", "long ones",
                 [] {
                   return Arguments{long_strings(), long_strings()};
                 }},
                {"tenon.text.rank", "", [] { return Arguments{many_strings()}; }},
                {"tenon.text.rank", "of long ones", [] { return Arguments{long_strings(4)}; }},
                {"tenon.text.concat", "",
                 [] {
                   return Arguments{many_strings(), many_strings()};
                 }},
                {"tenon.text.concat", "long ones",
                 [] {
                   return Arguments{long_strings(), long_strings()};
                 }},
                {"tenon.text.find", "",
                 [] {
                   return Arguments{many_strings(), many_strings()};
                 }},
                {"tenon.text.find", "long ones",
                 [] {
                   return Arguments{long_strings(), long_strings(4)};
                 }},
            });
}

void add_readers(std::vector<LibraryCase>& to) {
  to.insert(
      to.end(),
      {
          {"tenon.text.split", "at a long delimiter",
           [] {
             const std::string half(kMany / 2, 'a');
             return Arguments{long_strings(1), String(half + "b"), kNone};
           }},
          {"tenon.text.split", "at spaces, of which there are none",
           [] {
             return Arguments{long_strings(1), String(""), kNone};
           }},
          {"tenon.text.split", "at spaces only",
           [] {
             return Arguments{long_strings(1, ' '), String(""), kNone};
           }},
          {"tenon.text.split", "into many",
           [] {
             return Arguments{long_strings(1, ',', 20'000'000), String(","), kNone};
           }},
          {"tenon.text.split", "into many of one string",
           [] {
             std::vector<std::string> elements(200);
             elements[0] = std::string(200'000, ',');
             return Arguments{strings(elements), String(","), kNone};
           }},
          {"tenon.text.case", "",
           [] {
             return Arguments{many_strings(), true};
           }},
          {"tenon.text.case", "of a long one",
           [] {
             return Arguments{long_strings(1), true};
           }},
          {"tenon.text.case", "which makes it longer",
           [] {
             return Arguments{strings({repeated("\xc8\xbe", 10'000'000)}), false};
           }},
          {"tenon.text.match", "",
           [] {
             return Arguments{many_strings(), String("(\\pL{1,50}.?)*[0-9]+")};
           }},
          {"tenon.text.match", "of a long one",
           [] {
             return Arguments{long_strings(1, 'a', 9'000'000), String("a*")};
           }},
          {"tenon.text.match", "without an automaton",
           [] {
             std::string pattern, text;
             for (int i = 0; i < 20; ++i)
               pattern += cat(i ? "|" : "", "[ab]*a[ab]{", 900 + i, "}c");
             for (int i = 0; i < 3600; ++i) text += (i * 7919 % 31) % 2 ? 'a' : 'b';
             return Arguments{strings({text, text}), String(pattern)};
           },
           true},
          {"tenon.text.match", "a pattern of classes",
           [] {
             return Arguments{strings({"a"}), String(repeated("[\\pL]|", 2700))};
           },
           true},
          {"tenon.text.tokens", "of a long one",
           [] {
             return Arguments{long_strings(1, 'a', 9'000'000), strings({"a*"}), false, int64_t{1}};
           }},
          {"tenon.text.tokens", "of a long one, a character each",
           [] {
             return Arguments{long_strings(1, 'a', 4'000'000), strings({"a|b"}), false, int64_t{1}};
           }},
          {"tenon.text.tokens", "whose searches read to the end",
           [] {
             return Arguments{long_strings(1, 'a', 20'000), strings({"a|a*b"}), false, int64_t{1}};
           }},
          {"tenon.text.tokens", "between many separators",
           [] {
             return Arguments{long_strings(1, 'a', 1'000'000),
                              strings(std::vector<std::string>(32, "b|c")), true, int64_t{1}};
           }},
          {"tenon.text.tokens", "without an automaton",
           [] {
             std::string pattern, text;
             for (int i = 0; i < 20; ++i)
               pattern += cat(i ? "|" : "", "[ab]*a[ab]{", 900 + i, "}c");
             for (int i = 0; i < 3600; ++i) text += (i * 7919 % 31) % 2 ? 'a' : 'b';
             return Arguments{strings({text}), strings({pattern}), false, int64_t{3600}};
           },
           true},
          {"tenon.text.parse", "",
           [] {
             return Arguments{strings(std::vector<std::string>(1'000'000, "-1234.5e6")), f64};
           }},
          {"tenon.text.parse", "long ones",
           [] {
             return Arguments{long_strings(40, '9', 1'000'000), f32};
           }},
          {"tenon.text.parse", "with much white space",
           [] {
             return Arguments{
                 strings(std::vector<std::string>(40, std::string(1'000'000, ' ') + "1")), f32};
           }},
          {"tenon.text.format", "",
           [] {
             return Arguments{
                 made<double>(f64, {2'000'000}, [](int64_t i) { return std::ldexp(1, i % 900); })};
           }},
      });
}

void add_ngrams(std::vector<LibraryCase>& to) {
  const int64_t n = 2'000'000;
  const auto one_row = [](int64_t items) {
    return made<int64_t>(i64, {1, items}, [](int64_t i) { return i % 7; });
  };
  to.insert(to.end(), {
                          {"tenon.text.ngrams", "of a large pool",
                           [=] {
                             return Arguments{one_row(7), counted(n), list({0}),  counted(n),
                                              int64_t{1}, int64_t{1}, int64_t{0}, n};
                           }},
                          {"tenon.text.ngrams", "one of which is long",
                           [=] {
                             std::vector<int64_t> starts(static_cast<size_t>(n), 0);
                             return Arguments{one_row(7), counted(n), list(starts), list({0}),
                                              int64_t{1}, n,          int64_t{0},   int64_t{1}};
                           }},
                          {"tenon.text.ngrams", "with many columns",
                           [=] {
                             return Arguments{one_row(7), list({3}),  list({0}),  list({0}),
                                              int64_t{1}, int64_t{1}, int64_t{0}, 2 * kMany};
                           }},
                          {"tenon.text.ngrams", "with many skips",
                           [=] {
                             return Arguments{one_row(n), list({0, 1}), list({0, 0}), list({0}),
                                              int64_t{2}, int64_t{2},   kNone,        int64_t{1}};
                           }},
                      });
}

}  // namespace

std::vector<LibraryCase> library_cases() {
  std::vector<LibraryCase> cases;
  add_machine(cases);
  add_algorithms(cases);
  add_learned(cases);
  add_lists(cases);
  add_readers(cases);
  add_ngrams(cases);
  return cases;
}

}  // namespace tenon
