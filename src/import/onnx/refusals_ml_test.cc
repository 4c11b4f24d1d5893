// Refusals of operators of ai.onnx.ml.
#include "import/onnx/op_table.h"
#include "import/onnx/refusals_testing.h"

namespace tenon::onnx {
namespace {

class RefusalsOfMl : public RefusalsOfDomain<RefusalsOfMl> {
 public:
  static constexpr const char* kDomain = kMl;
};

using Attributes = std::vector<Attribute>;

// The attributes, with others of the same names replaced.
Attributes with(Attributes all, const Attributes& others) {
  for (const Attribute& other : others) {
    std::erase_if(all, [&](const Attribute& a) { return a.name == other.name; });
    all.push_back(other);
  }
  return all;
}
Attributes without(Attributes all, const std::string& name) {
  std::erase_if(all, [&](const Attribute& a) { return a.name == name; });
  return all;
}

TensorData floats(const std::vector<float>& values) {
  TensorData t;
  t.type = 1;
  t.dims = {static_cast<int64_t>(values.size())};
  t.tensor = Tensor::copy_of(std::span<const int64_t>(t.dims), f32, std::span<const float>(values));
  return t;
}

TensorData bytes(const std::vector<uint8_t>& values) {
  TensorData t;
  t.type = 2;
  t.dims = {static_cast<int64_t>(values.size())};
  t.tensor =
      Tensor::copy_of(std::span<const int64_t>(t.dims), u8, std::span<const uint8_t>(values));
  return t;
}

// A node and two leaves, with a weight for output 0 each.
Attributes nodes() {
  return {M::list("nodes_treeids", {0, 0, 0}),
          M::list("nodes_nodeids", {0, 1, 2}),
          M::list("nodes_featureids", {1, 0, 0}),
          M::numbers("nodes_values", {0.5, 0, 0}),
          M::texts("nodes_modes", {"BRANCH_LEQ", "LEAF", "LEAF"}),
          M::list("nodes_truenodeids", {1, 0, 0}),
          M::list("nodes_falsenodeids", {2, 0, 0})};
}
Attributes votes(const std::string& what) {
  return {M::list(what + "_treeids", {0, 0}), M::list(what + "_nodeids", {1, 2}),
          M::list(what + "_ids", {0, 0}), M::numbers(what + "_weights", {1, -2})};
}
Attributes regressor() {
  return with(with(nodes(), votes("target")), {M::integer("n_targets", 1)});
}
Attributes classifier(const std::vector<int64_t>& labels) {
  return with(with(nodes(), votes("class")), {M::list("classlabels_int64s", labels)});
}

TEST_F(RefusalsOfMl, TreeEnsembleRegressor) {
  const char* op = "TreeEnsembleRegressor";
  const std::string x = "f n 2";
  auto row = [&](const Attributes& changed, const std::string& found, const std::string& expected) {
    return DomainRefusal{op, {x}, with(regressor(), changed), found, expected};
  };
  broken({
      {op, {"f 2 2 2"}, regressor(), "X of rank 3", "1 or 2: rows of features"},
      {op, {"f 4 1"}, regressor(), "X with 1 features", "2 or more, as the trees read"},
      {op,
       {x},
       without(regressor(), "n_targets"),
       "no attribute 'n_targets'",
       "an int, which has no default"},
      row({M::integer("n_targets", 0)}, "n_targets=0", "1 or more"),
      row({M::text("aggregate_function", "MEDIAN")}, "aggregate_function holds 'MEDIAN'",
          "AVERAGE, SUM, MIN or MAX"),
      row({M::text("post_transform", "TANH")}, "post_transform='TANH'",
          "one of NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO, PROBIT"),
      row({M::numbers("base_values", {1, 2})}, "base_values has 2 entries", "1"),
      row({M::numbers("base_values", {1}), M::constant("base_values_as_tensor", floats({1}))},
          "base_values and base_values_as_tensor", "one of them"),
      row({M::constant("base_values_as_tensor", bytes({1}))},
          "base_values_as_tensor is tensor[1; u8]", "floats"),
      row({M::list("nodes_treeids", {0})}, "nodes_treeids has 1 entries", "3"),
      row({M::texts("nodes_modes", {"BRANCH_LEQ", "LEAF", "TWIG"})}, "nodes_modes holds 'TWIG'",
          "BRANCH_* or LEAF"),
      row({M::list("nodes_nodeids", {0, 1, 1})}, "node 1 of tree 0 twice", "each node once"),
      row({M::list("nodes_truenodeids", {7, 0, 0})}, "node 7 of tree 0, which nothing defines",
          "a node's number"),
      row({M::list("nodes_truenodeids", {0, 0, 0})}, "node 0, which two branches lead to", "trees"),
      row({M::list("nodes_featureids", {-1, 0, 0})}, "a node of feature -1", "0 or more"),
      row({M::list("target_nodeids", {1, 9})}, "node 9 of tree 0, which nothing defines",
          "a node's number"),
      row({M::list("target_ids", {0, 1})}, "a leaf's weight for 1", "0 to 0"),
  });
  unsupported({row({M::text("post_transform", "LOGISTIC")},
                   "post_transform=LOGISTIC of one score not implemented", "")});
}

TEST_F(RefusalsOfMl, TreeEnsembleClassifier) {
  const char* op = "TreeEnsembleClassifier";
  const std::string x = "f n 2";
  const Attributes no_labels = without(classifier({1}), "classlabels_int64s");
  broken({
      {op, {x}, no_labels, "no class labels", "one of classlabels_int64s and classlabels_strings"},
      {op,
       {x},
       with(classifier({1, 2}), {M::texts("classlabels_strings", {"a"})}),
       "class labels of two kinds",
       "one of classlabels_int64s and classlabels_strings"},
      {op,
       {x},
       with(classifier({1, 2, 3}), {M::numbers("base_values", {1})}),
       "base_values has 1 entries",
       "3"},
  });
  unsupported({
      {op, {x}, classifier({5}), "one class with a label other than 1 not implemented"},
      {op,
       {x},
       with(classifier({1, 2}), {M::text("post_transform", "PROBIT")}),
       "post_transform=PROBIT of one score for two classes not implemented"},
      {op,
       {x},
       with(classifier({1, 2}), {M::numbers("base_values", {1, 2})}),
       "2 base_values where only class 0 of two has weights not implemented"},
      {op,
       {x},
       with(classifier({1, 2}), {M::list("class_ids", {1, 1}), M::numbers("base_values", {1})}),
       "1 base_values where only class 1 of two has weights not implemented"},
  });
}

Attributes ensemble() {
  return {M::constant("nodes_modes", bytes({0, 6})),
          M::constant("nodes_splits", floats({0.5, 0})),
          M::constant("leaf_weights", floats({1, 2, 3})),
          M::constant("membership_values", floats({1, 2})),
          M::integer("n_targets", 1),
          M::list("nodes_featureids", {0, 1}),
          M::list("nodes_truenodeids", {1, 0}),
          M::list("nodes_trueleafs", {0, 1}),
          M::list("nodes_falsenodeids", {2, 1}),
          M::list("nodes_falseleafs", {1, 1}),
          M::list("leaf_targetids", {0, 0, 0}),
          M::list("tree_roots", {0})};
}

TEST_F(RefusalsOfMl, TreeEnsemble) {
  auto row = [&](const Attributes& changed, const std::string& found, const std::string& expected) {
    return DomainRefusal{"TreeEnsemble", {"f n 2"}, with(ensemble(), changed), found, expected, 5};
  };
  auto lacks = [&](const std::string& name, const std::string& found, const std::string& expected) {
    return DomainRefusal{"TreeEnsemble", {"f n 2"}, without(ensemble(), name), found, expected, 5};
  };
  broken({
      lacks("nodes_modes", "no nodes_modes of u8", "a tensor of modes"),
      lacks("nodes_splits", "no attribute 'nodes_splits'", "a tensor of floats"),
      lacks("membership_values", "no attribute 'membership_values'", "a tensor of floats"),
      row({M::integer("n_targets", 0)}, "n_targets=0", "1 or more"),
      row({M::integer("aggregate_function", 4)}, "aggregate_function=4", "0 to 3"),
      row({M::integer("post_transform", 5)}, "post_transform=5", "0 to 4"),
      row({M::constant("nodes_modes", bytes({0, 7}))}, "nodes_modes holds 7", "0 to 6"),
      row({M::list("nodes_truenodeids", {2, 0})}, "nodes_truenodeids holds 2", "0 to 1, a node"),
      row({M::list("nodes_falsenodeids", {3, 1})}, "nodes_falsenodeids holds 3", "0 to 2, a leaf"),
      row({M::list("tree_roots", {2})}, "tree_roots holds 2", "the places of nodes"),
      row({M::list("tree_roots", {0, 1})}, "node 1, which two branches lead to", "trees"),
  });
}

TEST_F(RefusalsOfMl, Linear) {
  const std::string x = "f n 2";
  const Attribute labels = M::list("classlabels_ints", {3, 4});
  broken({
      {"LinearRegressor", {x}, {M::integer("targets", 0)}, "targets=0", "1 or more"},
      {"LinearRegressor",
       {x},
       {M::numbers("coefficients", {1, 2}), M::numbers("intercepts", {1, 2})},
       "intercepts has 2 entries",
       "1, as targets"},
      {"LinearRegressor",
       {x},
       {M::numbers("coefficients", {1, 2, 3}), M::integer("targets", 2)},
       "coefficients has 3 entries",
       "a multiple of 2"},
      {"LinearRegressor",
       {"f n 3"},
       {M::numbers("coefficients", {1, 2})},
       "X with 3 features",
       "2, as the attributes have"},
      {"LinearClassifier",
       {x},
       {labels, M::numbers("coefficients", {1, 2}), M::numbers("intercepts", {1, 2, 3})},
       "intercepts has 3 entries for 2 classes",
       "one per class, or one for two classes"},
  });
  unsupported({{"LinearClassifier",
                {x},
                {labels, M::numbers("coefficients", {1, 2}), M::numbers("intercepts", {1}),
                 M::text("post_transform", "PROBIT")},
                "post_transform=PROBIT of one score for two classes not implemented"}});
}

TEST_F(RefusalsOfMl, SupportVectorMachines) {
  const std::string x = "f n 2";
  const Attributes regressor = {M::numbers("coefficients", {1, 2}), M::numbers("rho", {0}),
                                M::integer("n_supports", 2),
                                M::numbers("support_vectors", {1, 2, 3, 4})};
  const Attributes classifier = {M::list("classlabels_ints", {3, 4}),
                                 M::list("vectors_per_class", {1, 1}),
                                 M::numbers("coefficients", {1, 2}), M::numbers("rho", {0}),
                                 M::numbers("support_vectors", {1, 2, 3, 4})};
  auto r = [&](const Attributes& changed, const std::string& found, const std::string& expected) {
    return DomainRefusal{"SVMRegressor", {x}, with(regressor, changed), found, expected};
  };
  auto c = [&](const Attributes& changed, const std::string& found, const std::string& expected) {
    return DomainRefusal{"SVMClassifier", {x}, with(classifier, changed), found, expected};
  };
  broken({
      r({M::text("kernel_type", "COSINE")}, "kernel_type='COSINE'", "LINEAR, POLY, RBF or SIGMOID"),
      r({M::numbers("kernel_params", {1})}, "kernel_params has 1 entries",
        "3: gamma, coef0 and degree"),
      r({M::numbers("rho", {1, 2})}, "rho has 2 entries", "1"),
      r({M::numbers("coefficients", {1})}, "coefficients has 1 entries", "2, as n_supports"),
      r({M::numbers("support_vectors", {1, 2, 3})}, "support_vectors has 3 entries",
        "a multiple of 2"),
      c({M::list("classlabels_ints", {3})}, "1 classes", "2 or more"),
      c({M::list("vectors_per_class", {1})}, "vectors_per_class has 1 entries", "2, one per class"),
      c({M::list("vectors_per_class", {1, -1})}, "vectors_per_class holds -1", "0 or more"),
      c({M::numbers("coefficients", {1})}, "coefficients has 1 entries",
        "2: classes - 1 rows of vectors"),
      c({M::numbers("rho", {})}, "rho has 0 entries", "1, one per pair"),
      c({M::numbers("prob_a", {1})}, "prob_b has 0 entries", "1, one per pair"),
      c({M::numbers("prob_b", {1})}, "prob_a has 0 entries", "1, one per pair"),
      {"SVMClassifier",
       {x},
       {M::list("classlabels_ints", {3, 4, 5}), M::numbers("coefficients", {1, 2, 3})},
       "rho has 0 entries",
       "1"},
  });
  unsupported({
      r({M::text("post_transform", "PROBIT")}, "post_transform not implemented", ""),
      c({M::list("vectors_per_class", {})}, "two classes without support vectors not implemented",
        ""),
  });
}

TEST_F(RefusalsOfMl, Features) {
  broken({
      {"Scaler",
       {"f n 3"},
       {M::numbers("scale", {1, 2})},
       "scale has 2 entries",
       "1 or 3, one per feature"},
      {"Normalizer", {"f 2"}, {M::text("norm", "L3")}, "norm='L3'", "MAX, L1 or L2"},
      {"Normalizer", {"f 2 2 2"}, {}, "X of rank 3", "1 or 2"},
      {"Imputer", {"f n 3"}, {}, "no imputed_value_floats for f32", "one, or one per feature"},
      {"Imputer",
       {"i n 3"},
       {M::list("imputed_value_int64s", {1, 2})},
       "imputed_value_int64s has 2 entries",
       "1 or 3, one per feature"},
      {"ArrayFeatureExtractor", {"f", "i 1"}, {}, "X of rank 0", "1 or more"},
      {"FeatureVectorizer", {}, {}, "no operands", "one or more"},
      {"FeatureVectorizer", {"f 1 1 1"}, {}, "operand 0 of rank 3", "1 or 2: rows of features"},
      {"FeatureVectorizer",
       {"f n 2"},
       {M::list("inputdimensions", {1, 2})},
       "inputdimensions has 2 entries",
       "1, one per operand"},
      {"FeatureVectorizer",
       {"f n 2"},
       {M::list("inputdimensions", {-1})},
       "inputdimensions holds -1",
       "0 or more"},
      {"OneHotEncoder", {"i n"}, {}, "no cats_int64s", "one or more categories"},
      {"OneHotEncoder",
       {"i n"},
       {M::list("cats_int64s", {2, 1, 2})},
       "category 2 twice",
       "each category once"},
      {"OneHotEncoder",
       {"s n"},
       {M::texts("cats_strings", {"b", "a", "b"})},
       "category b twice",
       "each category once"},
      {"OneHotEncoder",
       {"i n"},
       {M::list("cats_int64s", {1}), M::texts("cats_strings", {"a"})},
       "categories of two kinds",
       "one of cats_int64s and cats_strings"},
  });
  unsupported({
      {"Scaler",
       {"f 2 2 2"},
       {M::numbers("offset", {1, 2})},
       "offset per feature of a tensor of rank 3 not implemented"},
  });
}

TEST_F(RefusalsOfMl, LabelEncoder) {
  const Attribute keys = M::list("keys_int64s", {1, 2}), values = M::list("values_int64s", {3, 4});
  broken({
      {"LabelEncoder", {"i n"}, {values}, "none of the attributes keys_*", "one", 2},
      {"LabelEncoder",
       {"i n"},
       {keys, M::numbers("keys_floats", {1, 2}), values},
       "several of the attributes keys_*",
       "one",
       2},
      {"LabelEncoder",
       {"i n"},
       {keys, M::list("values_int64s", {3})},
       "2 keys and 1 values",
       "as many of both",
       2},
      {"LabelEncoder", {"f n"}, {keys, values}, "X of f32 and keys of i64", "the same type", 2},
      {"LabelEncoder",
       {"i n"},
       {keys, values, M::constant("default_tensor", floats({1, 2}))},
       "default_tensor is tensor[2; f32]",
       "one element",
       4},
      {"LabelEncoder",
       {"i n"},
       {keys, M::texts("values_strings", {"a", "b"}), M::constant("default_tensor", floats({1}))},
       "default_tensor is tensor[1; f32]",
       "the values' type, string",
       4},
      {"LabelEncoder",
       {"f n"},
       {M::texts("classes_strings", {"a"})},
       "X of f32 and keys of i64",
       "the same type",
       1},
      {"CategoryMapper",
       {"i n"},
       {M::list("cats_int64s", {1}), M::texts("cats_strings", {"a", "b"})},
       "2 cats_strings and 1 cats_int64s",
       "as many of both"},
  });
  unsupported({
      {"LabelEncoder",
       {"s n"},
       {M::texts("keys_strings", {"a", "a"}), values},
       "two values for the key a not implemented",
       "",
       2},
      {"LabelEncoder",
       {"i n"},
       {M::list("keys_int64s", {1, 1}), values},
       "two values for the key 1 not implemented",
       "",
       2},
  });
}

TEST_F(RefusalsOfMl, Maps) {
  const Attribute labels = M::list("classlabels_int64s", {0, 1}),
                  words = M::texts("string_vocabulary", {"a", "b"});
  broken({
      {"ZipMap",
       {"f n 2"},
       {},
       "none of the attributes classlabels_int64s and classlabels_strings",
       "one of them"},
      {"ZipMap",
       {"f n 2"},
       {labels, M::texts("classlabels_strings", {"a", "b"})},
       "both of the attributes classlabels_int64s and classlabels_strings",
       "one of them"},
      {"ZipMap", {"f n 3"}, {labels}, "X with 3 features", "2, as the attributes have"},
      {"ZipMap", {"f n 3 2"}, {labels}, "X of rank 3", "1 or 2: rows of features"},
      {"DictVectorizer", {"f 2"}, {words}, "an operand of type tensor[2; f32]", "a map"},
      {"DictVectorizer", {"{i f"}, {words}, "X of i64 and keys of string", "the same type"},
      {"CastMap", {"{s f"}, {}, "keys of string", "keys of i64"},
      {"CastMap",
       {"{i f"},
       {M::text("cast_to", "TO_BOOL")},
       "cast_to=TO_BOOL",
       "TO_FLOAT, TO_INT64 or TO_STRING"},
      {"CastMap", {"{i f"}, {M::text("map_form", "NONE")}, "map_form=NONE", "DENSE or SPARSE"},
      {"CastMap",
       {"{i f"},
       {M::text("map_form", "SPARSE"), M::integer("max_map", -1)},
       "max_map=-1",
       "a number of entries"},
  });
  unsupported({
      {"DictVectorizer",
       {"{s f"},
       {M::texts("string_vocabulary", {"a", "a"})},
       "two values for the key a not implemented"},
  });
}

}  // namespace
}  // namespace tenon::onnx
