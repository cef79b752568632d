#include "chief/checkpoint/frozen_files.h"

#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/checkpoint_format/manifest.h"
#include "common/checkpoint_format/safetensors.h"
#include "common/digest/state_digest.h"
#include "common/status/status_macros.h"

namespace lockstep::chief {
namespace {

using NamedTensors = std::map<absl::string_view, const ManifestTensor*>;

// Adds the file of the checkpoint that is `wanted`, byte for byte.
absl::Status AddFile(absl::Span<const CheckpointTensor> layout, const ShareFile& wanted, const NamedTensors& tensors,
                     const Manifest& manifest, FrozenFiles& found) {
  const absl::Status other = absl::NotFoundError(absl::StrCat("no file of the checkpoint is ", wanted.path));
  std::vector<TensorSpec> specs;
  std::string path;
  uint64_t offset = 0;
  for (const int index : wanted.tensors) {
    const CheckpointTensor& tensor = layout[static_cast<size_t>(index)];
    const auto there = tensors.find(tensor.spec.name);
    if (there == tensors.end()) return other;
    ManifestTensor entry = *there->second;
    if (path.empty()) path = entry.file();
    LS_ASSIGN_OR_RETURN(const int64_t bytes, CheckedByteSize(tensor.spec.dtype, tensor.spec.shape));
    const uint64_t end = offset + static_cast<uint64_t>(bytes);
    const bool has_leaves = static_cast<uint64_t>(entry.leaves_size()) == LeafCount(end - offset);
    const std::optional<Sha256Digest> digest = ParseDigest(entry.sha256());
    const bool in_place = entry.file() == path && entry.begin() == offset && entry.end() == end;
    if (!in_place || !has_leaves || !digest.has_value()) return other;
    offset = end;
    specs.push_back(tensor.spec);
    specs.back().name = NameInFile(tensor.spec.name, wanted.group);
    found.digests.push_back(*digest);
    entry.set_file(wanted.path);
    found.tensors.push_back(std::move(entry));
  }
  // The header says names, forms and places: with the same header, nothing else lies in the file.
  LS_ASSIGN_OR_RETURN(const std::string header, EncodeSafetensorsHeader(specs));
  for (ManifestFile file : manifest.files()) {
    if (file.path() != path) continue;
    if (file.header_size() != header.size() || file.sha256() != Sha256Hex(header)) return other;
    file.set_path(wanted.path);
    found.from.push_back(path);
    found.files.push_back(std::move(file));
    return absl::OkStatus();
  }
  return other;
}

}  // namespace

absl::StatusOr<FrozenFiles> FindFrozenFiles(absl::Span<const CheckpointTensor> layout, const Share& share,
                                            const Manifest& manifest) {
  NamedTensors tensors;
  for (const ManifestTensor& tensor : manifest.tensors()) tensors.emplace(tensor.name(), &tensor);
  FrozenFiles found;
  for (const ShareFile& file : share.files) {
    LS_RETURN_IF_ERROR(AddFile(layout, file, tensors, manifest, found));
  }
  return found;
}

}  // namespace lockstep::chief
