#include "common/object_store/s3_object_store.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/clock/clock.h"
#include "common/digest/crc32c.h"
#include "common/object_store/http_client.h"
#include "common/object_store/object_key.h"
#include "common/object_store/s3_xml.h"
#include "common/random/random.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

constexpr uint64_t kErrorBytes = uint64_t{64} << 10;  // of an answer that tells of an error
constexpr uint64_t kMaxCopied = 5'000'000'000;        // by one request
constexpr uint64_t kExpected = uint64_t{64} << 20;    // of an object whose size is not known

S3Patience WithDefaults(S3Patience patience) {
  if (!patience.wall_clock) patience.wall_clock = [] { return absl::Now(); };
  if (!patience.steady_clock) patience.steady_clock = SteadyNow;
  if (!patience.pause) patience.pause = [](absl::Duration duration) { absl::SleepFor(duration); };
  return patience;
}

absl::Duration SecondPerMiB(uint64_t bytes) { return absl::Seconds(static_cast<double>(bytes) / (1 << 20)); }

std::string HeaderOf(const HttpAnswer& answer, const std::string& name) {
  const auto found = answer.headers.find(name);
  return found == answer.headers.end() ? "" : found->second;
}

std::string EtagOf(const HttpAnswer& answer) {
  const std::string header = HeaderOf(answer, "etag");
  return std::string(absl::StripSuffix(absl::StripPrefix(header, "\""), "\""));
}

absl::Status CheckParts(absl::Span<const UploadedPart> parts) {
  if (parts.empty()) return absl::InvalidArgumentError("an upload has one part at least");
  int last = 0;
  for (const UploadedPart& part : parts) {
    if (part.number != last + 1) {
      return absl::InvalidArgumentError(absl::StrCat("part ", part.number, " follows part ", last));
    }
    if (&part != &parts.back() && part.size < kMinPartBytes) {
      return absl::InvalidArgumentError(absl::StrCat("part ", part.number, " has ", part.size,
                                                     " bytes; every part but the last needs ", kMinPartBytes));
    }
    last = part.number;
  }
  return absl::OkStatus();
}

}  // namespace

struct S3ObjectStore::Owned {
  explicit Owned(const S3Settings& settings) : client({.ca_bundle = settings.ca_bundle}) {}
  HttpClient client;
  HttpClient metadata{{.connect_timeout = absl::Seconds(1), .use_proxies = false}};
  std::unique_ptr<S3CredentialsSource> credentials;
};

absl::StatusOr<std::unique_ptr<S3ObjectStore>> S3ObjectStore::Open(absl::string_view url,
                                                                   const Environment& environment,
                                                                   S3Patience patience) {
  LS_ASSIGN_OR_RETURN(S3Url parsed, ParseS3Url(url));
  LS_ASSIGN_OR_RETURN(S3Settings settings, ReadS3Settings(environment));
  auto owned = std::make_unique<Owned>(settings);
  patience = WithDefaults(std::move(patience));
  owned->credentials = std::make_unique<S3CredentialsSource>(environment, &owned->metadata, patience.wall_clock);
  if (settings.region.empty() && settings.endpoint.empty()) {
    settings.region = owned->credentials->MachineRegion().value_or("");
  }
  LS_ASSIGN_OR_RETURN(S3Endpoint endpoint, MakeS3Endpoint(settings, parsed.bucket));
  auto store = std::make_unique<S3ObjectStore>(std::move(parsed), std::move(endpoint), &owned->client,
                                               owned->credentials.get(), std::move(patience));
  store->owned_ = std::move(owned);
  return store;
}

S3ObjectStore::S3ObjectStore(S3Url url, S3Endpoint endpoint, HttpTransport* transport, S3CredentialsSource* credentials,
                             S3Patience patience)
    : url_(std::move(url)),
      endpoint_(std::move(endpoint)),
      transport_(*transport),
      credentials_(*credentials),
      patience_(WithDefaults(std::move(patience))),
      seed_(std::random_device()()) {}

S3ObjectStore::~S3ObjectStore() = default;

std::string S3ObjectStore::FullKey(absl::string_view key) const { return JoinKey(url_.prefix, key); }

std::string S3ObjectStore::Describe(absl::string_view key) const { return ToString({url_.bucket, FullKey(key)}); }

std::string S3ObjectStore::Place(const Call& call) const {
  return absl::StrCat(call.method, " ", ToString({url_.bucket, call.key}), " at ", endpoint_.scheme, "://",
                      endpoint_.host);
}

absl::StatusOr<HttpAnswer> S3ObjectStore::Once(const Call& call, absl::Duration timeout) {
  LS_ASSIGN_OR_RETURN(const S3Credentials credentials, credentials_.Get());
  S3Request request;
  request.method = call.method;
  request.host = endpoint_.host;
  request.path = absl::StrCat(endpoint_.base, "/", call.key);
  request.query = call.query;
  request.headers = call.headers;
  request.body = call.body;
  HttpClientRequest http;
  http.headers = SignS3Request(request, credentials, endpoint_.region, patience_.wall_clock());
  const std::string query = S3Query(call.query);
  http.method = call.method;
  http.url = absl::StrCat(endpoint_.scheme, "://", endpoint_.host, S3Encode(request.path, /*keep_slash=*/true),
                          query.empty() ? "" : "?", query);
  http.body = call.body;
  http.timeout = timeout;
  http.max_answer = std::max(call.max_answer, kErrorBytes);
  return transport_.Send(http);
}

S3Verdict S3ObjectStore::Judge(const Call& call, const absl::StatusOr<HttpAnswer>& answer) const {
  const std::string place = Place(call);
  if (!answer.ok()) {
    const absl::Status& status = answer.status();
    return {absl::Status(status.code(), absl::StrCat(place, ": ", status.message())), absl::IsUnavailable(status)};
  }
  if (answer->code < 200 || answer->code >= 300) return JudgeS3Answer(*answer, call.conditional, place);
  if (!call.take) return {};
  const absl::Status taken = call.take(*answer);
  if (taken.ok()) return {};
  // An answer that could not be taken may be an error under 200.
  if (ParseS3Error(answer->body).has_value()) return JudgeS3Answer(*answer, call.conditional, place);
  return {absl::Status(taken.code(), absl::StrCat(place, ": ", taken.message())), absl::IsUnavailable(taken)};
}

absl::StatusOr<HttpAnswer> S3ObjectStore::Perform(const Call& call) {
  const absl::Duration more = SecondPerMiB(call.body.size() + call.expected);
  const absl::Time start = patience_.steady_clock();
  const absl::Time deadline = start + patience_.patience + more;
  const RandomStream random = RandomStream::For(seed_, 0);
  absl::Duration pause = patience_.first_pause;
  bool other_keys = false;
  for (int attempt = 1;; ++attempt) {
    const absl::Duration left = deadline - patience_.steady_clock();
    absl::StatusOr<HttpAnswer> answer = Once(call, std::min(left, patience_.attempt + more));
    const S3Verdict verdict = Judge(call, answer);
    if (verdict.status.ok()) return answer;
    if (verdict.other_keys && !other_keys) {
      other_keys = true;
      credentials_.Refuse();
      continue;
    }
    if (!verdict.again) return verdict.status;
    // Half of the pause to all of it: requests that failed together come back apart.
    const double share = 0.5 + random.At(pauses_++) / 0x1p33;
    const absl::Duration wait = pause * share;
    const absl::Time now = patience_.steady_clock();
    if (now + wait >= deadline) {
      return absl::Status(verdict.status.code(),
                          absl::StrCat(verdict.status.message(), ". Gave up after ", attempt, " attempts in ",
                                       absl::FormatDuration(absl::Trunc(now - start, absl::Milliseconds(100)))));
    }
    patience_.pause(wait);
    pause = std::min(pause * 2, patience_.longest_pause);
  }
}

absl::Status S3ObjectStore::Put(absl::string_view key, absl::string_view bytes, PutCondition condition) {
  LS_RETURN_IF_ERROR(CheckObjectKey(key));
  Call call = {"PUT", FullKey(key)};
  call.headers["content-type"] = "application/octet-stream";
  call.body = bytes;
  call.conditional = condition == PutCondition::kIfAbsent;
  if (call.conditional) call.headers["if-none-match"] = "*";
  return Perform(call).status();
}

absl::Status S3ObjectStore::Copy(absl::string_view from, absl::string_view to) {
  LS_RETURN_IF_ERROR(CheckObjectKey(from));
  LS_RETURN_IF_ERROR(CheckObjectKey(to));
  LS_ASSIGN_OR_RETURN(const ObjectFacts facts, Head(from));
  if (facts.size > kMaxCopied) {
    return absl::FailedPreconditionError(
        absl::StrCat(Describe(from), " has ", facts.size, " bytes; a server copies at most ", kMaxCopied));
  }
  Call call = {"PUT", FullKey(to)};
  call.headers["x-amz-copy-source"] = S3Encode(absl::StrCat("/", url_.bucket, "/", FullKey(from)), /*keep_slash=*/true);
  call.expected = facts.size;  // the server needs time for them
  call.take = [](const HttpAnswer& answer) { return ParseCopied(answer.body); };
  return Perform(call).status();
}

absl::StatusOr<std::string> S3ObjectStore::Get(absl::string_view key, uint64_t max_bytes) {
  LS_RETURN_IF_ERROR(CheckObjectKey(key));
  Call call = {"GET", FullKey(key)};
  call.max_answer = max_bytes;
  call.expected = std::min(max_bytes, kExpected);
  LS_ASSIGN_OR_RETURN(HttpAnswer answer, Perform(call));
  if (answer.body.size() > max_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(Describe(key), " has ", answer.body.size(), " bytes; expected at most ", max_bytes));
  }
  return std::move(answer.body);
}

absl::StatusOr<std::string> S3ObjectStore::GetRange(absl::string_view key, uint64_t offset, uint64_t length) {
  LS_RETURN_IF_ERROR(CheckObjectKey(key));
  Call call = {"GET", FullKey(key)};
  call.headers["range"] = absl::StrCat("bytes=", offset, "-", offset + length - 1);
  call.max_answer = length;
  call.expected = length;
  call.take = [&](const HttpAnswer& answer) {
    const std::string range = HeaderOf(answer, "content-range");
    if (answer.code != 206 || !absl::StartsWith(range, absl::StrCat("bytes ", offset, "-"))) {
      return absl::FailedPreconditionError(
          absl::StrCat("the server answers ", answer.code, " to a range of bytes. Use a server that reads ranges"));
    }
    if (answer.body.size() == length) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("the object ends before byte ", offset + length));
  };
  LS_ASSIGN_OR_RETURN(HttpAnswer answer, Perform(call));
  return std::move(answer.body);
}

absl::StatusOr<ObjectFacts> S3ObjectStore::Head(absl::string_view key) {
  LS_RETURN_IF_ERROR(CheckObjectKey(key));
  Call call = {"HEAD", FullKey(key)};
  ObjectFacts facts;
  call.take = [&facts](const HttpAnswer& answer) {
    facts.etag = EtagOf(answer);
    if (absl::SimpleAtoi(HeaderOf(answer, "content-length"), &facts.size)) return absl::OkStatus();
    return absl::UnavailableError("the answer has no Content-Length");
  };
  LS_RETURN_IF_ERROR(Perform(call).status());
  return facts;
}

absl::Status S3ObjectStore::Delete(absl::string_view key) {
  LS_RETURN_IF_ERROR(CheckObjectKey(key));
  const absl::Status status = Perform({"DELETE", FullKey(key)}).status();
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

absl::StatusOr<Upload> S3ObjectStore::Start(absl::string_view key, bool with_checksums) {
  Call call = {"POST", FullKey(key)};
  call.query["uploads"] = "";
  call.headers["content-type"] = "application/octet-stream";
  if (with_checksums) call.headers["x-amz-checksum-algorithm"] = "CRC32C";
  Upload upload = {std::string(key)};
  call.take = [&upload](const HttpAnswer& answer) {
    LS_ASSIGN_OR_RETURN(upload.id, ParseUploadId(answer.body));
    upload.takes_checksums = HeaderOf(answer, "x-amz-checksum-algorithm") == "CRC32C";
    return absl::OkStatus();
  };
  LS_RETURN_IF_ERROR(Perform(call).status());
  return upload;
}

absl::StatusOr<Upload> S3ObjectStore::StartUpload(absl::string_view key) {
  LS_RETURN_IF_ERROR(CheckObjectKey(key));
  absl::StatusOr<Upload> upload = Start(key, /*with_checksums=*/true);
  // Some servers refuse what they do not know.
  if (absl::IsFailedPrecondition(upload.status())) upload = Start(key, /*with_checksums=*/false);
  return upload;
}

absl::StatusOr<UploadedPart> S3ObjectStore::PutPart(const Upload& upload, int number, absl::string_view bytes) {
  if (number < 1 || number > kMaxParts) {
    return absl::InvalidArgumentError(absl::StrCat("part ", number, "; parts are numbered from 1 to ", kMaxParts));
  }
  UploadedPart part = {number, bytes.size(), "", Crc32c(bytes)};
  Call call = {"PUT", FullKey(upload.key)};
  call.query = {{"partNumber", absl::StrCat(number)}, {"uploadId", upload.id}};
  call.headers["content-type"] = "application/octet-stream";
  if (upload.takes_checksums) call.headers["x-amz-checksum-crc32c"] = ChecksumText(part.crc32c);
  call.body = bytes;
  call.take = [&part](const HttpAnswer& answer) {
    part.etag = EtagOf(answer);
    return part.etag.empty() ? absl::UnavailableError("the answer has no ETag") : absl::OkStatus();
  };
  LS_RETURN_IF_ERROR(Perform(call).status());
  return part;
}

absl::Status S3ObjectStore::CompleteUpload(const Upload& upload, absl::Span<const UploadedPart> parts) {
  LS_RETURN_IF_ERROR(CheckParts(parts));
  const std::string body = CompletionBody(parts, upload.takes_checksums);
  Call call = {"POST", FullKey(upload.key)};
  call.query["uploadId"] = upload.id;
  call.headers["content-type"] = "application/xml";
  call.body = body;
  call.take = [](const HttpAnswer& answer) { return ParseCompleted(answer.body); };
  for (const UploadedPart& part : parts) call.expected += part.size / 16;  // the server puts them together
  const absl::Status status = Perform(call).status();
  if (!absl::IsNotFound(status) && !absl::IsUnavailable(status)) return status;
  // A request may have gone through, and its answer been lost.
  uint64_t size = 0;
  for (const UploadedPart& part : parts) size += part.size;
  const absl::StatusOr<ObjectFacts> facts = Head(upload.key);
  const bool same = facts.ok() && facts->size == size && absl::EndsWith(facts->etag, absl::StrCat("-", parts.size()));
  return same ? absl::OkStatus() : status;
}

absl::Status S3ObjectStore::AbortUpload(const Upload& upload) {
  Call call = {"DELETE", FullKey(upload.key)};
  call.query["uploadId"] = upload.id;
  const absl::Status status = Perform(call).status();
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

}  // namespace lockstep
