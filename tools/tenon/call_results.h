// The results of a call as `tenon run` shows and stores them.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "json/json.h"
#include "tools/tenon/program_file.h"

namespace tenon::tool {

struct CallResults {
  FunctionSignature signature;
  std::vector<std::string> names;
  std::vector<Any> values;
};

// --print, --top and --labels: how results are shown.
class ShowFlags {
 public:
  void add_to(CLI::App* command);
  // Reads the file of labels. Throws Usage for flags that would be ignored. Call it before the work
  // is done.
  void prepare();
  // Throws Usage if there are labels that no output has a use for.
  void check_labels(const CallResults& results) const;

  void print(const CallResults& results, FILE* to) const;
  // Writes an array with an object for each result.
  void write(const CallResults& results, JsonWriter& out) const;

 private:
  // The K greatest elements along the last axis, for one position in the other axes.
  struct Ranked {
    std::vector<int64_t> at;        // of the other axes
    std::vector<int64_t> elements;  // flat indices, the greatest first
  };
  // The value if it is a tensor of which --top shows the greatest elements; otherwise null.
  Tensor ranked_tensor(const Any& value) const;
  std::vector<Ranked> ranked(const Tensor& tensor) const;
  std::string label_of(const Tensor& tensor, int64_t index) const;
  void print_top(const std::string& name, const Tensor& tensor, FILE* to) const;
  void write_top(const Tensor& tensor, JsonWriter& out) const;

  std::optional<int64_t> elements_;  // of each tensor
  int64_t top_ = 0;
  std::string labels_file_;
  std::vector<std::string> labels_;
};

// --output and --outputs: where results are stored.
class StoreFlags {
 public:
  void add_to(CLI::App* command);
  bool given() const { return !single_.empty() || !all_.empty(); }
  const char* name() const { return single_.empty() ? "--outputs" : "--output"; }
  // Refuses what can't be stored, before the function runs.
  void prepare(const FunctionSignature& signature);
  // Whether an output goes to standard output.
  bool to_stdout() const;
  void store(const CallResults& results) const;

 private:
  struct Stored {      // an --output
    std::string text;  // as it was given
    size_t index;      // of the output
    std::string path;
  };

  std::vector<std::string> single_;  // NAME=FILE
  std::string all_;                  // a folder or .npz file
  std::vector<Stored> stored_;
};

}  // namespace tenon::tool
