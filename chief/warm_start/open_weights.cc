#include "chief/warm_start/open_weights.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "chief/checkpoint/checkpoint_reader.h"
#include "chief/checkpoint/checkpoints_of_job.h"
#include "chief/warm_start/tensorflow_weights.h"
#include "common/checkpoint_format/bucket_naming.h"
#include "common/checkpoint_format/safetensors.h"
#include "common/job_place/job_place.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"
#include "common/tensorflow_bundle/bundle_index.h"
#include "common/tensorflow_bundle/checkpoint_state.h"

namespace lockstep::chief {
namespace {

constexpr uint64_t kMaxIndexBytes = 256u << 20;
constexpr char kSingle[] = "model.safetensors";
constexpr char kIndex[] = "model.safetensors.index.json";
constexpr char kWhatServes[] =
    "give the directory of a job, one of its checkpoints, a .safetensors file, a folder with model.safetensors or "
    "model.safetensors.index.json, or the prefix of a TensorFlow checkpoint (of PREFIX.index); in PyTorch, "
    "safetensors.torch.save_file(model.state_dict(), FILE) writes a file";

// The model, or its average, of a job's checkpoint.
class CheckpointWeights final : public WeightSource {
 public:
  static absl::StatusOr<std::unique_ptr<WeightSource>> Make(std::unique_ptr<JobPlace> place, CheckpointReader reader,
                                                            bool average) {
    const absl::string_view group = average ? kEmaGroup : kModelGroup;
    std::vector<TensorSpec> tensors;
    std::vector<size_t> positions;
    for (const auto& [spec, position] : reader.TensorsOf(group)) {
      tensors.push_back(spec);
      positions.push_back(position);
    }
    const std::string where = place->storage().Describe(reader.path());
    if (tensors.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("model.from.weights: ", where, " holds no average of its weights; leave the key out"));
    }
    std::string description = absl::StrCat(average ? "the average of the weights in " : "", where, ", state ",
                                           reader.manifest().state_digest().substr(0, 16));
    return std::unique_ptr<WeightSource>(new CheckpointWeights(
        std::move(tensors), std::move(description), std::move(place), std::move(reader), std::move(positions)));
  }

  std::optional<size_t> FindSecondName(absl::string_view) const override { return std::nullopt; }

  absl::Status Read(size_t tensor, absl::Span<char> out) const override {
    size_t at = 0;
    return reader_.StreamTensor(positions_[tensor], [&](absl::string_view piece) {
      std::copy(piece.begin(), piece.end(), out.begin() + static_cast<std::ptrdiff_t>(at));
      at += piece.size();
      return absl::OkStatus();
    });
  }

 private:
  CheckpointWeights(std::vector<TensorSpec> tensors, std::string description, std::unique_ptr<JobPlace> place,
                    CheckpointReader reader, std::vector<size_t> positions)
      : WeightSource(std::move(tensors), std::move(description)),
        place_(std::move(place)),
        reader_(std::move(reader)),
        positions_(std::move(positions)) {}

  const std::unique_ptr<JobPlace> place_;  // which the reader reads from
  const CheckpointReader reader_;
  const std::vector<size_t> positions_;  // in the layout
};

// One or more files that lie in one folder.
class FileWeights final : public WeightSource {
 public:
  static absl::StatusOr<std::unique_ptr<WeightSource>> Make(std::unique_ptr<JobPlace> place,
                                                            const std::set<std::string>& names) {
    std::vector<SafetensorsReader> files;
    std::vector<TensorSpec> tensors;
    std::vector<Place> places;
    std::set<std::string> seen;
    for (const std::string& name : names) {
      LS_ASSIGN_OR_RETURN(SafetensorsReader file, SafetensorsReader::Open(place->storage(), name));
      for (const SafetensorsEntry& entry : file.header().entries) {
        if (!seen.insert(entry.spec.name).second) {
          return absl::InvalidArgumentError(absl::StrCat(place->storage().Describe(name), " holds tensor '",
                                                         entry.spec.name, "', and so does another file beside it"));
        }
        tensors.push_back(entry.spec);
        places.push_back({files.size(), entry});
      }
      files.push_back(std::move(file));
    }
    std::string description = place->storage().Describe(names.size() == 1 ? *names.begin() : "");
    return std::unique_ptr<WeightSource>(new FileWeights(std::move(tensors), std::move(description), std::move(place),
                                                         std::move(files), std::move(places)));
  }

  std::optional<size_t> FindSecondName(absl::string_view) const override { return std::nullopt; }

  absl::Status Read(size_t tensor, absl::Span<char> out) const override {
    return files_[places_[tensor].file].Read(places_[tensor].entry, 0, out);
  }

 private:
  struct Place {
    size_t file = 0;
    SafetensorsEntry entry;
  };

  FileWeights(std::vector<TensorSpec> tensors, std::string description, std::unique_ptr<JobPlace> place,
              std::vector<SafetensorsReader> files, std::vector<Place> places)
      : WeightSource(std::move(tensors), std::move(description)),
        place_(std::move(place)),
        files_(std::move(files)),
        places_(std::move(places)) {}

  const std::unique_ptr<JobPlace> place_;  // which the files are of
  const std::vector<SafetensorsReader> files_;
  const std::vector<Place> places_;
};

// The folder that `path`, of this machine or in a bucket, lies in, and its name there.
struct SplitPath {
  explicit SplitPath(const std::string& path) {
    const std::filesystem::path whole(std::string(absl::StripSuffix(path, "/")));
    folder = whole.has_parent_path() ? whole.parent_path().string() : ".";
    name = whole.filename().string();
  }
  std::string folder;
  std::string name;
};

// The files of a sharded model. Only the file names of the index are used; the tensors come from the files themselves.
absl::StatusOr<std::set<std::string>> FilesOfIndex(const Storage& storage) {
  LS_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(storage, kIndex, kMaxIndexBytes));
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto damaged = [&](absl::string_view what) {
    return absl::DataLossError(absl::StrCat(storage.Describe(kIndex), " ", what));
  };
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object()) {
    return damaged("is no index of safetensors: it has no weight_map");
  }
  std::set<std::string> files;
  for (const auto& [tensor, file] : json["weight_map"].items()) {
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    if (!absl::EndsWith(name, ".safetensors") || BaseName(name) != name || !CheckStoragePath(name).ok()) {
      return damaged(absl::StrCat("names no file beside it for tensor '", tensor, "'"));
    }
    files.insert(name);
  }
  if (files.empty()) return damaged("lists no tensor");
  return files;
}

absl::Status CheckNoJobKeys(const job::WarmStart& from) {
  if (from.has_step()) {
    return absl::InvalidArgumentError(
        absl::StrCat("model.from.step: ", from.path(), " is no job's directory; leave the key out"));
  }
  if (from.weights() != job::WarmStart::WEIGHTS_EMA) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("model.from.weights: ", from.path(),
                                                 " holds one model, and no average beside it; leave the key out"));
}

absl::StatusOr<std::unique_ptr<WeightSource>> OpenFile(const job::WarmStart& from) {
  LS_RETURN_IF_ERROR(CheckNoJobKeys(from));
  const SplitPath path(from.path());
  LS_ASSIGN_OR_RETURN(std::unique_ptr<JobPlace> place, JobPlace::Open(path.folder));
  return FileWeights::Make(std::move(place), {path.name});
}

// The checkpoint of that prefix; nullptr: there is none.
absl::StatusOr<std::unique_ptr<WeightSource>> OpenPrefix(const job::WarmStart& from, const std::string& prefix) {
  const SplitPath path(prefix);
  absl::StatusOr<std::unique_ptr<JobPlace>> place = JobPlace::Open(path.folder);
  if (absl::IsNotFound(place.status())) return nullptr;
  LS_RETURN_IF_ERROR(place.status());
  LS_ASSIGN_OR_RETURN(const bool there, (*place)->storage().Exists(absl::StrCat(path.name, kIndexSuffix)));
  if (!there) return nullptr;
  LS_RETURN_IF_ERROR(CheckNoJobKeys(from));
  return OpenTensorflowWeights(from, *std::move(place), path.name);
}

absl::StatusOr<std::unique_ptr<WeightSource>> OpenJob(const job::WarmStart& from, std::unique_ptr<JobPlace> place,
                                                      const CheckpointPaths& paths) {
  if (paths.empty()) {
    // In a bucket only the existing objects show whether a path is a folder or the prefix of a name.
    if (place->bucket() != nullptr) {
      LS_ASSIGN_OR_RETURN(std::unique_ptr<WeightSource> weights, OpenPrefix(from, from.path()));
      if (weights != nullptr) return weights;
    }
    return absl::NotFoundError(absl::StrCat("model.from: ", from.path(), " holds no trained weights; ", kWhatServes));
  }
  const auto step = from.has_step() ? std::optional<int64_t>(from.step()) : std::nullopt;
  LS_ASSIGN_OR_RETURN(CheckpointReader reader, OpenCheckpoint(place->storage(), paths, step));
  return CheckpointWeights::Make(std::move(place), std::move(reader), from.weights() == job::WarmStart::WEIGHTS_EMA);
}

// A single checkpoint of a job, named by its folder.
absl::StatusOr<std::unique_ptr<WeightSource>> OpenFolderOfCheckpoint(const job::WarmStart& from) {
  if (from.has_step()) {
    return absl::InvalidArgumentError(
        absl::StrCat("model.from.step: ", from.path(), " is one checkpoint; leave the key out"));
  }
  const SplitPath path(from.path());
  LS_ASSIGN_OR_RETURN(std::unique_ptr<JobPlace> place, JobPlace::Open(path.folder));
  LS_ASSIGN_OR_RETURN(CheckpointReader reader, CheckpointReader::Open(place->storage(), path.name));
  return CheckpointWeights::Make(std::move(place), std::move(reader), from.weights() == job::WarmStart::WEIGHTS_EMA);
}

}  // namespace

absl::StatusOr<std::unique_ptr<WeightSource>> OpenWeights(const job::WarmStart& from) {
  if (absl::EndsWith(from.path(), ".safetensors")) return OpenFile(from);
  const bool is_index = absl::EndsWith(from.path(), kIndexSuffix);
  std::error_code error;
  if (is_index || (!IsInBucket(from.path()) && !std::filesystem::is_directory(from.path(), error))) {
    LS_ASSIGN_OR_RETURN(std::unique_ptr<WeightSource> weights,
                        OpenPrefix(from, std::string(absl::StripSuffix(from.path(), kIndexSuffix))));
    if (weights != nullptr) return weights;
  }
  if (std::filesystem::is_regular_file(from.path(), error)) {
    return absl::InvalidArgumentError(
        absl::StrCat("model.from: ", from.path(), " is no .safetensors file; ", kWhatServes));
  }
  LS_ASSIGN_OR_RETURN(std::unique_ptr<JobPlace> place, JobPlace::Open(from.path()));
  const Storage& storage = place->storage();
  if (layout::ParseCheckpointFolder(SplitPath(from.path()).name).has_value()) return OpenFolderOfCheckpoint(from);
  for (const char* const name : {kIndex, kSingle}) {
    LS_ASSIGN_OR_RETURN(const bool there, storage.Exists(name));
    if (!there) continue;
    LS_RETURN_IF_ERROR(CheckNoJobKeys(from));
    std::set<std::string> files = {kSingle};
    if (name == kIndex) {
      LS_ASSIGN_OR_RETURN(files, FilesOfIndex(storage));
    }
    return FileWeights::Make(std::move(place), files);
  }
  // A job's own checkpoints come first: its directory may have an export in it.
  LS_ASSIGN_OR_RETURN(const CheckpointPaths paths, CheckpointsOfJob(*place));
  LS_ASSIGN_OR_RETURN(const bool names_newest, storage.Exists(kCheckpointStateFile));
  if (!paths.empty() || !names_newest) return OpenJob(from, std::move(place), paths);
  LS_RETURN_IF_ERROR(CheckNoJobKeys(from));
  LS_ASSIGN_OR_RETURN(const std::string prefix, NewestTensorflowCheckpoint(storage));
  return OpenTensorflowWeights(from, std::move(place), prefix);
}

}  // namespace lockstep::chief
