#include "chief/checkpoint/checkpoint_reader.h"

#include <algorithm>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/checkpoint_format/bucket_naming.h"
#include "common/checkpoint_format/index.h"
#include "common/checkpoint_format/naming.h"
#include "common/digest/sha256.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"
#include "common/sync/mutex.h"

namespace lockstep::chief {
namespace {

constexpr size_t kReadBytes = 1 << 20;
constexpr uint64_t kBytesPerThread = 32u << 20;  // fewer are not worth a thread
constexpr uint64_t kMaxIndexBytes = 256u << 20;
constexpr uint64_t kMaxJobBytes = 16u << 20;

bool IsSafetensors(absl::string_view path) { return absl::EndsWith(path, ".safetensors"); }

}  // namespace

absl::Status CheckpointReader::ExplainMissing(const absl::Status& status) const {
  if (!absl::IsNotFound(status)) return status;
  const absl::StatusOr<bool> there = storage_->Exists(path_);
  if (there.ok() && !*there) {
    return absl::NotFoundError(absl::StrCat(storage_->Describe(path_), " is gone: it was removed meanwhile"));
  }
  return absl::DataLossError(absl::StrCat("a file that the manifest lists is missing: ", status.message()));
}

absl::StatusOr<CheckpointReader> CheckpointReader::Open(const Storage& storage, std::string path) {
  LS_ASSIGN_OR_RETURN(CheckpointReader reader, OpenFolder(storage, std::move(path)));
  const auto folder = layout::ParseCheckpointFolder(BaseName(reader.path_));
  if (!folder.has_value() || folder->step != reader.manifest_.step()) {
    return absl::DataLossError(absl::StrCat(storage.Describe(JoinPath(reader.path_, layout::kManifest)), " is of step ",
                                            reader.manifest_.step()));
  }
  return reader;
}

absl::StatusOr<CheckpointReader> CheckpointReader::OpenFolder(const Storage& storage, std::string path) {
  CheckpointReader reader(storage, std::move(path));
  const std::string manifest_path = JoinPath(reader.path_, layout::kManifest);
  const absl::StatusOr<std::string> json = ReadWholeFile(storage, manifest_path, kMaxManifestBytes);
  LS_RETURN_IF_ERROR(reader.ExplainMissing(json.status()));
  LS_ASSIGN_OR_RETURN(reader.manifest_, ParseManifest(*json, storage.Describe(manifest_path)));
  reader.layout_ = ManifestLayout(reader.manifest_);
  for (int i = 0; i < reader.manifest_.tensors_size(); ++i) reader.tensors_[reader.manifest_.tensors(i).name()] = i;
  LS_RETURN_IF_ERROR(reader.OpenFiles());
  LS_RETURN_IF_ERROR(reader.CheckTensors());
  for (const absl::string_view group : kGroups) LS_RETURN_IF_ERROR(reader.CheckIndex(group));
  return reader;
}

absl::Status CheckpointReader::OpenFiles() {
  for (const ManifestFile& file : manifest_.files()) {
    const std::string path = JoinPath(path_, file.path());
    const absl::StatusOr<std::unique_ptr<ReadableFile>> open = storage_->OpenFile(path);
    LS_RETURN_IF_ERROR(ExplainMissing(open.status()));
    if ((*open)->size() != file.size()) {
      return absl::DataLossError(
          absl::StrCat(storage_->Describe(path), " has ", (*open)->size(), " bytes; the manifest says ", file.size()));
    }
    if (!IsSafetensors(file.path())) continue;
    absl::StatusOr<SafetensorsReader> reader = SafetensorsReader::Open(*storage_, path);
    LS_RETURN_IF_ERROR(ExplainMissing(reader.status()));
    files_.emplace(file.path(), *std::move(reader));
  }
  return absl::OkStatus();
}

// Every tensor of the manifest is where it says, and the files hold nothing else.
absl::Status CheckpointReader::CheckTensors() const {
  size_t found = 0;
  for (size_t i = 0; i < layout_.size(); ++i) {
    const ManifestTensor& tensor = manifest_.tensors(static_cast<int>(i));
    const auto file = files_.find(tensor.file());
    TensorSpec spec = layout_[i].spec;
    spec.name = NameInFile(spec.name, tensor.group());
    const SafetensorsEntry* entry = file == files_.end() ? nullptr : file->second.Find(spec.name);
    if (entry == nullptr || entry->spec != spec || entry->begin != tensor.begin() || entry->end != tensor.end()) {
      return absl::DataLossError(absl::StrCat(storage_->Describe(JoinPath(path_, tensor.file())),
                                              " does not hold tensor '", tensor.name(), "' as the manifest says"));
    }
  }
  for (const auto& [path, reader] : files_) found += reader.header().entries.size();
  if (found == layout_.size()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(storage_->Describe(path_), " holds ", found, " tensors; the manifest lists ", layout_.size()));
}

absl::Status CheckpointReader::CheckIndex(absl::string_view group) const {
  std::map<std::string, std::set<std::string>> found;
  uint64_t total = 0;
  for (const ManifestTensor& tensor : manifest_.tensors()) {
    if (tensor.group() != group) continue;
    found[std::string(BaseName(tensor.file()))].insert(NameInFile(tensor.name(), group));
    total += tensor.end() - tensor.begin();
  }
  if (found.size() <= 1) return absl::OkStatus();
  const std::string path = JoinPath(path_, layout::IndexPath(group));
  const absl::StatusOr<std::string> json = ReadWholeFile(*storage_, path, kMaxIndexBytes);
  LS_RETURN_IF_ERROR(ExplainMissing(json.status()));
  LS_ASSIGN_OR_RETURN(const ShardIndex index, ParseShardIndex(*json, storage_->Describe(path)));
  return CheckShardIndex(index, found, total, storage_->Describe(path));
}

absl::Status CheckpointReader::VerifyFile(const ManifestFile& file) const {
  const std::string path = JoinPath(path_, file.path());
  const absl::StatusOr<std::unique_ptr<ReadableFile>> open = storage_->OpenFile(path);
  LS_RETURN_IF_ERROR(ExplainMissing(open.status()));
  Sha256 hash;
  const uint64_t size = file.header_size() != 0 ? file.header_size() : file.size();
  std::vector<char> piece;
  for (uint64_t at = 0; at < size; at += piece.size()) {
    piece.resize(std::min<uint64_t>(kReadBytes, size - at));
    LS_RETURN_IF_ERROR((*open)->ReadAt(at, absl::MakeSpan(piece)));
    hash.Update({piece.data(), piece.size()});
  }
  const std::string actual = ToHex(hash.Finish());
  if (actual == file.sha256()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(storage_->Describe(path), " was damaged: its SHA-256 is ", actual,
                                          ", the manifest says ", file.sha256()));
}

absl::Status CheckpointReader::ReadLeaf(const Leaf& leaf, std::vector<char>& out) const {
  const ManifestTensor& entry = manifest_.tensors(static_cast<int>(leaf.tensor));
  const SafetensorsReader& file = files_.at(entry.file());
  out.resize(LeafSize(entry.end() - entry.begin(), leaf.index));
  return file.Read(*file.Find(NameInFile(entry.name(), entry.group())), leaf.index * kLeafBytes, absl::MakeSpan(out));
}

absl::Status CheckpointReader::CheckLeaf(const Leaf& leaf, absl::string_view bytes) const {
  const ManifestTensor& entry = manifest_.tensors(static_cast<int>(leaf.tensor));
  if (Sha256Hex(bytes) == entry.leaves(static_cast<int>(leaf.index))) return absl::OkStatus();
  const uint64_t begin = leaf.index * kLeafBytes;
  return absl::DataLossError(absl::StrCat(
      "tensor '", entry.name(), "' in ", storage_->Describe(JoinPath(path_, entry.file())), " was damaged: its bytes ",
      begin, " to ", begin + bytes.size(), " have another digest than the ", "manifest says"));
}

absl::Status CheckpointReader::ForEachLeaf(
    int threads, const std::atomic<bool>* stop,
    const std::function<absl::Status(const Leaf&, absl::string_view)>& take) const {
  std::vector<Leaf> leaves;
  for (size_t tensor = 0; tensor < layout_.size(); ++tensor) {
    const ManifestTensor& entry = manifest_.tensors(static_cast<int>(tensor));
    for (uint64_t i = 0; i < LeafCount(entry.end() - entry.begin()); ++i) leaves.push_back({tensor, i});
  }
  std::atomic<size_t> next{0};
  Mutex mutex;
  size_t failed = leaves.size();
  absl::Status error;
  const auto work = [&] {
    std::vector<char> bytes;
    for (size_t i = next++; i < leaves.size(); i = next++) {
      absl::Status done = absl::OkStatus();
      if (stop != nullptr && *stop) done = absl::CancelledError("told to stop");
      if (done.ok()) done = ReadLeaf(leaves[i], bytes);
      if (done.ok()) done = take(leaves[i], {bytes.data(), bytes.size()});
      if (done.ok()) continue;
      next = leaves.size();
      MutexLock lock(&mutex);
      if (i < failed) failed = i, error = std::move(done);
    }
  };
  std::vector<std::thread> helpers;
  if (threads == 0) {
    threads = static_cast<int>(std::min<uint64_t>(kReadingThreads, TensorBytes() / kBytesPerThread));
  }
  for (int thread = 1; thread < threads; ++thread) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
  return error;
}

std::vector<CheckpointReader::TensorInFile> CheckpointReader::TensorsOf(absl::string_view group) const {
  std::vector<TensorInFile> tensors;
  for (size_t i = 0; i < layout_.size(); ++i) {
    if (layout_[i].group != group) continue;
    tensors.push_back({layout_[i].spec, i});
    tensors.back().spec.name = NameInFile(layout_[i].spec.name, group);
  }
  return tensors;
}

uint64_t CheckpointReader::TensorBytes(absl::string_view group) const {
  uint64_t bytes = 0;
  for (const ManifestTensor& tensor : manifest_.tensors()) {
    if (group.empty() || tensor.group() == group) bytes += tensor.end() - tensor.begin();
  }
  return bytes;
}

absl::Status CheckpointReader::StreamTensor(size_t tensor, const TakeBytes& take) const {
  if (!has_leaves()) return StreamFlat(tensor, take);
  const ManifestTensor& entry = manifest_.tensors(static_cast<int>(tensor));
  std::vector<char> bytes;
  for (int i = 0; i < entry.leaves_size(); ++i) {
    const Leaf leaf{tensor, static_cast<uint64_t>(i)};
    LS_RETURN_IF_ERROR(ReadLeaf(leaf, bytes));
    LS_RETURN_IF_ERROR(CheckLeaf(leaf, {bytes.data(), bytes.size()}));
    LS_RETURN_IF_ERROR(take({bytes.data(), bytes.size()}));
  }
  return absl::OkStatus();
}

absl::Status CheckpointReader::StreamFlat(size_t tensor, const TakeBytes& take) const {
  const ManifestTensor& entry = manifest_.tensors(static_cast<int>(tensor));
  FlatTensorDigest digest(layout_[tensor].spec);
  std::vector<char> bytes;
  for (uint64_t i = 0; i < LeafCount(entry.end() - entry.begin()); ++i) {
    LS_RETURN_IF_ERROR(ReadLeaf({tensor, i}, bytes));
    digest.Update({bytes.data(), bytes.size()});
    LS_RETURN_IF_ERROR(take({bytes.data(), bytes.size()}));
  }
  if (ToHex(digest.Finish()) == entry.sha256()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("tensor '", entry.name(), "' in ",
                                          storage_->Describe(JoinPath(path_, entry.file())),
                                          " has another digest than the manifest says"));
}

absl::Status CheckpointReader::VerifyContent(const std::atomic<bool>* stop, const OnBytes& on_bytes,
                                             int threads) const {
  for (const ManifestFile& file : manifest_.files()) LS_RETURN_IF_ERROR(VerifyFile(file));
  Mutex mutex;
  const auto count = [&](absl::string_view bytes) {
    if (on_bytes == nullptr) return absl::OkStatus();
    MutexLock lock(&mutex);
    on_bytes(bytes.size());
    return absl::OkStatus();
  };
  if (has_leaves()) {
    return ForEachLeaf(threads, stop, [&](const Leaf& leaf, absl::string_view bytes) {
      LS_RETURN_IF_ERROR(CheckLeaf(leaf, bytes));
      return count(bytes);
    });
  }
  for (size_t i = 0; i < layout_.size(); ++i) {
    if (stop != nullptr && *stop) return absl::CancelledError("told to stop");
    LS_RETURN_IF_ERROR(StreamFlat(i, count));
  }
  return absl::OkStatus();
}

absl::StatusOr<StateDigests> CheckpointReader::ComputeDigests() const {
  StateDigests state;
  for (size_t i = 0; i < layout_.size(); ++i) {
    const ManifestTensor& entry = manifest_.tensors(static_cast<int>(i));
    state.tensors.emplace_back().leaves.resize(LeafCount(entry.end() - entry.begin()));
  }
  LS_RETURN_IF_ERROR(ForEachLeaf(/*threads=*/0, nullptr, [&](const Leaf& leaf, absl::string_view bytes) {
    state.tensors[leaf.tensor].leaves[leaf.index] = Sha256Of(bytes);
    return absl::OkStatus();
  }));
  StateDigestBuilder root;
  for (size_t i = 0; i < layout_.size(); ++i) {
    state.tensors[i].digest = TensorDigestOf(layout_[i].spec, state.tensors[i].leaves);
    LS_RETURN_IF_ERROR(root.Add(layout_[i].spec.name, state.tensors[i].digest));
  }
  state.state = root.Hex();
  return state;
}

absl::Status CheckpointReader::ReadTensor(absl::string_view name, uint64_t offset, absl::Span<char> out) const {
  const auto it = tensors_.find(std::string(name));
  if (it == tensors_.end()) {
    return absl::NotFoundError(absl::StrCat(storage_->Describe(path_), " holds no tensor '", name, "'"));
  }
  const ManifestTensor& tensor = manifest_.tensors(it->second);
  const SafetensorsReader& file = files_.at(tensor.file());
  return file.Read(*file.Find(NameInFile(name, tensor.group())), offset, out);
}

absl::Status CheckpointReader::ReadShare(absl::Span<const CheckpointTensor> layout, const Share& share, uint64_t offset,
                                         absl::Span<char> out) const {
  if (offset > share.bytes || out.size() > share.bytes - offset) {
    return absl::OutOfRangeError(
        absl::StrCat("the share has ", share.bytes, " bytes; asked for ", out.size(), " from ", offset));
  }
  // The first piece that ends after `offset`.
  auto piece = std::partition_point(share.pieces.begin(), share.pieces.end(),
                                    [&](const SharePiece& p) { return p.begin + p.bytes <= offset; });
  while (!out.empty()) {
    const uint64_t within = offset - piece->begin;
    const size_t n = std::min<uint64_t>(out.size(), piece->bytes - within);
    LS_RETURN_IF_ERROR(ReadTensor(layout[piece->tensor].spec.name, within, out.subspan(0, n)));
    out.remove_prefix(n);
    offset += n;
    ++piece;
  }
  return absl::OkStatus();
}

absl::Status CheckpointReader::CheckLayout(absl::Span<const CheckpointTensor> layout) const {
  std::map<absl::string_view, const CheckpointTensor*> wanted;
  for (const CheckpointTensor& tensor : layout) wanted.emplace(tensor.spec.name, &tensor);
  for (const CheckpointTensor& tensor : layout_) {
    const auto it = wanted.find(tensor.spec.name);
    if (it == wanted.end()) {
      return absl::FailedPreconditionError(absl::StrCat(storage_->Describe(path_), " holds tensor '", tensor.spec.name,
                                                        "', which the metagraph does not have"));
    }
    if (*it->second != tensor) {
      return absl::FailedPreconditionError(
          absl::StrCat("tensor '", tensor.spec.name, "' is ", DTypeName(tensor.spec.dtype),
                       ShapeString(tensor.spec.shape), " in ", storage_->Describe(path_), " and ",
                       DTypeName(it->second->spec.dtype), ShapeString(it->second->spec.shape), " in the metagraph"));
    }
    wanted.erase(it);
  }
  if (wanted.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(storage_->Describe(path_), " lacks tensor '", wanted.begin()->first, "' of the metagraph"));
}

absl::StatusOr<std::string> CheckpointReader::ReadJob() const {
  return ReadWholeFile(*storage_, JoinPath(path_, layout::kJob), kMaxJobBytes);
}

absl::StatusOr<CheckpointPaths> CheckpointsOfDirectory(const Storage& storage) {
  const absl::StatusOr<std::vector<DirectoryEntry>> entries = storage.List(layout::kCheckpoints);
  if (absl::IsNotFound(entries.status())) return CheckpointPaths();
  LS_RETURN_IF_ERROR(entries.status());
  CheckpointPaths paths;
  for (const DirectoryEntry& entry : *entries) {
    if (layout::ParseStepName(entry.name)) paths.push_back(JoinPath(layout::kCheckpoints, entry.name));
  }
  return paths;
}

CheckpointPaths CheckpointsOfRecord(const CommitRecord& record) {
  CheckpointPaths paths;
  for (const LiveCheckpoint& live : record.live()) paths.push_back(live.prefix());
  return paths;
}

absl::StatusOr<std::vector<CheckpointSummary>> ListCheckpoints(const Storage& storage, const CheckpointPaths& paths) {
  std::vector<std::pair<int64_t, std::string>> found;
  for (const std::string& path : paths) {
    if (const auto folder = layout::ParseCheckpointFolder(BaseName(path))) found.emplace_back(folder->step, path);
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<CheckpointSummary> summaries;
  for (const auto& [step, path] : found) {
    CheckpointSummary summary;
    summary.name = layout::StepName(step);
    summary.path = path;
    const absl::StatusOr<CheckpointReader> reader = CheckpointReader::Open(storage, path);
    if (absl::IsNotFound(reader.status())) continue;  // removed since the listing
    summary.status = reader.status();
    if (reader.ok()) summary.manifest = reader->manifest();
    summaries.push_back(std::move(summary));
  }
  return summaries;
}

absl::StatusOr<std::vector<CheckpointSummary>> ListCheckpoints(const Storage& storage) {
  LS_ASSIGN_OR_RETURN(const CheckpointPaths paths, CheckpointsOfDirectory(storage));
  return ListCheckpoints(storage, paths);
}

absl::StatusOr<CheckpointReader> OpenCheckpoint(const Storage& storage, const CheckpointPaths& paths,
                                                std::optional<int64_t> step) {
  LS_ASSIGN_OR_RETURN(const std::vector<CheckpointSummary> summaries, ListCheckpoints(storage, paths));
  for (const CheckpointSummary& summary : summaries) {
    if (step ? summary.name == layout::StepName(*step) : summary.status.ok()) {
      absl::StatusOr<CheckpointReader> reader = CheckpointReader::Open(storage, summary.path);
      if (!absl::IsNotFound(reader.status())) return reader;  // else retention was faster
    }
  }
  const std::string which = step ? absl::StrCat("checkpoint of step ", *step) : "readable checkpoint";
  return absl::NotFoundError(absl::StrCat("there is no ", which, " in ", storage.Describe(layout::kCheckpoints)));
}

absl::StatusOr<CheckpointReader> OpenCheckpoint(const Storage& storage, std::optional<int64_t> step) {
  LS_ASSIGN_OR_RETURN(const CheckpointPaths paths, CheckpointsOfDirectory(storage));
  return OpenCheckpoint(storage, paths, step);
}

}  // namespace lockstep::chief
