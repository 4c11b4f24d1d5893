#include "codegen/llvm/alias.h"

#include <set>
#include <utility>
#include <vector>

#include "llvm/IR/MDBuilder.h"
#include "loop/walk.h"

namespace tenon::codegen {

namespace {

constexpr size_t kMaxBuffers = 64;

using Pairs = std::set<std::pair<const loop::Buffer*, const loop::Buffer*>>;

Pairs pairs_that_may_share_memory(const loop::Kernel& kernel) {
  Pairs pairs;
  for (const loop::InPlace& pair : kernel.in_place) {
    const auto* out = kernel.outputs[static_cast<size_t>(pair.output())].get();
    const auto* in = kernel.inputs[static_cast<size_t>(pair.input())].get();
    pairs.emplace(out, in);
    pairs.emplace(in, out);
  }
  return pairs;
}

}  // namespace

AliasScopes::AliasScopes(llvm::LLVMContext& context, const loop::Kernel& kernel) {
  std::vector<const loop::Buffer*> buffers;
  for (const auto* list : {&kernel.inputs, &kernel.outputs})
    for (const auto& buffer : *list) buffers.push_back(buffer.get());
  loop::for_each_stmt(kernel.body, [&](const loop::StmtRef& s) {
    if (s->kind == loop::StmtKind::kAlloc)
      buffers.push_back(static_cast<const loop::Alloc&>(*s).buffer.get());
  });
  if (buffers.size() > kMaxBuffers) return;
  const Pairs may_share = pairs_that_may_share_memory(kernel);
  llvm::MDBuilder metadata(context);
  llvm::MDNode* domain = metadata.createAnonymousAliasScopeDomain();
  std::vector<llvm::MDNode*> scopes;
  for (size_t i = 0; i < buffers.size(); ++i)
    scopes.push_back(metadata.createAnonymousAliasScope(domain));
  for (size_t k = 0; k < buffers.size(); ++k) {
    std::vector<llvm::Metadata*> others;
    for (size_t i = 0; i < buffers.size(); ++i)
      if (buffers[i] != buffers[k] && !may_share.contains({buffers[i], buffers[k]}))
        others.push_back(scopes[i]);
    scopes_[buffers[k]] = {llvm::MDNode::get(context, scopes[k]),
                           llvm::MDNode::get(context, others)};
  }
}

void AliasScopes::annotate(llvm::Instruction* access, const loop::Buffer& buffer) const {
  auto it = scopes_.find(&buffer);
  if (it == scopes_.end()) return;
  access->setMetadata(llvm::LLVMContext::MD_alias_scope, it->second.own);
  access->setMetadata(llvm::LLVMContext::MD_noalias, it->second.others);
}

}  // namespace tenon::codegen
