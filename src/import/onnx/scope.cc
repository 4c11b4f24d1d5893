#include "import/onnx/scope.h"

#include "support/error.h"

namespace tenon::onnx {

Scope Scope::inner() const {
  Scope scope(*opsets_);
  scope.outer_ = this;
  scope.arguments_ = arguments_;
  scope.prefix_ = prefix_;
  scope.function_depth_ = function_depth_;
  return scope;
}

Scope Scope::body(const Node& call, const OpsetImports& opsets, const Arguments& arguments) const {
  Scope scope(opsets.empty() ? *opsets_ : opsets);
  scope.arguments_ = &arguments;
  scope.prefix_ = call.name;
  scope.function_depth_ = function_depth_ + 1;
  return scope;
}

const Scope::Slot* Scope::find(const std::string& name) const {
  for (const Scope* s = this; s != nullptr; s = s->outer_) {
    auto found = s->names_.find(name);
    if (found != s->names_.end()) return &found->second;
  }
  return nullptr;
}

void Scope::define(const std::string& name, graph::Operand value) {
  TENON_ASSERT(!has(name), "'", name, "' is defined twice");
  names_[name] = Slot{std::move(value)};
}

void Scope::define_unusable(const std::string& name) {
  names_[name] = Slot{{}, true};
}

int64_t Scope::opset(const std::string& domain, int64_t otherwise) const {
  auto found = opsets_->find(domain);
  return found != opsets_->end() ? found->second : otherwise;
}

const Node& Scope::resolve(const Node& node, Node* storage) const {
  if (arguments_ == nullptr && prefix_.empty()) return node;
  *storage = node;
  if (!prefix_.empty()) storage->name = cat(prefix_, "/", node.name);
  if (arguments_ == nullptr) return *storage;
  std::vector<Attribute> resolved;
  for (Attribute& a : storage->attributes) {
    if (a.reference.empty()) {
      resolved.push_back(std::move(a));
      continue;
    }
    auto found = arguments_->find(a.reference);
    if (found == arguments_->end() || found->second == nullptr) continue;  // absent in the call
    Attribute value = *found->second;
    value.name = a.name;
    resolved.push_back(std::move(value));
  }
  storage->attributes = std::move(resolved);
  return *storage;
}

}  // namespace tenon::onnx
