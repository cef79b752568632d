// Objects in an S3 bucket: AWS, Ceph, MinIO and others that speak its API.
//
// A request without an answer, or with the answer 409, 429 or 5xx, is repeated with growing pauses until
// S3Patience::patience is over. When a server refuses the keys as expired, they are fetched again, once.
//
// Integrity: the SHA-256 of every body is signed, and a server that checks signatures refuses other bytes. Parts also
// carry a CRC-32C if the server's answer to the start of the upload says that it supports it; the server stores these
// and verifies the object when the upload is completed. Content-MD5 would add nothing to the SHA-256. Other requests
// carry no checksums, since some servers refuse unknown ones.
//
// Threading: thread-safe; every call blocks.
#ifndef LOCKSTEP_COMMON_OBJECT_STORE_S3_OBJECT_STORE_H_
#define LOCKSTEP_COMMON_OBJECT_STORE_S3_OBJECT_STORE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/object_store/aws_profile.h"
#include "common/object_store/http_transport.h"
#include "common/object_store/object_store.h"
#include "common/object_store/s3_answer.h"
#include "common/object_store/s3_credentials.h"
#include "common/object_store/s3_endpoint.h"
#include "common/object_store/s3_url.h"

namespace lockstep {

// Time limits, and the clocks and pauses that a test replaces.
struct S3Patience {
  absl::Duration patience = absl::Seconds(60);  // of a call, and a second more for each MiB of its bytes
  absl::Duration attempt = absl::Seconds(15);   // of one request, and a second more for each MiB
  absl::Duration first_pause = absl::Milliseconds(100);
  absl::Duration longest_pause = absl::Seconds(5);
  std::function<absl::Time()> wall_clock;     // for signatures; the machine's when empty
  std::function<absl::Time()> steady_clock;   // for deadlines; SteadyNow when empty
  std::function<void(absl::Duration)> pause;  // sleeps when empty
};

class S3ObjectStore final : public ObjectStore {
 public:
  // Opens s3://bucket/prefix with the settings of the environment. Sends nothing to the bucket. InvalidArgument when
  // the URL or a setting is wrong.
  static absl::StatusOr<std::unique_ptr<S3ObjectStore>> Open(absl::string_view url, const Environment& environment,
                                                             S3Patience patience = {});

  // `transport` and `credentials` are not owned.
  S3ObjectStore(S3Url url, S3Endpoint endpoint, HttpTransport* transport, S3CredentialsSource* credentials,
                S3Patience patience);
  ~S3ObjectStore() override;

  absl::Status Put(absl::string_view key, absl::string_view bytes, PutCondition condition) override;
  absl::Status Copy(absl::string_view from, absl::string_view to) override;
  absl::StatusOr<std::string> Get(absl::string_view key, uint64_t max_bytes) override;
  absl::StatusOr<std::string> GetRange(absl::string_view key, uint64_t offset, uint64_t length) override;
  absl::StatusOr<ObjectFacts> Head(absl::string_view key) override;
  absl::StatusOr<Listing> List(const ListRequest& request) override;
  absl::Status Delete(absl::string_view key) override;
  absl::StatusOr<Upload> StartUpload(absl::string_view key) override;
  absl::StatusOr<UploadedPart> PutPart(const Upload& upload, int number, absl::string_view bytes) override;
  absl::Status CompleteUpload(const Upload& upload, absl::Span<const UploadedPart> parts) override;
  absl::Status AbortUpload(const Upload& upload) override;
  absl::StatusOr<std::vector<Upload>> ListUploads(absl::string_view prefix) override;
  std::string Describe(absl::string_view key) const override;

 private:
  struct Call {
    std::string method;
    std::string key;  // in the bucket, with the prefix; "": the bucket itself
    std::map<std::string, std::string> query;
    std::map<std::string, std::string> headers;
    absl::string_view body;
    uint64_t max_answer = uint64_t{16} << 20;
    uint64_t expected = 0;  // bytes of the answer, for the deadline
    bool conditional = false;
    // Processes an answer of 2xx. Returning Unavailable repeats the request.
    std::function<absl::Status(const HttpAnswer&)> take = nullptr;
  };
  struct Owned;  // the transport and credentials that Open made

  // Returns an answer of 2xx; other answers become a status.
  absl::StatusOr<HttpAnswer> Perform(const Call& call);
  absl::StatusOr<HttpAnswer> Once(const Call& call, absl::Duration timeout);
  S3Verdict Judge(const Call& call, const absl::StatusOr<HttpAnswer>& answer) const;
  absl::StatusOr<Upload> Start(absl::string_view key, bool with_checksums);
  std::string FullKey(absl::string_view key) const;
  std::string Place(const Call& call) const;

  std::unique_ptr<Owned> owned_;
  const S3Url url_;
  const S3Endpoint endpoint_;
  HttpTransport& transport_;
  S3CredentialsSource& credentials_;
  const S3Patience patience_;
  const uint64_t seed_;  // of the pauses
  std::atomic<uint64_t> pauses_{0};
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBJECT_STORE_S3_OBJECT_STORE_H_
