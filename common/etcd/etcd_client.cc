#include "common/etcd/etcd_client.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/net/rpc.h"
#include "common/status/status_macros.h"
#include "common/storage/host_file.h"

namespace lockstep {
namespace {

// The content of the file that a variable names; "" where it is not set.
absl::StatusOr<std::string> FileNamedBy(const char* variable) {
  const char* const path = std::getenv(variable);
  if (path == nullptr || *path == 0) return std::string();
  absl::StatusOr<std::string> content = ReadHostFile(path);
  if (content.ok() && !content->empty()) return content;
  const absl::Status cause = content.ok() ? absl::NotFoundError(absl::StrCat(path, ": it is empty")) : content.status();
  return absl::Status(cause.code(), absl::StrCat("the file that the variable ", variable, " names: ", cause.message()));
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> Credentials(bool tls) {
  if (std::getenv("ETCDCTL_USER") != nullptr) {
    return absl::InvalidArgumentError(
        "the variable ETCDCTL_USER is set, but users of etcd are not supported: let etcd know this process by a client "
        "certificate (ETCDCTL_CERT, ETCDCTL_KEY), and unset it");
  }
  if (!tls) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  LS_ASSIGN_OR_RETURN(options.pem_root_certs, FileNamedBy("ETCDCTL_CACERT"));
  LS_ASSIGN_OR_RETURN(options.pem_cert_chain, FileNamedBy("ETCDCTL_CERT"));
  LS_ASSIGN_OR_RETURN(options.pem_private_key, FileNamedBy("ETCDCTL_KEY"));
  if (options.pem_cert_chain.empty() != options.pem_private_key.empty()) {
    return absl::InvalidArgumentError("of the variables ETCDCTL_CERT and ETCDCTL_KEY one alone is set");
  }
  return grpc::SslCredentials(options);
}

std::shared_ptr<grpc::Channel> Connect(const std::string& address,
                                       const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  // A lease lasts a few seconds: nothing here may wait for longer.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

bool IsAway(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAVAILABLE ||
         status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
}

// The first key behind all that begin with `beginning`, which is neither empty nor ends with the last byte.
std::string Behind(std::string beginning) {
  ++beginning.back();
  return beginning;
}

}  // namespace

absl::StatusOr<std::unique_ptr<EtcdClient>> EtcdClient::Open(const std::string& text) {
  LS_ASSIGN_OR_RETURN(const EtcdUrl url, ParseEtcdUrl(text));
  LS_ASSIGN_OR_RETURN(const auto credentials, Credentials(url.tls));
  std::vector<Endpoint> endpoints;
  for (const std::string& address : url.endpoints) {
    const auto channel = Connect(address, credentials);
    endpoints.push_back({address, etcdserverpb::KV::NewStub(channel), etcdserverpb::Lease::NewStub(channel)});
  }
  return std::unique_ptr<EtcdClient>(new EtcdClient(url.prefix, std::move(endpoints)));
}

std::string EtcdClient::PathOf(const std::string& key) const { return absl::StrCat("/", prefix_, "/", key); }

absl::Status EtcdClient::Call(const std::function<grpc::Status(const Endpoint&, grpc::ClientContext&)>& call) {
  size_t first = 0;
  {
    MutexLock lock(&mutex_);
    first = answers_;
  }
  const auto ask = [&](size_t index, absl::Duration patience, bool wait) {
    grpc::ClientContext context;
    context.set_wait_for_ready(wait);
    context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(patience));
    const grpc::Status status = call(endpoints_[index], context);
    MutexLock lock(&mutex_);
    if (!IsAway(status)) answers_ = index;
    return status;
  };
  std::string failures;
  std::vector<size_t> refused;
  for (size_t i = 0; i < endpoints_.size(); ++i) {
    const size_t index = (first + i) % endpoints_.size();
    const grpc::Status status = ask(index, kPatience, false);
    if (!IsAway(status)) return FromGrpc(status);
    absl::StrAppend(&failures, failures.empty() ? "" : "; ", endpoints_[index].address, ": ", status.error_message());
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE) refused.push_back(index);
  }
  // Once a connection failed, calls fail at once until another one stands, and while no call waits for it gRPC looks at
  // it every five seconds: one that has a second to stand may never do.
  for (const size_t index : refused) {
    const grpc::Status status = ask(index, kPatience / static_cast<int64_t>(refused.size()), true);
    if (!IsAway(status)) return FromGrpc(status);
  }
  return absl::UnavailableError(absl::StrCat("etcd does not answer (", failures, ")"));
}

absl::Status EtcdClient::Put(const std::string& key, const std::string& value, int64_t lease) {
  etcdserverpb::PutRequest request;
  request.set_key(PathOf(key));
  request.set_value(value);
  request.set_lease(lease);
  return Call([&](const Endpoint& endpoint, grpc::ClientContext& context) {
    etcdserverpb::PutResponse response;
    return endpoint.keys->Put(&context, request, &response);
  });
}

absl::StatusOr<std::optional<std::string>> EtcdClient::Range(const etcdserverpb::RangeRequest& request) {
  etcdserverpb::RangeResponse response;
  LS_RETURN_IF_ERROR(Call([&](const Endpoint& endpoint, grpc::ClientContext& context) {
    return endpoint.keys->Range(&context, request, &response);
  }));
  if (response.kvs().empty()) return std::optional<std::string>();
  return std::optional(response.kvs(0).value());
}

absl::StatusOr<std::optional<std::string>> EtcdClient::Get(const std::string& key) {
  etcdserverpb::RangeRequest request;
  request.set_key(PathOf(key));
  return Range(request);
}

absl::StatusOr<std::optional<std::string>> EtcdClient::GetLast(const std::string& beginning) {
  etcdserverpb::RangeRequest request;
  request.set_key(PathOf(beginning));
  request.set_range_end(Behind(PathOf(beginning)));
  request.set_limit(1);
  request.set_sort_order(etcdserverpb::DESCEND);
  return Range(request);
}

absl::StatusOr<int64_t> EtcdClient::Grant(absl::Duration ttl) {
  etcdserverpb::LeaseGrantRequest request;
  request.set_ttl(absl::ToInt64Seconds(absl::Ceil(ttl, absl::Seconds(1))));
  etcdserverpb::LeaseGrantResponse response;
  LS_RETURN_IF_ERROR(Call([&](const Endpoint& endpoint, grpc::ClientContext& context) {
    return endpoint.leases->LeaseGrant(&context, request, &response);
  }));
  if (!response.error().empty()) return absl::UnavailableError(absl::StrCat("etcd gives no lease: ", response.error()));
  return response.id();
}

absl::Status EtcdClient::KeepAlive(int64_t lease) {
  etcdserverpb::LeaseKeepAliveRequest request;
  request.set_id(lease);
  etcdserverpb::LeaseKeepAliveResponse response;
  LS_RETURN_IF_ERROR(Call([&](const Endpoint& endpoint, grpc::ClientContext& context) {
    const auto stream = endpoint.leases->LeaseKeepAlive(&context);
    const bool answered = stream->Write(request) && stream->Read(&response);
    stream->WritesDone();
    if (answered) {  // the stream lives on at the other end; nothing more is wanted of it
      context.TryCancel();
      stream->Finish();
      return grpc::Status::OK;
    }
    return stream->Finish();
  }));
  if (response.ttl() <= 0) return absl::NotFoundError("the lease has ended");
  return absl::OkStatus();
}

absl::Status EtcdClient::Revoke(int64_t lease) {
  etcdserverpb::LeaseRevokeRequest request;
  request.set_id(lease);
  const absl::Status revoked = Call([&](const Endpoint& endpoint, grpc::ClientContext& context) {
    etcdserverpb::LeaseRevokeResponse response;
    return endpoint.leases->LeaseRevoke(&context, request, &response);
  });
  return absl::IsNotFound(revoked) ? absl::OkStatus() : revoked;
}

}  // namespace lockstep
