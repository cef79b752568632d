// Signs requests with AWS Signature Version 4 ("Authenticating Requests: Using the Authorization Header" of the S3
// documentation). The signature covers the SHA-256 of the payload, so that the server refuses a body that was changed
// in transit.
//
// Threading: immutable; all functions are thread-safe.
#ifndef LOCKSTEP_COMMON_OBJECT_STORE_S3_SIGNATURE_H_
#define LOCKSTEP_COMMON_OBJECT_STORE_S3_SIGNATURE_H_

#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lockstep {

struct S3Credentials {
  std::string access_key;
  std::string secret_key;
  std::string session_token;  // "": none
  absl::Time expires = absl::InfiniteFuture();
};

struct S3Request {
  std::string method;
  std::string host;                            // with the port when it is not the scheme's
  std::string path = "/";                      // before encoding
  std::map<std::string, std::string> query;    // before encoding; a parameter without a value has ""
  std::map<std::string, std::string> headers;  // lower-case names; all of them are signed
  absl::string_view body;                      // not owned
};

// Percent-encodes everything but letters, digits and -._~ (and '/' when `keep_slash`).
std::string S3Encode(absl::string_view text, bool keep_slash);

// The query as it is sent and signed: encoded, and sorted by name. "" when there is none.
std::string S3Query(const std::map<std::string, std::string>& query);

// The headers to send: those of the request, x-amz-date, x-amz-content-sha256, x-amz-security-token when the
// credentials have one, and authorization. `host` is signed too, but not among them: the transport sends it.
std::map<std::string, std::string> SignS3Request(const S3Request& request, const S3Credentials& credentials,
                                                 absl::string_view region, absl::Time now);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBJECT_STORE_S3_SIGNATURE_H_
