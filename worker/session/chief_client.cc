#include "worker/session/chief_client.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/checkpoint_format/naming.h"
#include "common/digest/crc32c.h"
#include "common/etcd/owner_key.h"
#include "common/job_place/job_place.h"
#include "common/log/log.h"
#include "common/net/chief_address.h"
#include "common/net/chief_channel.h"
#include "common/net/rpc.h"
#include "common/protocol/wire.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"
#include "common/storage/local/local_storage.h"

namespace lockstep::worker {

namespace {

// A worker may well wait for a bucket at each attempt, but not longer than for a chief.
constexpr absl::Duration kBucketPatience = absl::Seconds(5);

// A stream that breaks half way ends with one of these, whoever is to blame: the next attempt may well succeed.
bool IsTransportError(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::INTERNAL || status.error_code() == grpc::StatusCode::UNKNOWN ||
         status.error_code() == grpc::StatusCode::CANCELLED;
}

}  // namespace

void CallGroup::Cancel() {
  MutexLock lock(&mutex_);
  cancelled_ = true;
  for (grpc::ClientContext* call : calls_) call->TryCancel();
  changed_.SignalAll();
}

bool CallGroup::cancelled() const {
  MutexLock lock(&mutex_);
  return cancelled_;
}

bool CallGroup::WaitForCancel(absl::Duration time) {
  MutexLock lock(&mutex_);
  bool timed_out = false;
  while (!cancelled_ && !timed_out) timed_out = changed_.WaitWithTimeout(&mutex_, time);
  return cancelled_;
}

bool CallGroup::Add(grpc::ClientContext* call) {
  MutexLock lock(&mutex_);
  if (!cancelled_) calls_.insert(call);
  return !cancelled_;
}

void CallGroup::Remove(grpc::ClientContext* call) {
  MutexLock lock(&mutex_);
  calls_.erase(call);
}

// Keeps a call in both groups that may end it, while it lasts.
class ChiefClient::Call {
 public:
  Call(CallGroup& all, CallGroup& group, grpc::ClientContext& context) : all_(all), group_(group), context_(context) {
    refused_ = !all_.Add(&context_) || !group_.Add(&context_);
  }
  ~Call() {
    all_.Remove(&context_);
    group_.Remove(&context_);
  }
  bool refused() const { return refused_; }
  bool cancelled() const { return all_.cancelled() || group_.cancelled(); }

 private:
  CallGroup& all_;
  CallGroup& group_;
  grpc::ClientContext& context_;
  bool refused_ = false;
};

ChiefClient::ChiefClient(ChiefLocation location, absl::Duration least_connect_limit)
    : location_(std::move(location)), connect_limit_(least_connect_limit, absl::Milliseconds(kConnectLimitMs)) {}

absl::StatusOr<std::string> ChiefClient::Address() const {
  if (!location_.address.empty()) return location_.address;
  absl::StatusOr<std::string> found = ReadAddress();
  MutexLock lock(&mutex_);
  if (found.ok()) {
    last_address_ = *found;
    return found;
  }
  if (last_address_.empty()) return found;
  if (!std::exchange(said_, true)) {
    LS_LOG(warn, "the chief's address cannot be read any more: ", found.status().message(), "; the last one, ",
           last_address_, ", is used until ", location_.etcd, location_.file, " gives another");
  }
  return last_address_;
}

absl::StatusOr<std::string> ChiefClient::ReadAddressInBucket() const {
  std::shared_ptr<JobPlace> place;
  {
    MutexLock lock(&bucket_mutex_);
    if (bucket_ == nullptr) {
      absl::string_view url = location_.file;
      if (!absl::ConsumeSuffix(&url, absl::StrCat("/", layout::kAddress))) {
        return absl::InvalidArgumentError(absl::StrCat(location_.file,
                                                       " is no place of a job's chief; give the job with "
                                                       "--job s3://BUCKET/PREFIX"));
      }
      LS_ASSIGN_OR_RETURN(bucket_, JobPlace::Open(std::string(url), kBucketPatience));
    }
    place = bucket_;
  }
  return ReadAddressInLog(*place->bucket());
}

absl::StatusOr<std::string> ChiefClient::AskEtcd() const {
  EtcdClient* etcd = nullptr;
  {
    MutexLock lock(&etcd_mutex_);
    if (etcd_ == nullptr) {
      LS_ASSIGN_OR_RETURN(etcd_, EtcdClient::Open(location_.etcd));
    }
    etcd = etcd_.get();
  }
  LS_ASSIGN_OR_RETURN(const std::optional<std::string> address, etcd->GetLast(kOwnerKeys));
  if (!address.has_value()) {
    return absl::NotFoundError(absl::StrCat(location_.etcd, " knows of no chief (yet); was it started with --etcd?"));
  }
  return *address;
}

absl::StatusOr<std::string> ChiefClient::ReadAddress() const {
  if (!location_.etcd.empty()) return AskEtcd();
  if (IsInBucket(location_.file)) return ReadAddressInBucket();
  const std::string path = location_.file.find('/') == std::string::npos ? "./" + location_.file : location_.file;
  const std::string directory(ParentPath(path));
  const absl::StatusOr<std::unique_ptr<LocalStorage>> place = LocalStorage::Open(directory.empty() ? "/" : directory);
  absl::StatusOr<std::string> found = place.ok() ? ReadChiefAddress(**place, BaseName(path), BaseName(layout::kLock))
                                                 : absl::StatusOr<std::string>(place.status());
  if (absl::IsNotFound(found.status())) {
    return absl::NotFoundError(absl::StrCat(location_.file, " does not give a chief's address (yet)"));
  }
  return found;
}

absl::Status ChiefClient::Fetch(const proto::FetchRequest& request, CallGroup& group,
                                const std::function<void(uint64_t, absl::Span<const char>)>& take) {
  const absl::StatusOr<std::string> address = Address();
  if (!address.ok()) return absl::UnavailableError(address.status().message());
  grpc::ClientContext context;
  const Call call(all_, group, context);
  if (call.refused()) return absl::CancelledError("the fetch was ended");
  const auto stub = proto::Session::NewStub(MakeChiefChannel(*address, "fetch", location_.key).channel);
  const auto stream = stub->Fetch(&context, request);
  proto::FetchChunk chunk;
  uint64_t offset = 0;
  absl::Status broken;
  while (stream->Read(&chunk)) {
    if (Crc32c(chunk.data()) != chunk.crc32c()) {
      broken = absl::DataLossError(
          absl::StrCat("the chunk at byte ", offset, " of what ", *address, " sent does not have its checksum"));
      context.TryCancel();
      break;
    }
    take(offset, chunk.data());
    offset += chunk.data().size();
    bytes_fetched_.fetch_add(chunk.data().size(), std::memory_order_relaxed);
  }
  const grpc::Status status = stream->Finish();
  LS_RETURN_IF_ERROR(broken);
  if (!status.ok() && call.cancelled()) return absl::CancelledError("the fetch was ended");
  if (IsTransportError(status)) {
    return absl::UnavailableError(absl::StrCat("the answer of ", *address, " was cut off: ", status.error_message()));
  }
  return FromGrpc(status);
}

absl::StatusOr<std::string> ChiefClient::FetchWhole(const proto::FetchRequest& request) {
  std::string bytes;
  CallGroup alone;
  LS_RETURN_IF_ERROR(
      Fetch(request, alone, [&](uint64_t, absl::Span<const char> piece) { bytes.append(piece.data(), piece.size()); }));
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
                                     uint32_t shares, CallGroup& group,
                                     const std::function<void(uint64_t, absl::Span<const char>)>& take) {
  proto::FetchRequest request;
  *request.mutable_fence() = ToWire(fence);
  *request.mutable_share()->mutable_snapshot() = ToWire(snapshot);
  request.mutable_share()->set_share(share);
  request.mutable_share()->set_shares(shares);
  return Fetch(request, group, take);
}

}  // namespace lockstep::worker
