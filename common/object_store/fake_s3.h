// A server that speaks S3 over objects in memory, for tests: it checks signatures, pages its listings, and fails on
// command. Requests reach it directly, or over sockets through a TestHttpServer.
//
// Threading: thread-safe; settings must be made before the first request.
#ifndef LOCKSTEP_COMMON_OBJECT_STORE_FAKE_S3_H_
#define LOCKSTEP_COMMON_OBJECT_STORE_FAKE_S3_H_

#include <atomic>
#include <functional>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "common/object_store/http_transport.h"
#include "common/object_store/memory_object_store.h"
#include "common/object_store/s3_signature.h"
#include "common/sync/mutex.h"

namespace lockstep {

enum class S3Fault : uint8_t {
  kNone,
  kLost,        // the connection ends before the request takes effect
  kAnswerLost,  // the connection ends after it took effect
  kTwice,       // the request arrives twice
  kConflict,    // 409, no effect
  kSlowDown,    // 503, no effect
  kTooMany,     // 429 without a body, no effect
  kInternal,    // 500, after the effect
  kHidden,      // 200 with an error for a body, no effect; as kInternal where the answer has no body
  kPage,        // 200 with a page of HTML, no effect; as kInternal where the answer has no body
  kExpired,     // 400: the session of the keys is over. Not for random schedules
};
constexpr int kS3Faults = 10;  // without kExpired

class FakeS3 final : public HttpTransport {
 public:
  enum class Conditions : uint8_t { kTaken, kRefused, kIgnored };

  const S3Credentials keys = {"AKIAFAKE", "secret", ""};
  const std::string region = "us-east-1";
  const std::string bucket = "models";
  Conditions conditions = Conditions::kTaken;
  bool knows_checksums = true;     // of parts
  bool refuses_checksums = false;  // 501 for requests with checksum headers
  bool lists_in_order = true;
  size_t page_keys = 3;
  std::function<S3Fault()> next_fault = [] { return S3Fault::kNone; };

  absl::StatusOr<HttpAnswer> Send(const HttpClientRequest& request) override;

  MemoryObjectStore& objects() { return objects_; }
  int requests() const { return requests_; }

 private:
  struct Parsed {
    std::string method, key;
    std::map<std::string, std::string> query, headers;
    absl::string_view body;
  };
  HttpAnswer Handle(const HttpClientRequest& request);
  HttpAnswer HandleObject(const Parsed& request);
  HttpAnswer HandleUpload(const Parsed& request);
  HttpAnswer HandleComplete(const Parsed& request);
  HttpAnswer HandleList(const Parsed& request);
  HttpAnswer CheckSignature(const Parsed& request, const std::string& host, const std::string& path) const;

  MemoryObjectStore objects_;
  std::atomic<int> requests_{0};
  Mutex fault_mutex_;  // next_fault is called under it
  Mutex parts_mutex_;
  std::map<std::string, std::map<int, UploadedPart>> parts_ GUARDED_BY(parts_mutex_);  // by upload
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBJECT_STORE_FAKE_S3_H_
