#include "chief/checkpoint/shard_sink.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/checkpoint_format/naming.h"
#include "common/checkpoint_format/safetensors.h"
#include "common/digest/crc32c.h"
#include "common/digest/sha256.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep::chief {
namespace {

// Room for headers, indexes and the manifest, beside the tensors.
constexpr uint64_t kOverheadBytes = 1 << 20;

}  // namespace

// A share on its way to its files. Pieces and files are finished as soon as their last byte is there, empty pieces with
// the piece or the opening before them.
struct ShardSink::OpenShare {
  explicit OpenShare(const Share& the_plan) : plan(the_plan) {}

  const Share& plan;
  uint64_t received = 0;
  size_t piece = 0;  // index of the present piece; pieces before it are finished
  uint64_t in_piece = 0;
  std::unique_ptr<WritableFile> file;
  std::optional<Sha256> file_hash;
  uint64_t file_bytes = 0;
  std::optional<TensorDigest> tensor_hash;
  uint32_t tensor_crc = 0;
  uint64_t data_offset = 0;  // of the present piece in its file's data section
};

ShardSink::ShardSink(TermHold& hold, SnapshotId id, std::vector<CheckpointTensor> layout, SharePlan plan)
    : hold_(hold), storage_(hold.storage()), id_(std::move(id)), layout_(std::move(layout)), plan_(std::move(plan)) {
  for (const Share& share : plan_.shares) shares_.push_back(std::make_unique<OpenShare>(share));
}

ShardSink::~ShardSink() = default;

absl::StatusOr<std::unique_ptr<ShardSink>> ShardSink::Open(TermHold& hold, SnapshotId id,
                                                           std::vector<CheckpointTensor> layout, int shares) {
  LS_ASSIGN_OR_RETURN(SharePlan plan, PlanShares(layout, shares));
  uint64_t needed = kOverheadBytes;
  for (const Share& share : plan.shares) needed += share.bytes;
  LS_ASSIGN_OR_RETURN(const uint64_t available, hold.storage().FreeBytes());
  if (available < needed) {
    return absl::ResourceExhaustedError(absl::StrCat("no room in ", hold.storage().Describe(""), " to save step ",
                                                     id.step, ": needed ", needed, " bytes, available ", available,
                                                     " bytes. Free some space or lower checkpoint.keep_latest"));
  }
  std::unique_ptr<ShardSink> sink(new ShardSink(hold, std::move(id), std::move(layout), std::move(plan)));
  if (absl::Status prepared = sink->Prepare(); !prepared.ok()) {
    sink->Abandon().IgnoreError();
    return hold.Explain(prepared);
  }
  return sink;
}

// Makes the directories and finishes what has no bytes.
absl::Status ShardSink::Prepare() {
  directory_ = hold_.Scratch(layout::StepName(static_cast<int64_t>(id_.step)));
  LS_RETURN_IF_ERROR(storage_.CreateDirectoryExclusive(directory_));
  for (const Share& share : plan_.shares) {
    for (const ShareFile& file : share.files) {
      LS_RETURN_IF_ERROR(storage_.CreateDirectories(JoinPath(directory_, ParentPath(file.path))));
    }
  }
  for (auto& share : shares_) LS_RETURN_IF_ERROR(Write(*share, ""));
  return absl::OkStatus();
}

absl::Status ShardSink::CheckChunk(const SnapshotId& id, int share, uint64_t offset, absl::string_view bytes) const {
  if (id != id_) {
    return absl::InvalidArgumentError(absl::StrCat("a shard of ", id.ToString(), " of lineage ", id.lineage,
                                                   " does not belong to the save of ", id_.ToString(), " of lineage ",
                                                   id_.lineage));
  }
  if (share < 0 || share >= shares()) {
    return absl::InvalidArgumentError(absl::StrCat("there is no share ", share, " of ", shares()));
  }
  const uint64_t size = plan_.shares[share].bytes;
  if (offset > size || bytes.size() > size - offset) {
    return absl::InvalidArgumentError(absl::StrCat("share ", share, " of ", id_.ToString(), " has ", size,
                                                   " bytes; got ", bytes.size(), " at ", offset));
  }
  if (offset > NextOffset(share)) {
    return absl::OutOfRangeError(absl::StrCat("share ", share, " of ", id_.ToString(), " continues at ",
                                              NextOffset(share), ", not at ", offset));
  }
  return absl::OkStatus();
}

absl::Status ShardSink::Accept(const SnapshotId& id, int share, uint64_t offset, absl::string_view bytes,
                               uint32_t crc32c) {
  LS_RETURN_IF_ERROR(broken_);
  LS_RETURN_IF_ERROR(CheckChunk(id, share, offset, bytes));
  if (Crc32c(bytes) != crc32c) {
    return absl::DataLossError(absl::StrCat("a chunk of share ", share, " of ", id_.ToString(), " at ", offset,
                                            " was damaged on its way: its CRC-32C differs"));
  }
  const uint64_t known = NextOffset(share) - offset;
  if (known >= bytes.size()) return absl::OkStatus();
  broken_ = hold_.Explain(Write(*shares_[share], bytes.substr(known)));
  return broken_;
}

absl::Status ShardSink::Write(OpenShare& share, absl::string_view bytes) {
  while (share.piece < share.plan.pieces.size()) {
    const SharePiece& piece = share.plan.pieces[share.piece];
    if (share.file == nullptr) LS_RETURN_IF_ERROR(BeginFile(share, share.plan.files[piece.file]));
    if (!share.tensor_hash) {
      share.tensor_hash.emplace(layout_[piece.tensor].spec);
      share.tensor_crc = 0;
      share.in_piece = 0;
    }
    const absl::string_view part = bytes.substr(0, std::min<uint64_t>(bytes.size(), piece.bytes - share.in_piece));
    if (!part.empty()) LS_RETURN_IF_ERROR(share.file->Append(part));
    share.file_hash->Update(part);
    share.tensor_hash->Update(part);
    share.tensor_crc = Crc32c(part, share.tensor_crc);
    share.file_bytes += part.size();
    share.in_piece += part.size();
    share.received += part.size();
    bytes.remove_prefix(part.size());
    if (share.in_piece < piece.bytes) return absl::OkStatus();
    LS_RETURN_IF_ERROR(EndPiece(share, piece));
  }
  return absl::OkStatus();
}

absl::Status ShardSink::BeginFile(OpenShare& share, const ShareFile& file) {
  std::vector<TensorSpec> specs;
  for (const int tensor : file.tensors) specs.push_back(layout_[tensor].spec);
  LS_ASSIGN_OR_RETURN(const std::string header, EncodeSafetensorsHeader(specs));
  LS_ASSIGN_OR_RETURN(share.file, storage_.CreateFile(JoinPath(directory_, file.path), Access::kShared));
  LS_RETURN_IF_ERROR(share.file->Append(header));
  share.file_hash.emplace();
  share.file_hash->Update(header);
  share.file_bytes = header.size();
  share.data_offset = 0;
  return absl::OkStatus();
}

absl::Status ShardSink::EndPiece(OpenShare& share, const SharePiece& piece) {
  const CheckpointTensor& tensor = layout_[piece.tensor];
  const ShareFile& file = share.plan.files[piece.file];
  const Sha256Digest digest = share.tensor_hash->Finish();
  share.tensor_hash.reset();
  LS_RETURN_IF_ERROR(digest_.Add(tensor.spec.name, digest));
  ManifestTensor entry;
  entry.set_name(tensor.spec.name);
  entry.set_group(tensor.group);
  entry.set_dtype(std::string(DTypeName(tensor.spec.dtype)));
  for (const int64_t dim : tensor.spec.shape) entry.add_shape(dim);
  entry.set_file(file.path);
  entry.set_begin(share.data_offset);
  entry.set_end(share.data_offset + piece.bytes);
  entry.set_crc32c(share.tensor_crc);
  entry.set_sha256(ToHex(digest));
  tensors_.push_back(std::move(entry));
  share.data_offset += piece.bytes;
  ++share.piece;
  if (piece.tensor == file.tensors.back()) return EndFile(share, file);
  return absl::OkStatus();
}

absl::Status ShardSink::EndFile(OpenShare& share, const ShareFile& file) {
  LS_RETURN_IF_ERROR(share.file->Sync());
  LS_RETURN_IF_ERROR(share.file->Close());
  share.file.reset();
  ManifestFile entry;
  entry.set_path(file.path);
  entry.set_size(share.file_bytes);
  entry.set_sha256(ToHex(share.file_hash->Finish()));
  share.file_hash.reset();
  files_.push_back(std::move(entry));
  return absl::OkStatus();
}

uint64_t ShardSink::NextOffset(int share) const { return shares_[share]->received; }
uint64_t ShardSink::ShareBytes(int share) const { return plan_.shares[share].bytes; }

bool ShardSink::ShareComplete(int share) const { return shares_[share]->piece == plan_.shares[share].pieces.size(); }

bool ShardSink::Complete() const {
  for (int share = 0; share < shares(); ++share) {
    if (!ShareComplete(share)) return false;
  }
  return broken_.ok();
}

absl::StatusOr<StoredShards> ShardSink::Finish() {
  LS_RETURN_IF_ERROR(broken_);
  if (!Complete()) {
    return absl::FailedPreconditionError(absl::StrCat("the save of ", id_.ToString(), " has not every share yet"));
  }
  LS_CHECK(digest_.size() == layout_.size(), "every tensor lies in one share");
  if (const std::string actual = digest_.Hex(); actual != id_.digest) {
    broken_ = absl::DataLossError(absl::StrCat("the shards of step ", id_.step, " make the state digest ", actual,
                                               "; the members announced ", id_.digest, ". The save is abandoned"));
    return broken_;
  }
  std::set<std::string> directories;
  for (const ManifestFile& file : files_) directories.insert(JoinPath(directory_, ParentPath(file.path())));
  for (const std::string& directory : directories) {
    LS_RETURN_IF_ERROR(hold_.Explain(storage_.SyncDirectory(directory)));
  }
  return StoredShards{id_, directory_, tensors_, files_};
}

absl::Status ShardSink::Abandon() {
  if (broken_.ok()) broken_ = absl::CancelledError(absl::StrCat("the save of ", id_.ToString(), " was abandoned"));
  for (auto& share : shares_) share->file.reset();
  if (directory_.empty()) return absl::OkStatus();
  return storage_.RemoveTree(directory_);
}

}  // namespace lockstep::chief
