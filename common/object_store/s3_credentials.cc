#include "common/object_store/s3_credentials.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/status/status_macros.h"
#include "common/storage/host_file.h"

namespace lockstep {
namespace {

constexpr char kMachine[] = "http://169.254.169.254";
constexpr char kContainer[] = "http://169.254.170.2";
constexpr char kRoles[] = "/latest/meta-data/iam/security-credentials/";

// The answer of the container's endpoint and of the machine's metadata.
absl::StatusOr<S3Credentials> ParseKeys(const std::string& text, absl::string_view place) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto member = [&json](const char* name) {
    const auto found = json.is_object() ? json.find(name) : json.end();
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  S3Credentials credentials = {member("AccessKeyId"), member("SecretAccessKey"), member("Token")};
  std::string error;
  if (credentials.access_key.empty() || credentials.secret_key.empty() ||
      !absl::ParseTime(absl::RFC3339_full, member("Expiration"), &credentials.expires, &error)) {
    return absl::PermissionDeniedError(absl::StrCat(
        place,
        " answers with no keys that can be read (AccessKeyId, SecretAccessKey, Expiration). Give the machine "
        "a role that may use the bucket"));
  }
  return credentials;
}

// Whether secrets may be fetched from there: over TLS, from this machine, or from the addresses of ECS and EKS.
bool IsTrustedPlace(absl::string_view url) {
  if (absl::StartsWith(url, "https://")) return true;
  if (!absl::ConsumePrefix(&url, "http://")) return false;
  const absl::string_view authority = url.substr(0, url.find('/'));
  if (absl::StrContains(authority, '@')) return false;
  if (absl::StartsWith(authority, "[")) {
    const absl::string_view address = authority.substr(0, authority.find(']') + 1);
    return address == "[::1]" || address == "[fd00:ec2::23]";
  }
  const absl::string_view host = authority.substr(0, authority.find(':'));
  return host == "localhost" || host == "127.0.0.1" || host == "169.254.170.2" || host == "169.254.170.23";
}

}  // namespace

absl::StatusOr<S3Credentials> S3CredentialsSource::Get() {
  MutexLock lock(&mutex_);
  const absl::Time now = now_();
  const bool valid = current_.has_value() && now < current_->expires;
  if (valid && (now < current_->expires - kRefreshBefore || now < next_fetch_)) return *current_;
  absl::StatusOr<S3Credentials> fetched = Fetch();
  next_fetch_ = now + kPause;
  if (!fetched.ok() && valid) return *current_;
  if (fetched.ok()) current_ = *fetched;
  return fetched;
}

void S3CredentialsSource::Refuse() {
  MutexLock lock(&mutex_);
  current_.reset();
}

absl::StatusOr<S3Credentials> S3CredentialsSource::Fetch() {
  LS_ASSIGN_OR_RETURN(std::optional<S3Credentials> found, FromEnvironment());
  if (found.has_value()) return *found;
  LS_ASSIGN_OR_RETURN(found, FromProfile());
  if (found.has_value()) return *found;
  LS_ASSIGN_OR_RETURN(found, FromContainer());
  if (found.has_value()) return *found;
  absl::StatusOr<S3Credentials> machine = FromMachine();
  if (machine.ok()) return machine;
  return absl::PermissionDeniedError(absl::StrCat(
      "no keys for S3: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set, profile '",
      environment_("AWS_PROFILE").value_or("default"), "' of ~/.aws has none, and the machine's metadata gives none (",
      machine.status().message(),
      "). Set the two variables, or give the machine a role. Sign-on (sso_*), credential_process and web identities "
      "are not supported: `aws configure export-credentials --format env` turns them into variables"));
}

absl::StatusOr<std::optional<S3Credentials>> S3CredentialsSource::FromEnvironment() const {
  const auto access = environment_("AWS_ACCESS_KEY_ID");
  const auto secret = environment_("AWS_SECRET_ACCESS_KEY");
  if (!access.has_value() && !secret.has_value()) return std::optional<S3Credentials>();
  if (!access.has_value() || !secret.has_value()) {
    return absl::PermissionDeniedError("one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set. Set both");
  }
  return S3Credentials{*access, *secret, environment_("AWS_SESSION_TOKEN").value_or("")};
}

absl::StatusOr<std::optional<S3Credentials>> S3CredentialsSource::FromProfile() const {
  LS_ASSIGN_OR_RETURN(const auto profile, ReadAwsProfile(environment_));
  const auto setting = [&profile = profile](const char* name) {
    const auto found = profile.find(name);
    return found == profile.end() ? std::string() : found->second;
  };
  S3Credentials credentials = {setting("aws_access_key_id"), setting("aws_secret_access_key"),
                               setting("aws_session_token")};
  if (credentials.access_key.empty() && credentials.secret_key.empty()) return std::optional<S3Credentials>();
  if (credentials.access_key.empty() || credentials.secret_key.empty()) {
    return absl::PermissionDeniedError(absl::StrCat("profile '", environment_("AWS_PROFILE").value_or("default"),
                                                    "' has one of aws_access_key_id and aws_secret_access_key"));
  }
  return credentials;
}

absl::StatusOr<std::optional<S3Credentials>> S3CredentialsSource::FromContainer() {
  std::string url;
  if (const auto relative = environment_("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); relative.has_value()) {
    url = absl::StrCat(kContainer, *relative);
  } else if (const auto full = environment_("AWS_CONTAINER_CREDENTIALS_FULL_URI"); full.has_value()) {
    url = *full;
  } else {
    return std::optional<S3Credentials>();
  }
  if (!IsTrustedPlace(url)) {
    return absl::PermissionDeniedError(absl::StrCat("AWS_CONTAINER_CREDENTIALS_FULL_URI is ", url,
                                                    "; expected https://, or an address of this machine"));
  }
  std::map<std::string, std::string> headers;
  if (const auto path = environment_("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); path.has_value()) {
    const absl::StatusOr<std::string> content = ReadHostFile(*path);
    const std::string token(absl::StripAsciiWhitespace(content.ok() ? *content : ""));
    if (token.empty()) {
      return absl::PermissionDeniedError(
          absl::StrCat("the file that AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE names: ",
                       content.ok() ? absl::StrCat(*path, ": it is empty") : content.status().message()));
    }
    headers["authorization"] = token;
  } else if (const auto token = environment_("AWS_CONTAINER_AUTHORIZATION_TOKEN"); token.has_value()) {
    headers["authorization"] = *token;
  }
  LS_ASSIGN_OR_RETURN(const std::string text, Ask("GET", url, std::move(headers)));
  LS_ASSIGN_OR_RETURN(S3Credentials credentials, ParseKeys(text, url));
  return credentials;
}

absl::StatusOr<S3Credentials> S3CredentialsSource::FromMachine() {
  LS_ASSIGN_OR_RETURN(const std::string roles, Metadata(kRoles));
  const std::string role = std::vector<std::string>(absl::StrSplit(roles, '\n'))[0];
  LS_ASSIGN_OR_RETURN(const std::string keys, Metadata(absl::StrCat(kRoles, role)));
  return ParseKeys(keys, absl::StrCat("the machine's role '", role, "'"));
}

std::optional<std::string> S3CredentialsSource::MachineRegion() {
  const absl::StatusOr<std::string> region = Metadata("/latest/meta-data/placement/region");
  return region.ok() && !region->empty() ? std::optional(*region) : std::nullopt;
}

absl::StatusOr<std::string> S3CredentialsSource::Metadata(absl::string_view path) {
  if (absl::AsciiStrToLower(environment_("AWS_EC2_METADATA_DISABLED").value_or("")) == "true") {
    return absl::NotFoundError("AWS_EC2_METADATA_DISABLED is set");
  }
  std::string place = environment_("AWS_EC2_METADATA_SERVICE_ENDPOINT").value_or(kMachine);
  while (absl::EndsWith(place, "/")) place.pop_back();
  LS_ASSIGN_OR_RETURN(const std::string token, Ask("PUT", absl::StrCat(place, "/latest/api/token"),
                                                   {{"x-aws-ec2-metadata-token-ttl-seconds", "300"}}));
  return Ask("GET", absl::StrCat(place, path), {{"x-aws-ec2-metadata-token", token}});
}

absl::StatusOr<std::string> S3CredentialsSource::Ask(const std::string& method, const std::string& url,
                                                     std::map<std::string, std::string> headers) {
  HttpClientRequest request;
  request.method = method;
  request.url = url;
  request.headers = std::move(headers);
  request.timeout = absl::Seconds(2);
  request.max_answer = size_t{64} << 10;
  absl::StatusOr<HttpAnswer> answer = transport_.Send(request);
  if (!answer.ok() || answer->code >= 500) answer = transport_.Send(request);  // once more
  if (!answer.ok()) {
    return absl::Status(answer.status().code(), absl::StrCat(method, " ", url, ": ", answer.status().message()));
  }
  if (answer->code != 200) {
    return absl::PermissionDeniedError(absl::StrCat(method, " ", url, " answers ", answer->code));
  }
  return std::move(answer->body);
}

}  // namespace lockstep
