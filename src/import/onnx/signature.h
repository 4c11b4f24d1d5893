// A model's inputs as parameters of @main: their types, with symbols for sizes that neither the
// model nor the caller fixes.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/ir/builder.h"
#include "import/onnx/import_model.h"
#include "import/onnx/scope.h"

namespace tenon::onnx {

ModelReport::Value report_value(const std::string& name, const graph::TypeRef& type);

class Signature {
 public:
  // Makes a parameter for each input of the model's graph that is not an initializer, and defines
  // it in `scope`. An input whose type isn't implemented is defined as unusable and listed. Throws
  // Usage for inputs that break ONNX's rules, and for given shapes and sizes that change a fixed
  // dimension or disagree.
  Signature(const Model& model, const ImportOptions& options, graph::Builder& builder,
            Scope& scope);

  // Throws Usage for given shapes and sizes that don't belong to any input.
  void check_given() const;

  // The inputs in the order of the parameters.
  std::vector<ModelReport::Value> types;
  SymbolSet symbols;  // in the inputs' sizes
  std::vector<Unsupported> unsupported;

 private:
  // A size and the option that gave it, for errors.
  struct Given {
    int64_t size;
    std::string source;
  };

  // Takes the sizes that the shape given for the input, if any, gives to its symbols.
  void take_shape(const Value& input);
  void fix(const std::string& symbol, Given given);
  graph::TypeRef type_of(const Value& input);
  // The type of what a sequence or an optional value of the input holds, without symbols: a
  // parameter binds those of its own sizes only.
  graph::TypeRef type_of_held(const Value& input, const ValueType& type);
  void require_rank(const Value& input, size_t rank) const;
  // The size of a dimension of such a tensor, if the model or the caller fixes it.
  std::optional<int64_t> known_size(const Dimension& d, int64_t given);
  // `given` is the size that a shape gives to the dimension; negative for none.
  Dim size_of(const Dimension& d, int64_t given, const std::string& input, size_t axis);
  Dim given_or_fresh(const std::string& name, const std::string& symbol);

  const Model& model_;
  const ImportOptions& options_;
  graph::Builder& builder_;
  std::map<std::string, Dim> symbol_names_;  // keyed by the model's names
  std::vector<std::string> offered_;         // the inputs' symbols, as in the signature
  std::map<std::string, Given> fixed_;       // by shapes, keyed by the model's names
  std::set<std::string> used_;               // the given sizes that fixed a symbol
};

}  // namespace tenon::onnx
