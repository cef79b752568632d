#include "chief/warm_start/tensorflow_weights.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "chief/warm_start/match_weights.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"
#include "common/tensorflow_bundle/bundle_reader.h"
#include "common/tensorflow_bundle/checkpoint_state.h"
#include "common/tensorflow_bundle/variable_names.h"

namespace lockstep::chief {
namespace {

// Its variables, an index in the bundle for each tensor.
class TensorflowWeights final : public WeightSource {
 public:
  TensorflowWeights(std::vector<TensorSpec> tensors, std::string description, std::unique_ptr<JobPlace> place,
                    BundleReader bundle, VariableNames names, std::vector<std::optional<size_t>> tensor_of,
                    std::vector<size_t> entries)
      : WeightSource(std::move(tensors), std::move(description)),
        place_(std::move(place)),
        bundle_(std::move(bundle)),
        names_(std::move(names)),
        tensor_of_(std::move(tensor_of)),
        entries_(std::move(entries)) {}

  std::optional<size_t> FindSecondName(absl::string_view name) const override {
    const std::optional<size_t> variable = names_.FindSecondName(name);
    return variable.has_value() ? tensor_of_[*variable] : std::nullopt;
  }

  absl::Status Read(size_t tensor, absl::Span<char> out) const override {
    return bundle_.Read(bundle_.index().entries[entries_[tensor]], out);
  }

 private:
  const std::unique_ptr<JobPlace> place_;  // which the bundle reads from
  const BundleReader bundle_;
  const VariableNames names_;
  const std::vector<std::optional<size_t>> tensor_of_;  // by variable of names_; nullopt: it is of no use here
  const std::vector<size_t> entries_;                   // by tensor
};

absl::StatusOr<VariableNames> NamesOf(const BundleReader& bundle) {
  const BundleEntry* const graph = bundle.index().Find(kObjectGraphKey);
  if (graph == nullptr) return VariableNames::OfNames(bundle.index());
  LS_ASSIGN_OR_RETURN(const std::string bytes, bundle.ReadString(*graph));
  return VariableNames::OfObjects(bundle.index(), bytes);
}

}  // namespace

absl::StatusOr<std::unique_ptr<WeightSource>> OpenTensorflowWeights(const job::WarmStart& from,
                                                                    std::unique_ptr<JobPlace> place,
                                                                    absl::string_view prefix) {
  LS_ASSIGN_OR_RETURN(BundleReader bundle, BundleReader::Open(place->storage(), prefix));
  absl::StatusOr<VariableNames> names = NamesOf(bundle);
  if (!names.ok()) {
    return absl::Status(names.status().code(),
                        absl::StrCat("TensorFlow checkpoint ", bundle.shown(), ": ", names.status().message()));
  }
  const std::vector<std::string> not_needed(from.allow_unused().begin(), from.allow_unused().end());
  std::vector<TensorSpec> tensors;
  std::vector<std::optional<size_t>> tensor_of;
  std::vector<size_t> entries;
  for (const VariableNames::Variable& variable : names->variables()) {
    const BundleEntry& entry = bundle.index().entries[variable.entry];
    const std::optional<DType> dtype = FromTensorflowType(entry.type);
    if (dtype.has_value() && !entry.partitioned) {
      tensor_of.emplace_back(tensors.size());
      tensors.push_back({variable.name, *dtype, entry.shape});
      entries.push_back(variable.entry);
      continue;
    }
    if (!MatchesAny(variable.name, not_needed)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "model.from: variable ", variable.name, " of ", bundle.shown(),
          entry.partitioned ? " is partitioned, which is not read; save it whole"
                            : absl::StrCat(" is of type ", TensorflowTypeName(entry.type), ", which no model has here"),
          ", or say that it is not needed with model.from.allow_unused"));
    }
    tensor_of.emplace_back(std::nullopt);
  }
  std::string description = absl::StrCat("TensorFlow checkpoint ", bundle.shown());
  if (names->of_optimizers() > 0) {
    absl::StrAppend(&description, " (", names->of_optimizers(), " variables of its optimizer are left out)");
  }
  return std::unique_ptr<WeightSource>(new TensorflowWeights(std::move(tensors), std::move(description),
                                                             std::move(place), std::move(bundle), *std::move(names),
                                                             std::move(tensor_of), std::move(entries)));
}

absl::StatusOr<std::string> NewestTensorflowCheckpoint(const Storage& storage) {
  LS_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(storage, kCheckpointStateFile, kMaxCheckpointStateBytes));
  const std::string shown = storage.Describe(kCheckpointStateFile);
  absl::StatusOr<std::string> prefix = ParseCheckpointState(text);
  if (!prefix.ok()) {
    return absl::Status(prefix.status().code(), absl::StrCat(shown, ": ", prefix.status().message()));
  }
  // Folders move: what was written from the root of a file system is looked for beside the file.
  const bool from_root = absl::StartsWith(*prefix, "/") || absl::StrContains(*prefix, "://");
  std::string within(from_root ? BaseName(*prefix) : absl::StripPrefix(*prefix, "./"));
  LS_ASSIGN_OR_RETURN(const bool there, storage.Exists(absl::StrCat(within, kIndexSuffix)));
  if (there) return within;
  return absl::NotFoundError(absl::StrCat(shown, " names the checkpoint ", *prefix, ", and ", storage.Describe(within),
                                          kIndexSuffix, " is not there; give the prefix of a checkpoint itself"));
}

}  // namespace lockstep::chief
