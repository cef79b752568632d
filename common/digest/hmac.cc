#include "common/digest/hmac.h"

#include <openssl/hmac.h>

#include "common/status/check.h"

namespace lockstep {

Sha256Digest HmacSha256(absl::string_view key, absl::string_view bytes) {
  Sha256Digest digest;
  unsigned int size = 0;
  const unsigned char* const made =
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(bytes.data()),
           bytes.size(), digest.data(), &size);
  LS_CHECK(made != nullptr && size == digest.size(), "OpenSSL has HMAC with SHA-256");
  return digest;
}

}  // namespace lockstep
