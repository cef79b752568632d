// Test helpers for code that stores checkpoints: a small state, saves of it, and a chief.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_CHIEF_CHECKPOINT_CHECKPOINT_TEST_UTIL_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_CHECKPOINT_TEST_UTIL_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chief/checkpoint/found_mark.h"
#include "chief/checkpoint/manifest_store.h"
#include "chief/checkpoint/recovery.h"
#include "chief/checkpoint/shard_sink.h"
#include "chief/checkpoint/share_receiver.h"
#include "chief/term/directory_mark.h"
#include "chief/term/job_log.h"
#include "chief/term/log_term_registry.h"
#include "chief/term/storage_term_registry.h"
#include "chief/term/term_claim.h"
#include "common/checkpoint_format/share_proof.h"
#include "common/digest/crc32c.h"
#include "common/digest/state_digest.h"
#include "common/status/status_macros.h"

namespace lockstep::chief {

// Seven tensors in three groups, an empty one among them; their bytes are a function of `step`.
struct SmallState {
  explicit SmallState(int64_t the_step) : step(the_step) {
    const auto add = [&](absl::string_view group, TensorSpec spec) {
      const auto size = static_cast<size_t>(CheckedByteSize(spec.dtype, spec.shape).value());
      std::string content(size, '\0');
      for (size_t i = 0; i < size; ++i) {
        content[i] = static_cast<char>(i * 7 + bytes.size() * 31 + static_cast<size_t>(step) * 13);
      }
      layout.push_back({std::string(group), std::move(spec)});
      bytes.push_back(std::move(content));
    };
    add(kModelGroup, {"conv1.weight", DType::kF32, {6, 1, 5, 5}});
    add(kModelGroup, {"conv1.bias", DType::kF32, {6}});
    add(kModelGroup, {"none", DType::kF32, {0, 3}});
    add(kOptimizerGroup, {"momentum_buffer.conv1.weight", DType::kF32, {6, 1, 5, 5}});
    add(kEmaGroup, {"lockstep.ema.conv1.weight", DType::kF32, {6, 1, 5, 5}});
    add(kEmaGroup, {"lockstep.ema.conv1.bias", DType::kF32, {6}});
    add(kOptimizerGroup, {"lockstep.step", DType::kI64, {}});
  }

  StateDigests Digests() const {
    std::vector<TensorBytes> tensors;
    for (size_t i = 0; i < layout.size(); ++i) tensors.push_back({&layout[i].spec, bytes[i]});
    return DigestState(tensors, 1);
  }
  std::string Digest() const { return Digests().state; }
  SnapshotId Id(std::string lineage = "line-1") const {
    return {std::move(lineage), static_cast<uint64_t>(step), Digest()};
  }
  // The stream of share k of n.
  std::string Stream(int share, int shares) const {
    std::string stream;
    const SharePlan plan = PlanSave(layout, shares).value();
    for (const SharePiece& piece : plan.shares[share].pieces) stream += bytes[piece.tensor];
    return stream;
  }

  int64_t step;
  std::vector<CheckpointTensor> layout;
  std::vector<std::string> bytes;
};

// A tensor of three leaves, one without bytes, and a small one, all in one share.
struct LargeState : SmallState {
  LargeState() : SmallState(9) {
    layout = {{std::string(kModelGroup), {"large", DType::kU8, {static_cast<int64_t>(2 * kLeafBytes + 5)}}},
              {std::string(kModelGroup), {"none", DType::kF32, {0, 3}}},
              {std::string(kModelGroup), {"small", DType::kU8, {3}}}};
    bytes = {std::string(2 * kLeafBytes + 5, 'a'), "", "abc"};
  }
};

inline CommitInfo SmallCommit() {
  CommitInfo info;
  info.job_id = "job-1";
  info.fingerprint = std::string(64, 'f');
  info.kernel_plan = std::string(64, 'e');
  info.position = 64;
  info.audited = true;
  info.job_yaml = "model: lenet\n";
  info.worker_stats_json = "{}\n";
  return info;
}

inline DirectoryMark SmallMark(bool published) {
  DirectoryMark mark;
  mark.set_job_id("job-1");
  mark.set_lineage("line-1");
  mark.set_step_zero_published(published);
  return mark;
}

// Begins to send share `share` of a save of this state.
inline absl::StatusOr<ShareReceiver> BeginShare(const std::shared_ptr<ShardSink>& sink, const SmallState& state,
                                                int share) {
  const ShareProof proof = ProofOf(state.Digests(), sink->share(share));
  return ShareReceiver::Begin(sink, static_cast<uint32_t>(share), TensorDigestBytes(proof), LeafDigestBytes(proof));
}

// Sends a whole share, in chunks of `chunk` bytes.
inline absl::Status SendShare(const std::shared_ptr<ShardSink>& sink, const SmallState& state, int share,
                              size_t chunk = 100) {
  LS_ASSIGN_OR_RETURN(ShareReceiver receiver, BeginShare(sink, state, share));
  const std::string stream = state.Stream(share, sink->shares());
  for (size_t offset = 0; offset < stream.size(); offset += chunk) {
    const std::string part = stream.substr(offset, chunk);
    LS_RETURN_IF_ERROR(receiver.Add(part, Crc32c(part)));
  }
  return receiver.End();
}

// Streams every share of a state into a sink, in chunks, and finishes it.
inline absl::StatusOr<StoredShards> StoreAll(TermHold& hold, const SmallState& state, int shares, size_t chunk = 100,
                                             std::string lineage = "line-1") {
  const SnapshotId id = state.Id(std::move(lineage));
  LS_ASSIGN_OR_RETURN(std::shared_ptr<ShardSink> sink, ShardSink::Open(hold, id, state.layout, shares));
  for (int share = 0; share < shares; ++share) LS_RETURN_IF_ERROR(SendShare(sink, state, share, chunk));
  return sink->Finish();
}

// A chief's hold on a storage: claimed, recovered, ready to publish.
struct SmallChief {
  static absl::StatusOr<std::unique_ptr<SmallChief>> Start(Storage& storage, int keep_latest = 2) {
    return StartWith(storage, {.keep_latest = keep_latest});
  }
  static absl::StatusOr<std::unique_ptr<SmallChief>> StartWith(Storage& storage, const RetentionRule& retention) {
    auto chief = std::make_unique<SmallChief>(storage);
    TermOwner owner;
    owner.set_pid(17);
    owner.set_host("alpha");
    LS_ASSIGN_OR_RETURN(FoundMark found, FindMark(storage, chief->log));
    LS_ASSIGN_OR_RETURN(chief->hold, TermHold::Take(storage, chief->registry, owner));
    TakeFromHead(chief->log, found);
    LS_RETURN_IF_ERROR(chief->log.Sweep());
    LS_RETURN_IF_ERROR(KeepDamagedMark(*chief->hold, found));
    LS_ASSIGN_OR_RETURN(Recovered recovered, Recover(*chief->hold, chief->log, found));
    chief->messages = recovered.messages;
    if (!found.repair.empty()) chief->messages.push_back(found.repair);
    if (recovered.newest) chief->newest = std::move(recovered.newest);
    chief->store.emplace(*chief->hold, chief->log, std::move(recovered.checkpoints), retention);
    LS_RETURN_IF_ERROR(chief->SetHistory(found.mark.value_or(SmallMark(false))));
    LS_RETURN_IF_ERROR(MarkAsLogged(*chief->hold));
    return chief;
  }
  explicit SmallChief(Storage& storage) : log(storage), older_terms(storage), registry(log, older_terms) {}

  // Records the history of the directory, and the store's checkpoints, in the log.
  absl::Status SetHistory(const DirectoryMark& mark) {
    return log.Change("the history", [&](CommitRecord& record) {
      record.set_job_id(mark.job_id());
      record.set_lineage(mark.lineage());
      *record.mutable_ancestors() = mark.ancestors();
      store->Fill(record);
    });
  }

  absl::StatusOr<PublishedCheckpoint> Save(const SmallState& state, int shares = 2, std::string lineage = "line-1") {
    LS_ASSIGN_OR_RETURN(StoredShards shards, StoreAll(*hold, state, shares, 400, std::move(lineage)));
    return store->Publish(std::move(shards), SmallCommit());
  }

  JobLog log;
  StorageTermRegistry older_terms;
  LogTermRegistry registry;
  std::unique_ptr<TermHold> hold;
  std::optional<CheckpointReader> newest;
  std::optional<ManifestStore> store;
  std::vector<std::string> messages;
};

// The names in a directory.
inline std::vector<std::string> Names(const Storage& storage, absl::string_view path) {
  std::vector<std::string> names;
  const auto entries = storage.List(path).value();
  for (const DirectoryEntry& entry : entries) names.push_back(entry.name);
  return names;
}

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_CHECKPOINT_TEST_UTIL_H_
