#include "worker/session/chief_client.h"

#include <fstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/digest/crc32c.h"
#include "common/net/rpc.h"
#include "common/protocol/wire.h"
#include "common/status/status_macros.h"

namespace lockstep::worker {

// Registers a call for Shutdown while it lasts.
class ChiefClient::Call {
 public:
  Call(ChiefClient& client, grpc::ClientContext& context) : client_(client), context_(context) {
    MutexLock lock(&client_.mutex_);
    refused_ = client_.shut_down_;
    if (!refused_) client_.calls_.insert(&context_);
  }
  ~Call() {
    MutexLock lock(&client_.mutex_);
    client_.calls_.erase(&context_);
  }
  bool refused() const { return refused_; }

 private:
  ChiefClient& client_;
  grpc::ClientContext& context_;
  bool refused_ = false;
};

absl::StatusOr<std::string> ChiefClient::Address() const {
  if (!location_.address.empty()) return location_.address;
  std::ifstream file(location_.file);
  std::string line;
  if (!file || !std::getline(file, line)) {
    return absl::NotFoundError(absl::StrCat(location_.file, " does not give a chief's address (yet)"));
  }
  return std::string(absl::StripAsciiWhitespace(line));
}

void ChiefClient::Shutdown() {
  MutexLock lock(&mutex_);
  shut_down_ = true;
  for (grpc::ClientContext* context : calls_) context->TryCancel();
}

absl::Status ChiefClient::Fetch(const proto::FetchRequest& request,
                                const std::function<void(uint64_t, absl::Span<const char>)>& take) {
  LS_ASSIGN_OR_RETURN(const std::string address, Address());
  grpc::ClientContext context;
  SetToken(context, location_.token);
  const Call call(*this, context);
  if (call.refused()) return absl::CancelledError("the worker is ending");
  const auto stub = proto::Session::NewStub(MakeChannel(address, "fetch"));
  const auto stream = stub->Fetch(&context, request);
  proto::FetchChunk chunk;
  uint64_t offset = 0;
  absl::Status broken;
  while (stream->Read(&chunk)) {
    if (!chunk.has_data()) continue;
    if (Crc32c(chunk.data()) != chunk.crc32c()) {
      broken = absl::DataLossError(
          absl::StrCat("the chunk at byte ", offset, " of what ", address, " sent does not have its checksum"));
      context.TryCancel();
      break;
    }
    take(offset, chunk.data());
    offset += chunk.data().size();
  }
  const grpc::Status status = stream->Finish();
  LS_RETURN_IF_ERROR(broken);
  return FromGrpc(status);
}

absl::StatusOr<std::string> ChiefClient::FetchWhole(const proto::FetchRequest& request) {
  std::string bytes;
  LS_RETURN_IF_ERROR(
      Fetch(request, [&](uint64_t, absl::Span<const char> piece) { bytes.append(piece.data(), piece.size()); }));
  return bytes;
}

absl::StatusOr<std::string> ChiefClient::FetchJob(const WorkerFence& fence) {
  proto::FetchRequest request;
  *request.mutable_fence() = ToWire(fence);
  request.mutable_job();
  return FetchWhole(request);
}

absl::StatusOr<std::string> ChiefClient::FetchMetagraph(const WorkerFence& fence, const std::string& fingerprint) {
  proto::FetchRequest request;
  *request.mutable_fence() = ToWire(fence);
  request.set_metagraph(fingerprint);
  return FetchWhole(request);
}

absl::StatusOr<std::string> ChiefClient::FetchPlan(const WorkerFence& fence, const std::string& hash) {
  proto::FetchRequest request;
  *request.mutable_fence() = ToWire(fence);
  request.set_plan(hash);
  return FetchWhole(request);
}

absl::Status ChiefClient::FetchShare(const WorkerFence& fence, const SnapshotId& snapshot, uint32_t share,
                                     uint32_t shares,
                                     const std::function<void(uint64_t, absl::Span<const char>)>& take) {
  proto::FetchRequest request;
  *request.mutable_fence() = ToWire(fence);
  *request.mutable_share()->mutable_snapshot() = ToWire(snapshot);
  request.mutable_share()->set_share(share);
  request.mutable_share()->set_shares(shares);
  return Fetch(request, take);
}

}  // namespace lockstep::worker
