#include "common/digest/state_digest.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/status/check.h"

namespace lockstep {
namespace {

template <typename T>
void AppendLittleEndian(T value, std::string& out) {
  for (size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<char>(static_cast<uint64_t>(value) >> (8 * i)));
}

void AppendText(absl::string_view text, std::string& out) {
  AppendLittleEndian(static_cast<uint32_t>(text.size()), out);
  absl::StrAppend(&out, text);
}

}  // namespace

TensorDigest::TensorDigest(const TensorSpec& spec) {
  std::string head;
  AppendText(spec.name, head);
  AppendText(DTypeName(spec.dtype), head);
  AppendLittleEndian(static_cast<uint32_t>(spec.shape.size()), head);
  for (const int64_t dim : spec.shape) AppendLittleEndian(dim, head);
  hash_.Update(head);
}

absl::Status StateDigestBuilder::Add(absl::string_view name, const Sha256Digest& tensor) {
  if (!tensors_.emplace(std::string(name), tensor).second) {
    return absl::InvalidArgumentError(absl::StrCat("tensor '", name, "' is twice in one state"));
  }
  return absl::OkStatus();
}

absl::Status StateDigestBuilder::Add(const TensorSpec& spec, absl::string_view bytes) {
  TensorDigest digest(spec);
  digest.Update(bytes);
  return Add(spec.name, digest.Finish());
}

std::string StateDigestBuilder::Hex() const {
  Sha256 hash;
  for (const auto& [name, digest] : tensors_) {
    hash.Update(absl::string_view(reinterpret_cast<const char*>(digest.data()), digest.size()));
  }
  return ToHex(hash.Finish());
}

}  // namespace lockstep
