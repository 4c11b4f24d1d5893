#include "object/string_tensor.h"

#include <algorithm>
#include <cstring>

#include "support/bulk.h"
#include "support/failures.h"
#include "support/utf8.h"

namespace tenon {

namespace {

const int64_t* ends_of(const Tensor& tensor) {
  return tensor.data_as<const int64_t>();
}

[[noreturn, gnu::cold]] void fail_kind(const Tensor& tensor, std::string_view what) {
  throw_failure(cat(what, " is not a tensor of strings"), to_text(tensor));
}

}  // namespace

Strings::Strings(const Tensor& tensor, std::string_view what) : tensor_(tensor), count_(0) {
  if (!is_string_tensor(tensor)) fail_kind(tensor, what);
  const auto* storage = tensor->owner.as<StorageObj>();
  if (!storage || !(storage->flags & StorageObj::kHasStrings) || !tensor.compact())
    fail_kind(tensor, what);
  count_ = tensor.count();
}

std::string_view Strings::operator[](int64_t i) const {
  const int64_t* ends = ends_of(tensor_);
  const auto* text = reinterpret_cast<const char*>(ends + count_);
  const int64_t begin = i == 0 ? 0 : ends[i - 1];
  return {text + begin, static_cast<size_t>(ends[i] - begin)};
}

int64_t Strings::text_bytes() const {
  return count_ == 0 ? 0 : ends_of(tensor_)[count_ - 1];
}

StringTensorBuilder::StringTensorBuilder(std::span<const int64_t> shape, size_t text_bytes)
    : shape_(shape), count_(element_count(shape).value_or(0)) {
  const auto bytes = byte_count(shape, string_elements);
  if (!bytes || shape.size() > kMaxRank || text_bytes > kAddressSpace)
    throw impossible_tensor(tensor_type_text(string_elements, shape));
  storage_ = heap_storage(static_cast<size_t>(*bytes) + text_bytes);
}

void StringTensorBuilder::reserve(size_t more) {
  const size_t head = static_cast<size_t>(count_) * sizeof(int64_t);
  const size_t needed = head + used_ + more;
  if (needed <= storage_->size) return;
  Ref<StorageObj> larger = heap_storage(std::max(needed, head + used_ + used_ / 2));
  copy_memory(larger->data, storage_->data, static_cast<size_t>(added_) * sizeof(int64_t));
  copy_memory(static_cast<char*>(larger->data) + head, static_cast<char*>(storage_->data) + head,
              used_);
  storage_ = std::move(larger);
}

void StringTensorBuilder::extend(std::string_view text) {
  TENON_ASSERT(added_ < count_, "a string tensor gets more elements than it has");
  reserve(text.size());
  copy_memory(reinterpret_cast<char*>(ends() + count_) + used_, text.data(), text.size());
  used_ += text.size();
}

void StringTensorBuilder::append(std::span<const std::string_view> parts) {
  for (const std::string_view part : parts) extend(part);
  TENON_ASSERT(added_ < count_, "a string tensor gets more elements than it has");
  ends()[added_++] = static_cast<int64_t>(used_);
}

Tensor StringTensorBuilder::finish() {
  TENON_ASSERT(added_ == count_, "a string tensor lacks elements");
  storage_->flags |= StorageObj::kIsReadOnly | StorageObj::kHasStrings;
  return Tensor::over(std::move(storage_), 0, string_elements, shape_.dims());
}

Tensor string_tensor(std::span<const int64_t> shape, std::span<const std::string_view> elements) {
  size_t bytes = 0;
  for (const std::string_view element : elements) bytes += element.size();
  StringTensorBuilder made(shape, bytes);
  for (const std::string_view element : elements) made.append(element);
  return made.finish();
}

size_t content_bytes(const Tensor& tensor) {
  const auto bytes = static_cast<size_t>(tensor.bytes());
  return is_string_tensor(tensor) ? bytes + static_cast<size_t>(Strings(tensor).text_bytes())
                                  : bytes;
}

Tensor string_tensor_of_content(std::span<const int64_t> shape, std::string_view content) {
  const auto head = byte_count(shape, string_elements);
  if (!head || static_cast<size_t>(*head) > content.size()) return {};
  const std::string_view text = content.substr(static_cast<size_t>(*head));
  StringTensorBuilder made(shape, text.size());
  size_t begin = 0;
  Ticker ticker;
  for (size_t at = 0; at < static_cast<size_t>(*head); at += sizeof(int64_t)) {
    ticker.tick();
    uint64_t end;
    std::memcpy(&end, content.data() + at, sizeof end);
    if (end < begin || end > text.size()) return {};
    const std::string_view element = text.substr(begin, end - begin);
    if (!is_utf8(element)) return {};
    made.append(element);
    begin = end;
  }
  if (begin != text.size()) return {};
  return made.finish();
}

void require_utf8(std::string_view text, int64_t index, std::string_view what) {
  if (is_utf8(text)) return;
  constexpr size_t kShown = 40;  // bytes
  throw Error(ErrorKind::Usage, cat("element ", index, " of ", what, " is not valid UTF-8"))
      .found(quoted(text.substr(0, kShown)))
      .help("string tensors hold UTF-8; re-encode the text or pass its bytes as u8");
}

}  // namespace tenon
