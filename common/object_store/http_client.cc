#include "common/object_store/http_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status/check.h"

namespace lockstep {
namespace {

constexpr size_t kMaxHeaderBytes = size_t{64} << 10;  // of an answer

struct HeaderList {
  ~HeaderList() { curl_slist_free_all(list); }
  void Add(const std::string& line) {
    curl_slist* const longer = curl_slist_append(list, line.c_str());
    LS_CHECK(longer != nullptr, "there is memory for a header");
    list = longer;
  }
  curl_slist* list = nullptr;
};

struct Receiver {
  HttpAnswer answer;
  size_t max_body = 0;
  size_t header_bytes = 0;
  bool too_long = false;
};

size_t ReceiveBody(char* bytes, size_t, size_t count, void* to) {
  Receiver& receiver = *static_cast<Receiver*>(to);
  if (receiver.answer.body.size() + count > receiver.max_body) {
    receiver.too_long = true;
    return 0;
  }
  receiver.answer.body.append(bytes, count);
  return count;
}

size_t ReceiveHeader(char* bytes, size_t, size_t count, void* to) {
  Receiver& receiver = *static_cast<Receiver*>(to);
  receiver.header_bytes += count;
  if (receiver.header_bytes > kMaxHeaderBytes) {
    receiver.too_long = true;
    return 0;
  }
  const absl::string_view line(bytes, count);
  if (absl::StartsWith(line, "HTTP/")) receiver.answer.headers.clear();  // "100 Continue" came before
  const size_t colon = line.find(':');
  if (colon != absl::string_view::npos) {
    receiver.answer.headers[absl::AsciiStrToLower(line.substr(0, colon))] =
        std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
  }
  return count;
}

bool IsThisMachine(absl::string_view url) {
  const size_t scheme = url.find("://");
  if (scheme == absl::string_view::npos) return false;
  const absl::string_view host = url.substr(scheme + 3);
  return absl::StartsWith(host, "127.") || absl::StartsWith(host, "localhost") || absl::StartsWith(host, "[::1]");
}

long Milliseconds(absl::Duration duration) {
  return static_cast<long>(std::max<int64_t>(1, absl::ToInt64Milliseconds(duration)));
}

absl::Status ErrorOf(CURLcode code, const char* detail, const std::string& bundle) {
  const std::string what(*detail == '\0' ? curl_easy_strerror(code) : detail);
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
      return absl::FailedPreconditionError(absl::StrCat(
          what,
          ". Set AWS_CA_BUNDLE to the file with the certificate that signed the server's, or AWS_ENDPOINT_URL "
          "to a name that it has",
          bundle.empty() ? "" : absl::StrCat("; it is ", bundle)));
    case CURLE_SSL_CACERT_BADFILE:
      return absl::FailedPreconditionError(absl::StrCat(what, ". AWS_CA_BUNDLE is '", bundle, "'"));
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
      return absl::FailedPreconditionError(absl::StrCat(what, ". Write the address as https://host[:port]"));
    default:
      return absl::UnavailableError(what);
  }
}

void SetMethod(CURL* curl, const HttpClientRequest& request) {
  if (request.method == "HEAD") {
    curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
  } else if (request.method == "PUT" || request.method == "POST") {
    curl_easy_setopt(curl, CURLOPT_POST, 1L);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request.body.empty() ? "" : request.body.data());
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  } else {
    curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
}

}  // namespace

void HttpClient::Close::operator()(void* handle) const { curl_easy_cleanup(static_cast<CURL*>(handle)); }

HttpClient::HttpClient(HttpClientOptions options) : options_(std::move(options)) {
  static std::once_flag once;
  std::call_once(once, [] { LS_CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK, "libcurl starts"); });
}

HttpClient::~HttpClient() = default;

HttpClient::Handle HttpClient::Take() {
  {
    MutexLock lock(&mutex_);
    if (!idle_.empty()) {
      Handle handle = std::move(idle_.back());
      idle_.pop_back();
      return handle;
    }
  }
  Handle handle(curl_easy_init());
  LS_CHECK(handle != nullptr, "libcurl gives a handle");
  return handle;
}

void HttpClient::Keep(Handle handle) {
  MutexLock lock(&mutex_);
  if (idle_.size() < options_.max_idle) idle_.push_back(std::move(handle));
}

absl::StatusOr<HttpAnswer> HttpClient::Send(const HttpClientRequest& request) {
  Handle handle = Take();
  CURL* const curl = handle.get();
  curl_easy_reset(curl);  // settings alone: connections stay
  Receiver receiver;
  receiver.max_body = request.max_answer;
  std::array<char, CURL_ERROR_SIZE> detail = {};
  HeaderList headers;
  for (const auto& [name, value] : request.headers) headers.Add(absl::StrCat(name, ": ", value));
  headers.Add("Expect:");  // a body is sent at once
  if (request.headers.count("content-type") == 0) headers.Add("Content-Type:");

  SetMethod(curl, request);
  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
  curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.list);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, detail.data());
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, ReceiveBody);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &receiver);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, ReceiveHeader);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &receiver);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, Milliseconds(options_.connect_timeout));
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, Milliseconds(request.timeout));
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, static_cast<long>(options_.min_bytes_per_second));
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, std::max(1L, Milliseconds(options_.stalled_after) / 1000));
  curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(curl, CURLOPT_UPLOAD_BUFFERSIZE, 512L << 10);
  curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, 256L << 10);
  if (!options_.ca_bundle.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, options_.ca_bundle.c_str());
  if (!options_.use_proxies || IsThisMachine(request.url)) curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");

  const CURLcode code = curl_easy_perform(curl);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  if (code == CURLE_OK) Keep(std::move(handle));  // after an error the connection goes with its handle
  if (receiver.too_long) {
    return absl::ResourceExhaustedError(
        absl::StrCat(request.method, " ", request.url, ": the answer has more than ", request.max_answer, " bytes"));
  }
  if (code != CURLE_OK) return ErrorOf(code, detail.data(), options_.ca_bundle);
  receiver.answer.code = static_cast<int>(status);
  return std::move(receiver.answer);
}

}  // namespace lockstep
