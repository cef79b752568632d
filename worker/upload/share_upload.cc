#include "worker/upload/share_upload.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint_format/share_proof.h"
#include "common/checkpoint_format/shares.h"
#include "common/liveness/activity.h"
#include "common/net/chief_channel.h"
#include "common/net/raw_chunk.h"
#include "common/net/rpc.h"
#include "common/protocol/wire.h"
#include "common/status/status_macros.h"
#include "protos/session.pb.h"

namespace lockstep::worker {
namespace {

constexpr size_t kWaitingShares = 64;

proto::ShareChunk HeaderOf(const ShareJob& job, const Share& share) {
  proto::ShareChunk chunk;
  proto::ShareHeader& header = *chunk.mutable_header();
  *header.mutable_fence() = ToWire(job.fence);
  *header.mutable_snapshot() = ToWire(job.snapshot);
  header.set_share(job.share);
  header.set_shares(job.shares);
  const ShareProof proof = ProofOf(*job.digests, share);
  header.set_tensor_digests(TensorDigestBytes(proof));
  header.set_leaf_digests(LeafDigestBytes(proof));
  return chunk;
}

}  // namespace

ShareUploader::ShareUploader(CallerKey key, Done done)
    : key_(std::move(key)), done_(std::move(done)), queue_(kWaitingShares), thread_([this] { Run(); }) {}

ShareUploader::~ShareUploader() {
  queue_.Close();
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    if (current_ != nullptr) current_->TryCancel();
  }
  thread_.join();
}

absl::Status ShareUploader::Start(ShareJob job) {
  if (queue_.TryPush(std::move(job))) return absl::OkStatus();
  return absl::ResourceExhaustedError("too many shares wait for their upload");
}

void ShareUploader::Cancel(const SnapshotId& snapshot) {
  MutexLock lock(&mutex_);
  if (current_ == nullptr || current_snapshot_ != snapshot) return;
  current_cancelled_ = true;
  current_->TryCancel();
}

void ShareUploader::Run() {
  NameThread("upload");
  while (auto job = queue_.Pop()) {
    {
      MutexLock lock(&mutex_);
      if (stopping_) return;
      current_cancelled_ = false;
    }
    const NowDoing uploading("upload of share ", job->share + 1, " of ", job->shares, " of step ", job->snapshot.step);
    const absl::Status status = Upload(*job);
    bool cancelled = false;
    {
      MutexLock lock(&mutex_);
      cancelled = current_cancelled_;
    }
    if (!cancelled) done_(*job, status);
  }
}

absl::Status ShareUploader::Upload(const ShareJob& job) {
  LS_ASSIGN_OR_RETURN(const SharePlan plan, PlanSave(job.state->CheckpointLayout(), static_cast<int>(job.shares)));
  if (job.share >= job.shares) return absl::InvalidArgumentError(absl::StrCat("there is no share ", job.share));
  const Share& share = plan.shares[job.share];

  grpc::ClientContext context;
  {
    MutexLock lock(&mutex_);
    if (stopping_) return absl::CancelledError("the worker is ending");
    current_ = &context;
    current_snapshot_ = job.snapshot;
  }
  const std::shared_ptr<grpc::Channel> channel = MakeChiefChannel(job.chief, "upload", key_).channel;
  proto::UploadReply reply;
  const auto stream = BeginRawUpload(channel, context, reply);
  bool open = stream->Write(RawChunk(HeaderOf(job, share)));
  for (uint64_t offset = 0; open && offset < share.bytes; offset += kChunkBytes) {
    const uint64_t size = std::min<uint64_t>(kChunkBytes, share.bytes - offset);
    const NowDoing sending("sending from byte ", offset, " of ", share.bytes);
    open = stream->Write(RawChunk(job.state->ViewShare(share, offset, size), job.state));
    bytes_sent_ += size;
  }
  stream->WritesDone();
  const grpc::Status status = stream->Finish();
  {
    MutexLock lock(&mutex_);
    current_ = nullptr;
    current_snapshot_.reset();
  }
  LS_RETURN_IF_ERROR(FromGrpc(status));
  if (!reply.accepted()) return absl::AbortedError(reply.message());
  return absl::OkStatus();
}

}  // namespace lockstep::worker
