#include "common/net/rpc.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

// The value of a key that ends so may hold any byte.
constexpr char kDoingMetadataKey[] = "lockstep-doing-bin";
constexpr size_t kMostDoingBytes = 512;

}  // namespace

std::string HostPort::ToString() const {
  return host.find(':') == std::string::npos ? absl::StrCat(host, ":", port) : absl::StrCat("[", host, "]:", port);
}

absl::StatusOr<HostPort> ParseHostPort(absl::string_view text) {
  const auto bad = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("address '", text, "' ", why, "; expected HOST:PORT"));
  };
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos) return bad("has no port");
  absl::string_view host = text.substr(0, colon);
  if (!host.empty() && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != absl::string_view::npos) {
    return bad("has several colons (write [IPV6]:PORT)");
  }
  if (host.empty()) return bad("has no host");
  if (host.find_first_of("[]") != absl::string_view::npos) return bad("has brackets in its host");
  HostPort parsed{.host = std::string(host)};
  if (!absl::SimpleAtoi(text.substr(colon + 1), &parsed.port) || parsed.port < 0 || parsed.port > 65535) {
    return bad("has a port that is not a number from 0 to 65535");
  }
  return parsed;
}

void SetDoing(grpc::ClientContext& context, absl::string_view doing) {
  context.AddMetadata(kDoingMetadataKey, std::string(doing.substr(0, kMostDoingBytes)));
}

std::string DoingOf(const grpc::ServerContextBase& context) {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find(kDoingMetadataKey);
  if (found == metadata.end()) return "";
  return std::string(found->second.data(), std::min(found->second.size(), kMostDoingBytes));
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

}  // namespace lockstep
