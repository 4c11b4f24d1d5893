// The data types that an executable describes to its hosts.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "graph/ir/infer.h"
#include "vm/isa/signature.h"

namespace tenon::codegen {

// The definition as a file describes it.
vm::AdtSignature adt_signature(const graph::AdtDefinition& definition);

class DataTypes {
 public:
  // `signatures` must outlive this.
  explicit DataTypes(const graph::Signatures& signatures) : signatures_(signatures) {}

  // Adds the definitions of the data types in `type`, of those in their fields, and so on.
  void add(const vm::SignatureType& type);
  // The texts of all that were added, in the order in which they were found.
  std::vector<std::string> take() { return std::move(types_); }

 private:
  const graph::Signatures& signatures_;
  std::vector<std::string> types_;
  std::set<std::string> known_;
};

}  // namespace tenon::codegen
