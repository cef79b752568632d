#include "chief/checkpoint/shard_sink.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/checkpoint/frozen_files.h"
#include "common/checkpoint_format/naming.h"
#include "common/checkpoint_format/safetensors.h"
#include "common/digest/crc32c.h"
#include "common/digest/state_digest.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep::chief {
namespace {

// Room for headers, indexes and the manifest, beside the tensors.
constexpr uint64_t kOverheadBytes = 1 << 20;

}  // namespace

// A share on its way to its files. Pieces and files are finished as soon as their last leaf is there, empty pieces with
// the piece or the opening before them.
struct ShardSink::OpenShare {
  OpenShare(const Share& the_plan, const std::vector<CheckpointTensor>& the_layout)
      : plan(the_plan), layout(the_layout) {}

  // 0: no leaf is missing.
  uint64_t NextLeafSize() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // REQUIRES: `bytes` are the next leaf.
  absl::Status Write(Storage& storage, const std::string& directory, absl::string_view bytes,
                     const Sha256Digest& digest) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Opens the present piece's file; finishes pieces that have no bytes.
  absl::Status BeginPiece(Storage& storage, const std::string& directory) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  absl::Status BeginFile(Storage& storage, const std::string& directory, const ShareFile& to)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  absl::Status EndPiece(const SharePiece& of) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Completes the share by `files` of the checkpoint at `from`. After an error nothing has changed.
  absl::Status TakeOver(Storage& storage, const std::string& from, const std::string& directory,
                        const FrozenFiles& files) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  const Share& plan;
  const std::vector<CheckpointTensor>& layout;

  Mutex mutex;
  uint64_t received GUARDED_BY(mutex) = 0;
  size_t piece GUARDED_BY(mutex) = 0;          // index of the present piece; pieces before it are finished
  uint64_t data_offset GUARDED_BY(mutex) = 0;  // of the present piece in its file's data section
  std::unique_ptr<WritableFile> file GUARDED_BY(mutex);
  LeafDigests leaves GUARDED_BY(mutex);  // of the present piece
  uint32_t tensor_crc GUARDED_BY(mutex) = 0;
  // What is finished.
  std::vector<ManifestTensor> tensors GUARDED_BY(mutex);
  std::vector<Sha256Digest> digests GUARDED_BY(mutex);  // of `tensors`
  std::vector<ManifestFile> files GUARDED_BY(mutex);
};

ShardSink::ShardSink(TermHold& hold, SnapshotId id, std::vector<CheckpointTensor> layout, SharePlan plan)
    : hold_(hold), storage_(hold.storage()), id_(std::move(id)), layout_(std::move(layout)), plan_(std::move(plan)) {
  for (const Share& share : plan_.shares) shares_.push_back(std::make_unique<OpenShare>(share, layout_));
}

ShardSink::~ShardSink() = default;

absl::StatusOr<std::unique_ptr<ShardSink>> ShardSink::Open(TermHold& hold, SnapshotId id,
                                                           std::vector<CheckpointTensor> layout, int shares,
                                                           absl::Span<const FrozenSource> sources) {
  LS_ASSIGN_OR_RETURN(SharePlan plan, PlanSave(layout, shares));
  std::unique_ptr<ShardSink> sink(new ShardSink(hold, std::move(id), std::move(layout), std::move(plan)));
  if (absl::Status prepared = sink->Prepare(sources); !prepared.ok()) {
    sink->Abandon().IgnoreError();
    return hold.Explain(prepared);
  }
  return sink;
}

// Makes the directories, reuses frozen files of earlier checkpoints, and finishes pieces without bytes.
absl::Status ShardSink::Prepare(absl::Span<const FrozenSource> sources) {
  std::set<std::string> groups;
  for (const Share& share : plan_.shares) {
    for (const ShareFile& file : share.files) groups.emplace(ParentPath(file.path));
  }
  groups.erase("");
  LS_ASSIGN_OR_RETURN(directory_, hold_.NewCheckpoint(static_cast<int64_t>(id_.step), groups));
  if (HasFrozenShare(layout_)) TakeOverFrozen(sources);
  LS_RETURN_IF_ERROR(CheckRoom());
  for (auto& share : shares_) {
    MutexLock lock(&share->mutex);
    LS_RETURN_IF_ERROR(share->BeginPiece(storage_, directory_));
  }
  return absl::OkStatus();
}

absl::Status ShardSink::CheckRoom() const {
  uint64_t needed = kOverheadBytes;
  for (const auto& share : shares_) {
    MutexLock lock(&share->mutex);
    needed += share->plan.bytes - share->received;
  }
  LS_ASSIGN_OR_RETURN(const uint64_t available, storage_.FreeBytes());
  if (available >= needed) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("no room in ", storage_.Describe(""), " to save step ", id_.step,
                                                   ": needed ", needed, " bytes, available ", available,
                                                   " bytes. Free some space or lower checkpoint.keep_latest"));
}

void ShardSink::TakeOverFrozen(absl::Span<const FrozenSource> sources) {
  OpenShare& open = *shares_.back();
  std::optional<uint64_t> newest;  // the identity of its first file
  for (const FrozenSource& source : sources) {
    const absl::StatusOr<FrozenFiles> files = FindFrozenFiles(layout_, open.plan, *source.manifest);
    if (!files.ok()) continue;
    const auto first = storage_.OpenFile(JoinPath(source.path, files->from.front()));
    if (!first.ok()) continue;
    const uint64_t identity = (*first)->facts().identity;
    // Where one file cannot be told from another, nobody would know how many copies there are.
    if (!hold_.in_bucket() && (identity == 0 || newest == identity)) continue;
    // Before there are two copies the newest one is not shared.
    if (!hold_.in_bucket() && !newest.has_value()) {
      newest = identity;
      continue;
    }
    MutexLock lock(&open.mutex);
    if (open.TakeOver(storage_, source.path, directory_, *files).ok()) return;
  }
}

absl::Status ShardSink::Broken() const {
  MutexLock lock(&mutex_);
  return broken_;
}

absl::Status ShardSink::Break(absl::Status error) {
  MutexLock lock(&mutex_);
  if (broken_.ok()) broken_ = std::move(error);
  return broken_;
}

absl::Status ShardSink::AcceptLeaf(int share, uint64_t offset, absl::string_view bytes, const Sha256Digest& digest) {
  if (share < 0 || share >= shares()) {
    return absl::InvalidArgumentError(absl::StrCat("there is no share ", share, " of ", shares()));
  }
  OpenShare& open = *shares_[static_cast<size_t>(share)];
  MutexLock lock(&open.mutex);
  LS_RETURN_IF_ERROR(Broken());  // under the share's lock: once abandoned, nothing is written any more
  if (offset < open.received && bytes.size() <= open.received - offset) return absl::OkStatus();
  if (offset > open.received) {
    return absl::OutOfRangeError(
        absl::StrCat("share ", share, " of ", id_.ToString(), " continues at ", open.received, ", not at ", offset));
  }
  if (offset < open.received || bytes.size() != open.NextLeafSize()) {
    return absl::InvalidArgumentError(absl::StrCat(bytes.size(), " bytes at ", offset, " are no leaf of the share"));
  }
  const absl::Status written = open.Write(storage_, directory_, bytes, digest);
  return written.ok() ? written : Break(hold_.Explain(written));
}

absl::Status ShardSink::OpenShare::TakeOver(Storage& storage, const std::string& from, const std::string& directory,
                                            const FrozenFiles& source) {
  for (size_t i = 0; i < source.from.size(); ++i) {
    const absl::Status linked = storage.Link(JoinPath(from, source.from[i]), JoinPath(directory, plan.files[i].path));
    if (linked.ok()) continue;
    for (size_t made = 0; made <= i; ++made) {
      LS_RETURN_IF_ERROR(storage.RemoveTree(JoinPath(directory, plan.files[made].path)));
    }
    return linked;
  }
  tensors = source.tensors;
  digests = source.digests;
  files = source.files;
  piece = plan.pieces.size();
  received = plan.bytes;
  return absl::OkStatus();
}

uint64_t ShardSink::OpenShare::NextLeafSize() const {
  return piece < plan.pieces.size() ? LeafSize(plan.pieces[piece].bytes, leaves.size()) : 0;
}

absl::Status ShardSink::OpenShare::Write(Storage& storage, const std::string& directory, absl::string_view bytes,
                                         const Sha256Digest& digest) {
  const SharePiece& present = plan.pieces[piece];
  LS_RETURN_IF_ERROR(file->Append(bytes));
  leaves.push_back(digest);
  tensor_crc = Crc32c(bytes, tensor_crc);
  received += bytes.size();
  if (leaves.size() < LeafCount(present.bytes)) return absl::OkStatus();
  LS_RETURN_IF_ERROR(EndPiece(present));
  return BeginPiece(storage, directory);
}

absl::Status ShardSink::OpenShare::BeginPiece(Storage& storage, const std::string& directory) {
  while (piece < plan.pieces.size()) {
    const SharePiece& present = plan.pieces[piece];
    if (file == nullptr) LS_RETURN_IF_ERROR(BeginFile(storage, directory, plan.files[present.file]));
    if (present.bytes > 0) return absl::OkStatus();
    LS_RETURN_IF_ERROR(EndPiece(present));
  }
  return absl::OkStatus();
}

absl::Status ShardSink::OpenShare::BeginFile(Storage& storage, const std::string& directory, const ShareFile& to) {
  std::vector<TensorSpec> specs;
  for (const int tensor : to.tensors) {
    specs.push_back(layout[tensor].spec);
    specs.back().name = NameInFile(specs.back().name, to.group);
  }
  LS_ASSIGN_OR_RETURN(const std::string header, EncodeSafetensorsHeader(specs));
  LS_ASSIGN_OR_RETURN(file, storage.CreateFile(JoinPath(directory, to.path), Access::kShared));
  LS_RETURN_IF_ERROR(file->Append(header));
  ManifestFile& entry = files.emplace_back();
  entry.set_path(to.path);
  entry.set_header_size(header.size());
  entry.set_sha256(Sha256Hex(header));
  data_offset = 0;
  return absl::OkStatus();
}

absl::Status ShardSink::OpenShare::EndPiece(const SharePiece& of) {
  const CheckpointTensor& tensor = layout[of.tensor];
  const ShareFile& in = plan.files[of.file];
  const Sha256Digest digest = TensorDigestOf(tensor.spec, leaves);
  digests.push_back(digest);
  ManifestTensor& entry = tensors.emplace_back();
  entry.set_name(tensor.spec.name);
  entry.set_group(tensor.group);
  entry.set_dtype(std::string(DTypeName(tensor.spec.dtype)));
  for (const int64_t dim : tensor.spec.shape) entry.add_shape(dim);
  entry.set_file(in.path);
  entry.set_begin(data_offset);
  entry.set_end(data_offset + of.bytes);
  entry.set_crc32c(tensor_crc);
  entry.set_sha256(ToHex(digest));
  for (const Sha256Digest& leaf : leaves) entry.add_leaves(ToHex(leaf));
  leaves.clear();
  tensor_crc = 0;
  data_offset += of.bytes;
  ++piece;
  if (of.tensor != in.tensors.back()) return absl::OkStatus();
  files.back().set_size(files.back().header_size() + data_offset);
  LS_RETURN_IF_ERROR(file->Sync());
  LS_RETURN_IF_ERROR(file->Close());
  file.reset();
  return absl::OkStatus();
}

uint64_t ShardSink::NextOffset(int share) const {
  MutexLock lock(&shares_[share]->mutex);
  return shares_[share]->received;
}

bool ShardSink::ShareComplete(int share) const {
  MutexLock lock(&shares_[share]->mutex);
  return shares_[share]->piece == plan_.shares[share].pieces.size();
}

bool ShardSink::Complete() const {
  for (int share = 0; share < shares(); ++share) {
    if (!ShareComplete(share)) return false;
  }
  return Broken().ok();
}

absl::StatusOr<StoredShards> ShardSink::Finish() {
  LS_RETURN_IF_ERROR(Broken());
  if (!Complete()) {
    return absl::FailedPreconditionError(absl::StrCat("the save of ", id_.ToString(), " has not every share yet"));
  }
  StoredShards stored{id_, directory_, {}, {}};
  StateDigestBuilder digest;
  for (auto& share : shares_) {
    MutexLock lock(&share->mutex);
    for (size_t i = 0; i < share->tensors.size(); ++i) {
      LS_RETURN_IF_ERROR(digest.Add(share->tensors[i].name(), share->digests[i]));
      stored.tensors.push_back(share->tensors[i]);
    }
    stored.files.insert(stored.files.end(), share->files.begin(), share->files.end());
  }
  LS_CHECK(digest.size() == layout_.size(), "every tensor lies in one share");
  if (const std::string actual = digest.Hex(); actual != id_.digest) {
    return Break(absl::DataLossError(absl::StrCat("the shards of step ", id_.step, " make the state digest ", actual,
                                                  "; the members announced ", id_.digest, ". The save is abandoned")));
  }
  std::set<std::string> directories;
  for (const ManifestFile& file : stored.files) directories.insert(JoinPath(directory_, ParentPath(file.path())));
  for (const std::string& directory : directories) {
    LS_RETURN_IF_ERROR(hold_.Explain(storage_.SyncDirectory(directory)));
  }
  return stored;
}

absl::Status ShardSink::Abandon() {
  Break(absl::CancelledError(absl::StrCat("the save of ", id_.ToString(), " was abandoned"))).IgnoreError();
  for (auto& share : shares_) {
    MutexLock lock(&share->mutex);
    share->file.reset();
  }
  if (directory_.empty()) return absl::OkStatus();
  return hold_.Discard(directory_);
}

}  // namespace lockstep::chief
