#include "common/net/chief_channel.h"

#include <grpcpp/security/auth_metadata_processor.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/net/rpc.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

constexpr char kSecretMetadataKey[] = "lockstep-secret";
constexpr char kRoleProperty[] = "lockstep-role";

// Accepts the certificate of one key, whoever signed it and whatever else it says: TLS proves that the peer has the
// key.
class PinnedKey final : public grpc::experimental::ExternalCertificateVerifier {
 public:
  PinnedKey(std::string pin, std::shared_ptr<std::atomic<bool>> stranger)
      : pin_(std::move(pin)), stranger_(std::move(stranger)) {}

  bool Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)>,
              grpc::Status* status) override {
    const grpc::string_ref certificate = request->peer_cert();
    const bool is_chief = PinOf({certificate.data(), certificate.size()}) == pin_;
    *stranger_ = !is_chief;
    if (!is_chief) *status = {grpc::StatusCode::UNAUTHENTICATED, "another key"};  // NotTheChief says it to people
    return true;                                                                  // it was answered at once
  }
  void Cancel(grpc::experimental::TlsCustomVerificationCheckRequest*) override {}

 private:
  const std::string pin_;
  const std::shared_ptr<std::atomic<bool>> stranger_;
};

class ShowSecret final : public grpc::MetadataCredentialsPlugin {
 public:
  explicit ShowSecret(std::string secret) : secret_(std::move(secret)) {}

  bool IsBlocking() const override { return false; }
  grpc::Status GetMetadata(grpc::string_ref, grpc::string_ref, const grpc::AuthContext&,
                           std::multimap<grpc::string, grpc::string>* metadata) override {
    metadata->emplace(kSecretMetadataKey, secret_);
    return grpc::Status::OK;
  }

 private:
  const std::string secret_;
};

class CheckSecret final : public grpc::AuthMetadataProcessor {
 public:
  CheckSecret(std::string token, std::function<void()> refused)
      : token_(std::move(token)), refused_(std::move(refused)) {}

  bool IsBlocking() const override { return false; }
  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context, OutputMetadata* consumed,
                       OutputMetadata*) override {
    const auto found = metadata.find(kSecretMetadataKey);
    const std::string secret = found == metadata.end() ? "" : std::string(found->second.data(), found->second.size());
    const std::optional<Role> role = RoleOfSecret(token_, secret);
    if (!role.has_value()) {
      refused_();
      return {grpc::StatusCode::UNAUTHENTICATED, "this call does not carry a secret of the job's token"};
    }
    consumed->emplace(kSecretMetadataKey, secret);
    context->AddProperty(kRoleProperty, std::string(NameOf(*role)));
    return grpc::Status::OK;
  }

 private:
  const std::string token_;
  const std::function<void()> refused_;
};

// Whether somebody listens there whom this process may trust with its secret.
bool OwnProcessListensAt(const std::string& path) {
  sockaddr_un address = {};
  if (path.empty() || path.size() >= sizeof address.sun_path) return false;
  address.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), address.sun_path);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return false;
  ucred peer = {};
  socklen_t size = sizeof peer;
  const bool listens = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                       getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
  close(fd);
  return listens && (peer.uid == geteuid() || peer.uid == 0);
}

grpc::ChannelArguments ArgumentsFor(absl::string_view purpose) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  // Not a pause between attempts: gRPC gives up an attempt that takes longer. A refused one ends at once.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectLimitMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetString("lockstep.purpose", std::string(purpose));
  return arguments;
}

std::optional<Role> RoleOf(const grpc::ServerContextBase& call) {
  const std::vector<grpc::string_ref> found = call.auth_context()->FindPropertyValues(kRoleProperty);
  return found.empty() ? std::nullopt : RoleNamed({found.back().data(), found.back().size()});
}

// gRPC 1.51 ends its event engine with the last channel, and waits a second for its threads where a wake-up is missed.
// An idle channel that stays keeps the engine, and connects to nobody. LeakSanitizer finds it by its pointer, which
// nobody reads.
void KeepEventEngine() {
  [[gnu::used]] static const auto* const idle =
      new std::shared_ptr<grpc::Channel>(grpc::CreateChannel("unix:idle", grpc::InsecureChannelCredentials()));
}

}  // namespace

std::string SocketBeside(const std::string& address_file) {
  std::error_code failed;
  const std::filesystem::path whole = std::filesystem::absolute(address_file, failed);
  std::string path = absl::StrCat(whole.string(), ".socket");
  return failed || path.size() >= sizeof(sockaddr_un::sun_path) ? "" : path;
}

ChiefChannel MakeChiefChannel(const std::string& address, absl::string_view purpose, const CallerKey& key) {
  KeepEventEngine();
  auto stranger = std::make_shared<std::atomic<bool>>(false);
  const auto secret = grpc::MetadataCredentialsFromPlugin(std::make_unique<ShowSecret>(key.secret));
  if (OwnProcessListensAt(key.socket)) {
    const auto local = grpc::CompositeChannelCredentials(grpc::experimental::LocalCredentials(UDS), secret);
    return {grpc::CreateCustomChannel(absl::StrCat("unix:", key.socket), local, ArgumentsFor(purpose)),
            std::move(stranger)};
  }
  grpc::experimental::TlsChannelCredentialsOptions tls;
  tls.set_verify_server_certs(false);  // by authorities; the pin alone counts
  tls.set_check_call_host(false);
  tls.set_certificate_verifier(grpc::experimental::ExternalCertificateVerifier::Create<PinnedKey>(key.pin, stranger));
  const auto credentials = grpc::CompositeChannelCredentials(grpc::experimental::TlsCredentials(tls), secret);
  grpc::ChannelArguments arguments = ArgumentsFor(purpose);
  arguments.SetSslTargetNameOverride(ServerNameOf(key.secret));
  return {grpc::CreateCustomChannel(address, credentials, arguments), std::move(stranger)};
}

absl::Status NotTheChief(absl::string_view address, bool token_is_right) {
  const std::string what =
      absl::StrCat("who answers at ", address, " is not the job's chief: its key is another one. ");
  if (token_is_right) return absl::UnavailableError(absl::StrCat(what, "It was told nothing"));
  return absl::UnauthenticatedError(absl::StrCat(
      what, "Either the token is of another job (it is DIR/chief/token), or the address is not the chief's"));
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeChiefCredentials(const std::string& token,
                                                                              std::function<void()> refused) {
  LS_ASSIGN_OR_RETURN(ChiefIdentity identity, ChiefIdentityOf(token));
  grpc::SslServerCredentialsOptions options(GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  options.pem_key_cert_pairs.push_back({std::move(identity.private_key), std::move(identity.certificate)});
  std::shared_ptr<grpc::ServerCredentials> credentials = grpc::SslServerCredentials(options);
  credentials->SetAuthMetadataProcessor(std::make_shared<CheckSecret>(token, std::move(refused)));
  return credentials;
}

std::shared_ptr<grpc::ServerCredentials> MakeSocketCredentials(const std::string& token,
                                                               std::function<void()> refused) {
  std::shared_ptr<grpc::ServerCredentials> credentials = grpc::experimental::LocalServerCredentials(UDS);
  credentials->SetAuthMetadataProcessor(std::make_shared<CheckSecret>(token, std::move(refused)));
  return credentials;
}

grpc::Status CheckRole(const grpc::ServerContextBase& call, Role least) {
  const std::optional<Role> role = RoleOf(call);
  if (role.has_value() && *role >= least) return grpc::Status::OK;
  return {grpc::StatusCode::PERMISSION_DENIED,
          absl::StrCat("this call needs the role '", NameOf(least), "', the token that it shows has '",
                       role.has_value() ? NameOf(*role) : "none", "'")};
}

std::string CallerOf(const grpc::ServerContextBase& call) {
  const std::optional<Role> role = RoleOf(call);
  return absl::StrCat(role.has_value() ? NameOf(*role) : "nobody", " at ", call.peer());
}

}  // namespace lockstep
