#include "common/object_store/fake_s3.h"

#include <algorithm>
#include <regex>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/object_store/s3_xml.h"

namespace lockstep {
namespace {

std::string Decode(absl::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      decoded += absl::HexStringToBytes(text.substr(i + 1, 2));
      i += 2;
    } else {
      decoded.push_back(text[i]);
    }
  }
  return decoded;
}

HttpAnswer Error(int code, const std::string& error) {
  return {code, {}, absl::StrCat("<Error><Code>", error, "</Code><Message>of the fake</Message></Error>")};
}

HttpAnswer Of(const absl::Status& status, int code = 200) {
  if (status.ok()) return {code, {}, ""};
  if (absl::IsNotFound(status)) return Error(404, "NoSuchKey");
  if (absl::IsAlreadyExists(status)) return Error(412, "PreconditionFailed");
  if (absl::IsDataLoss(status)) return Error(416, "InvalidRange");
  return Error(400, "InvalidPart");
}

std::string At(const std::map<std::string, std::string>& map, const std::string& name) {
  const auto found = map.find(name);
  return found == map.end() ? "" : found->second;
}

}  // namespace

absl::StatusOr<HttpAnswer> FakeS3::Send(const HttpClientRequest& request) {
  ++requests_;
  S3Fault fault = S3Fault::kNone;
  {
    MutexLock lock(&fault_mutex_);
    fault = next_fault();
  }
  const bool has_body = request.method == "POST" || (request.method == "GET" && absl::StrContains(request.url, '?'));
  switch (fault) {
    case S3Fault::kNone:
      break;
    case S3Fault::kLost:
      return absl::UnavailableError("the connection was reset");
    case S3Fault::kAnswerLost:
      Handle(request);
      return absl::UnavailableError("the connection was reset");
    case S3Fault::kTwice:
      Handle(request);
      break;
    case S3Fault::kConflict:
      return Error(409, "ConditionalRequestConflict");
    case S3Fault::kSlowDown:
      return Error(503, "SlowDown");
    case S3Fault::kExpired:
      return Error(400, "ExpiredToken");
    case S3Fault::kTooMany:
      return HttpAnswer{429, {}, ""};
    case S3Fault::kHidden:
      if (has_body) return Error(200, "InternalError");
      [[fallthrough]];
    case S3Fault::kPage:
      if (has_body) return HttpAnswer{200, {}, "<html><body>We are back soon</body></html>"};
      [[fallthrough]];
    case S3Fault::kInternal:
      Handle(request);
      return Error(500, "InternalError");
  }
  HttpAnswer answer = Handle(request);
  if (request.method == "HEAD") answer.body.clear();
  return answer;
}

HttpAnswer FakeS3::CheckSignature(const Parsed& request, const std::string& host, const std::string& path) const {
  const std::string sent = At(request.headers, "authorization");
  const size_t names_at = sent.find("SignedHeaders=");
  if (names_at == std::string::npos) return Error(403, "AccessDenied");
  const std::string names = sent.substr(names_at + 14, sent.find(',', names_at) - names_at - 14);
  S3Request to_sign;
  to_sign.method = request.method;
  to_sign.host = host;
  to_sign.path = path;
  to_sign.query = request.query;
  to_sign.body = request.body;
  for (const absl::string_view part : absl::StrSplit(names, ';')) {
    const std::string name(part);
    if (name != "host") to_sign.headers[name] = At(request.headers, name);
  }
  const std::string date = At(request.headers, "x-amz-date");  // 20130524T000000Z
  if (date.size() != 16) return Error(403, "AccessDenied");
  absl::Time time;
  std::string error;
  const std::string spaced = absl::StrCat(date.substr(0, 4), "-", date.substr(4, 2), "-", date.substr(6, 5), ":",
                                          date.substr(11, 2), ":", date.substr(13));
  if (!absl::ParseTime(absl::RFC3339_full, spaced, &time, &error)) return Error(403, "AccessDenied");
  const auto right = SignS3Request(to_sign, keys, region, time);
  if (right.at("x-amz-content-sha256") != At(request.headers, "x-amz-content-sha256")) {
    return Error(400, "XAmzContentSHA256Mismatch");
  }
  return right.at("authorization") == sent ? HttpAnswer{200, {}, ""} : Error(403, "SignatureDoesNotMatch");
}

HttpAnswer FakeS3::Handle(const HttpClientRequest& request) {
  absl::string_view rest = request.url;
  absl::ConsumePrefix(&rest, "http://");
  const size_t slash = rest.find('/');
  const std::string host(rest.substr(0, slash));
  const std::vector<std::string> halves = absl::StrSplit(rest.substr(slash), absl::MaxSplits('?', 1));
  const std::string path = Decode(halves[0]);
  Parsed parsed = {request.method, "", {}, request.headers, request.body};
  if (halves.size() == 2) {
    for (const absl::string_view pair : absl::StrSplit(halves[1], '&')) {
      const std::pair<std::string, std::string> parts = absl::StrSplit(pair, absl::MaxSplits('=', 1));
      parsed.query[Decode(parts.first)] = Decode(parts.second);
    }
  }
  if (HttpAnswer checked = CheckSignature(parsed, host, path); checked.code != 200) return checked;
  const std::string root = absl::StrCat("/", bucket, "/");
  if (!absl::StartsWith(path, root)) return Error(404, "NoSuchBucket");
  parsed.key = path.substr(root.size());
  if (parsed.query.count("uploads") != 0 || parsed.query.count("uploadId") != 0) return HandleUpload(parsed);
  return parsed.key.empty() ? HandleList(parsed) : HandleObject(parsed);
}

HttpAnswer FakeS3::HandleObject(const Parsed& request) {
  if (const std::string source = At(request.headers, "x-amz-copy-source"); !source.empty()) {
    const std::string from = Decode(source);
    const std::string root = absl::StrCat("/", bucket, "/");
    if (request.method != "PUT" || !absl::StartsWith(from, root)) return Error(400, "InvalidArgument");
    const absl::Status copied = objects_.Copy(from.substr(root.size()), request.key);
    return copied.ok() ? HttpAnswer{200, {}, "<CopyObjectResult><ETag>x</ETag></CopyObjectResult>"} : Of(copied);
  }
  if (request.method == "PUT") {
    const bool conditional = request.headers.count("if-none-match") != 0;
    if (conditional && conditions == Conditions::kRefused) return Error(501, "NotImplemented");
    const bool taken = conditional && conditions == Conditions::kTaken;
    return Of(objects_.Put(request.key, request.body, taken ? PutCondition::kIfAbsent : PutCondition::kNone));
  }
  if (request.method == "DELETE") return Of(objects_.Delete(request.key), 204);
  const auto facts = objects_.Head(request.key);
  if (!facts.ok()) return Of(facts.status());
  std::string bytes = objects_.Get(request.key, facts->size).value_or("");
  HttpAnswer answer = {200, {{"etag", absl::StrCat("\"", facts->etag, "\"")}}, bytes};
  answer.headers["content-length"] = absl::StrCat(bytes.size());
  const std::string range = At(request.headers, "range");
  if (range.empty()) return answer;
  uint64_t first = 0, last = 0;
  const std::pair<std::string, std::string> ends = absl::StrSplit(absl::StripPrefix(range, "bytes="), '-');
  if (!absl::SimpleAtoi(ends.first, &first) || !absl::SimpleAtoi(ends.second, &last) || first >= bytes.size()) {
    return Error(416, "InvalidRange");
  }
  last = std::min<uint64_t>(last, bytes.size() - 1);
  answer.code = 206;
  answer.body = bytes.substr(first, last - first + 1);
  answer.headers["content-range"] = absl::StrCat("bytes ", first, "-", last, "/", bytes.size());
  answer.headers["content-length"] = absl::StrCat(answer.body.size());
  return answer;
}

HttpAnswer FakeS3::HandleList(const Parsed& request) {
  ListRequest list;
  list.prefix = At(request.query, "prefix");
  list.by_folder = At(request.query, "delimiter") == "/";
  const std::string token = At(request.query, "continuation-token");
  list.start_after = token.empty() ? At(request.query, "start-after") : absl::HexStringToBytes(token);
  size_t keys = 1000;
  if (!absl::SimpleAtoi(At(request.query, "max-keys"), &keys)) return Error(400, "InvalidArgument");
  list.limit = std::min(keys, page_keys);
  absl::StatusOr<Listing> page = objects_.List(list);
  if (!page.ok()) return Of(page.status());
  if (!lists_in_order) std::reverse(page->objects.begin(), page->objects.end());
  std::string last;
  std::string body = "<ListBucketResult>";
  for (const ListedObject& object : page->objects) {
    absl::StrAppend(&body, "<Contents><Key>", object.key, "</Key><Size>", object.size, "</Size></Contents>");
    last = std::max(last, object.key);
  }
  for (const std::string& folder : page->folders) {
    absl::StrAppend(&body, "<CommonPrefixes><Prefix>", folder, "</Prefix></CommonPrefixes>");
    last = std::max(last, folder + "\x7f");
  }
  absl::StrAppend(&body, "<IsTruncated>", page->more ? "true" : "false", "</IsTruncated>");
  if (page->more) {
    absl::StrAppend(&body, "<NextContinuationToken>", absl::BytesToHexString(last), "</NextContinuationToken>");
  }
  return {200, {}, absl::StrCat(body, "</ListBucketResult>")};
}

HttpAnswer FakeS3::HandleUpload(const Parsed& request) {
  if (request.method == "GET") {
    std::string body = "<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>";
    const auto uploads = objects_.ListUploads(At(request.query, "prefix"));
    if (!uploads.ok()) return Of(uploads.status());
    for (const Upload& upload : *uploads) {
      absl::StrAppend(&body, "<Upload><Key>", upload.key, "</Key><UploadId>", upload.id, "</UploadId></Upload>");
    }
    return {200, {}, absl::StrCat(body, "</ListMultipartUploadsResult>")};
  }
  const std::string algorithm = At(request.headers, "x-amz-checksum-algorithm");
  if (request.method == "POST" && request.query.count("uploads") != 0) {
    if (!algorithm.empty() && refuses_checksums) return Error(501, "NotImplemented");
    const auto upload = objects_.StartUpload(request.key);
    if (!upload.ok()) return Of(upload.status());
    HttpAnswer answer = {200,
                         {},
                         absl::StrCat("<InitiateMultipartUploadResult><UploadId>", upload->id,
                                      "</UploadId></InitiateMultipartUploadResult>")};
    if (knows_checksums) answer.headers["x-amz-checksum-algorithm"] = algorithm;
    return answer;
  }
  const Upload upload = {request.key, At(request.query, "uploadId")};
  if (request.method == "DELETE") return Of(objects_.AbortUpload(upload), 204);
  if (request.method == "POST") return HandleComplete(request);
  int number = 0;
  if (!absl::SimpleAtoi(At(request.query, "partNumber"), &number)) return Error(400, "InvalidArgument");
  const auto part = objects_.PutPart(upload, number, request.body);
  if (!part.ok()) return absl::IsNotFound(part.status()) ? Error(404, "NoSuchUpload") : Of(part.status());
  const std::string checksum = At(request.headers, "x-amz-checksum-crc32c");
  if (!checksum.empty() && checksum != ChecksumText(part->crc32c)) return Error(400, "BadDigest");
  if (knows_checksums == checksum.empty()) return Error(400, "InvalidRequest");
  MutexLock lock(&parts_mutex_);
  parts_[upload.id][number] = *part;
  return {200, {{"etag", absl::StrCat("\"", part->etag, "\"")}}, ""};
}

HttpAnswer FakeS3::HandleComplete(const Parsed& request) {
  const Upload upload = {request.key, At(request.query, "uploadId")};
  const std::string body(request.body);
  std::vector<UploadedPart> parts;
  static const std::regex kPart(
      "<Part>(<ChecksumCRC32C>([^<]+)</ChecksumCRC32C>)?<ETag>\"([^\"]+)\"</ETag>"
      "<PartNumber>([0-9]+)</PartNumber></Part>");
  for (std::sregex_iterator at(body.begin(), body.end(), kPart), end; at != end; ++at) {
    const int number = std::stoi((*at)[4]);
    MutexLock lock(&parts_mutex_);
    UploadedPart part = parts_[upload.id][number];
    if (knows_checksums && (*at)[2] != ChecksumText(part.crc32c)) return Error(400, "InvalidPart");
    part.number = number;
    part.etag = (*at)[3];
    parts.push_back(part);
  }
  // The fake does not know an upload that it completed.
  const auto known = objects_.ListUploads(request.key);
  const bool open = known.ok() && std::any_of(known->begin(), known->end(),
                                              [&](const Upload& other) { return other.id == upload.id; });
  if (!open) return Error(404, "NoSuchUpload");
  const absl::Status status = objects_.CompleteUpload(upload, parts);
  if (!status.ok()) return Of(status);
  return {200, {}, "<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>"};
}

}  // namespace lockstep
