// SHA-256 by OpenSSL's EVP interface, incremental.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_COMMON_DIGEST_SHA256_H_
#define LOCKSTEP_COMMON_DIGEST_SHA256_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"

struct evp_md_ctx_st;

namespace lockstep {

using Sha256Digest = std::array<uint8_t, 32>;

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void Update(absl::string_view bytes);
  // The digest of everything given. REQUIRES: called once, and nothing afterwards.
  Sha256Digest Finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

Sha256Digest Sha256Of(absl::string_view bytes);
// 64 lower-case hexadecimal digits.
std::string ToHex(const Sha256Digest& digest);
std::string Sha256Hex(absl::string_view bytes);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_DIGEST_SHA256_H_
