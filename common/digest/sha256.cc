#include "common/digest/sha256.h"

#include <openssl/evp.h>

#include "absl/strings/escaping.h"
#include "common/status/check.h"

namespace lockstep {

void Sha256::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  LS_CHECK(context_ != nullptr, "OpenSSL gives a digest context");
  LS_CHECK(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1, "OpenSSL has SHA-256");
}

Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::Update(absl::string_view bytes) {
  if (bytes.empty()) return;
  LS_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1, "SHA-256 takes bytes before Finish");
}

Sha256Digest Sha256::Finish() {
  Sha256Digest digest;
  unsigned int size = 0;
  LS_CHECK(EVP_DigestFinal_ex(context_.get(), digest.data(), &size) == 1, "Finish is called once");
  LS_CHECK(size == digest.size(), "SHA-256 has 32 bytes");
  return digest;
}

Sha256Digest Sha256Of(absl::string_view bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return hash.Finish();
}

std::string ToHex(const Sha256Digest& digest) {
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest.data()), digest.size()));
}

std::string Sha256Hex(absl::string_view bytes) { return ToHex(Sha256Of(bytes)); }

}  // namespace lockstep
