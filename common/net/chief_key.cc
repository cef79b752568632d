#include "common/net/chief_key.h"

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/digest/sha256.h"
#include "common/net/token.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

constexpr Role kRoles[] = {Role::kRead, Role::kJoin, Role::kAdmin};
constexpr absl::string_view kCredential = "lockstep-";
constexpr size_t kHexDigits = 64;
constexpr size_t kServerNameBytes = 16;
constexpr absl::string_view kServerNameEnd = ".chief.lockstep";

template <auto free_it>
struct Free {
  template <typename T>
  void operator()(T* object) const {
    free_it(object);
  }
};
template <typename T, auto free_it>
using Owned = std::unique_ptr<T, Free<free_it>>;
using OwnedKey = Owned<EVP_PKEY, EVP_PKEY_free>;
using OwnedNumber = Owned<BIGNUM, BN_clear_free>;

bool IsCredential(absl::string_view token) { return absl::StartsWith(token, kCredential); }

absl::Status Failed(absl::string_view what) { return absl::InternalError(absl::StrCat("OpenSSL: no ", what)); }

// Of a credential, before its last word. It is no secret, and protects from slips alone.
std::string CheckOf(absl::string_view words) { return Sha256Hex(words).substr(0, 8); }

// 64 bytes that tell nothing of `secret`.
using Derived = std::array<uint8_t, 64>;
Derived Derive(absl::string_view secret, absl::string_view purpose) {
  Derived out;
  HMAC(EVP_sha512(), secret.data(), static_cast<int>(secret.size()), reinterpret_cast<const uint8_t*>(purpose.data()),
       purpose.size(), out.data(), nullptr);
  return out;
}

std::string SecretOf(absl::string_view token, Role role) {
  const Derived derived = Derive(token, absl::StrCat("lockstep ", NameOf(role)));
  return absl::BytesToHexString({reinterpret_cast<const char*>(derived.data()), kHexDigits / 2});
}

// The private number is the derived bytes modulo the group's order less one, plus one: 512 bits leave no bias in 256.
absl::StatusOr<OwnedKey> KeyOf(absl::string_view token) {
  const Derived derived = Derive(token, "lockstep chief key");
  const Owned<EC_GROUP, EC_GROUP_free> group(EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1));
  const Owned<BN_CTX, BN_CTX_free> context(BN_CTX_secure_new());
  const OwnedNumber number(BN_bin2bn(derived.data(), derived.size(), nullptr));
  const OwnedNumber limit(BN_dup(EC_GROUP_get0_order(group.get())));
  const OwnedNumber priv(BN_secure_new());
  const Owned<EC_POINT, EC_POINT_free> point(EC_POINT_new(group.get()));
  if (number == nullptr || limit == nullptr || priv == nullptr || point == nullptr || !BN_sub_word(limit.get(), 1) ||
      !BN_mod(priv.get(), number.get(), limit.get(), context.get()) || !BN_add_word(priv.get(), 1) ||
      !EC_POINT_mul(group.get(), point.get(), priv.get(), nullptr, nullptr, context.get())) {
    return Failed("private key");
  }
  std::array<uint8_t, 65> pub;
  if (EC_POINT_point2oct(group.get(), point.get(), POINT_CONVERSION_UNCOMPRESSED, pub.data(), pub.size(),
                         context.get()) != pub.size()) {
    return Failed("public key");
  }
  const Owned<OSSL_PARAM_BLD, OSSL_PARAM_BLD_free> build(OSSL_PARAM_BLD_new());
  if (!OSSL_PARAM_BLD_push_utf8_string(build.get(), OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) ||
      !OSSL_PARAM_BLD_push_BN(build.get(), OSSL_PKEY_PARAM_PRIV_KEY, priv.get()) ||
      !OSSL_PARAM_BLD_push_octet_string(build.get(), OSSL_PKEY_PARAM_PUB_KEY, pub.data(), pub.size())) {
    return Failed("key");
  }
  const Owned<OSSL_PARAM, OSSL_PARAM_free> parameters(OSSL_PARAM_BLD_to_param(build.get()));
  const Owned<EVP_PKEY_CTX, EVP_PKEY_CTX_free> maker(EVP_PKEY_CTX_new_from_name(nullptr, "EC", nullptr));
  EVP_PKEY* made = nullptr;
  if (EVP_PKEY_fromdata_init(maker.get()) <= 0 ||
      EVP_PKEY_fromdata(maker.get(), &made, EVP_PKEY_KEYPAIR, parameters.get()) <= 0) {
    return Failed("key");
  }
  return OwnedKey(made);
}

std::string PinOfKey(EVP_PKEY* key) {
  uint8_t* der = nullptr;
  const int size = i2d_PUBKEY(key, &der);
  if (size <= 0) return "";
  std::string pin = Sha256Hex({reinterpret_cast<const char*>(der), static_cast<size_t>(size)});
  OPENSSL_free(der);
  return pin;
}

std::string ContentOf(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<size_t>(size));
}

// gRPC's server looks for the name that a caller asks for among those of the certificate, and logs an error where it is
// missing.
bool AddServerNames(X509* certificate) {
  const Owned<X509_EXTENSION, X509_EXTENSION_free> names(
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, absl::StrCat("DNS:*", kServerNameEnd).c_str()));
  return names != nullptr && X509_add_ext(certificate, names.get(), -1) == 1;
}

}  // namespace

absl::string_view NameOf(Role role) {
  switch (role) {
    case Role::kRead:
      return "read";
    case Role::kJoin:
      return "join";
    case Role::kAdmin:
      return "admin";
  }
  return "";
}

std::optional<Role> RoleNamed(absl::string_view name) {
  for (const Role role : kRoles) {
    if (NameOf(role) == name) return role;
  }
  return std::nullopt;
}

absl::StatusOr<CallerKey> CallerKeyOf(absl::string_view token, Role role) {
  if (token.empty()) return absl::InvalidArgumentError("the token is empty");
  const std::vector<absl::string_view> words = absl::StrSplit(token, '-');
  if (!IsCredential(token)) {
    LS_ASSIGN_OR_RETURN(const OwnedKey key, KeyOf(token));
    return CallerKey{role, SecretOf(token, role), PinOfKey(key.get()), ""};
  }
  const std::optional<Role> given = words.size() == 5 ? RoleNamed(words[1]) : std::nullopt;
  if (!given.has_value() || words[2].size() != kHexDigits || words[3].size() != kHexDigits ||
      words[4] != CheckOf(token.substr(0, token.rfind('-')))) {
    return absl::InvalidArgumentError(
        "the token is a damaged role credential; expected lockstep-ROLE-SECRET-PIN-CHECK as `lockstep token` prints "
        "it");
  }
  return CallerKey{*given, std::string(words[2]), std::string(words[3]), ""};
}

std::string ServerNameOf(absl::string_view secret) {
  const Derived derived = Derive(secret, "lockstep server name");
  return absl::StrCat(absl::BytesToHexString({reinterpret_cast<const char*>(derived.data()), kServerNameBytes}),
                      kServerNameEnd);
}

std::vector<std::string> ServerNames(absl::string_view token) {
  std::vector<std::string> names;
  for (const Role role : kRoles) names.push_back(ServerNameOf(SecretOf(token, role)));
  return names;
}

absl::StatusOr<std::string> RoleCredential(absl::string_view token, Role role) {
  if (IsCredential(token))
    return absl::InvalidArgumentError("this is a role credential; others are made from the token");
  LS_ASSIGN_OR_RETURN(const CallerKey key, CallerKeyOf(token, role));
  const std::string checked = absl::StrCat(kCredential, NameOf(role), "-", key.secret, "-", key.pin);
  return absl::StrCat(checked, "-", CheckOf(checked));
}

std::optional<Role> RoleOfSecret(absl::string_view token, absl::string_view secret) {
  std::optional<Role> found;
  for (const Role role : kRoles) {
    if (SameToken(secret, SecretOf(token, role))) found = role;
  }
  return found;
}

absl::StatusOr<ChiefIdentity> ChiefIdentityOf(absl::string_view token) {
  LS_ASSIGN_OR_RETURN(const OwnedKey key, KeyOf(token));
  const Owned<X509, X509_free> certificate(X509_new());
  X509_NAME* const name = X509_get_subject_name(certificate.get());
  // Nobody goes by its dates: the pin says whose it is, and a chief whose clock is wrong is reached like any other.
  if (!X509_set_version(certificate.get(), X509_VERSION_3) ||
      !ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1) ||
      !ASN1_TIME_set_string(X509_getm_notBefore(certificate.get()), "19700101000000Z") ||
      !ASN1_TIME_set_string(X509_getm_notAfter(certificate.get()), "99991231235959Z") ||
      !X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const uint8_t*>("lockstep-chief"), -1, -1,
                                  0) ||
      !X509_set_issuer_name(certificate.get(), name) || !X509_set_pubkey(certificate.get(), key.get()) ||
      !AddServerNames(certificate.get()) || !X509_sign(certificate.get(), key.get(), EVP_sha256())) {
    return Failed("certificate");
  }
  const Owned<BIO, BIO_free_all> private_pem(BIO_new(BIO_s_secmem()));
  const Owned<BIO, BIO_free_all> certificate_pem(BIO_new(BIO_s_mem()));
  if (!PEM_write_bio_PrivateKey(private_pem.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) ||
      !PEM_write_bio_X509(certificate_pem.get(), certificate.get())) {
    return Failed("PEM");
  }
  return ChiefIdentity{ContentOf(private_pem.get()), ContentOf(certificate_pem.get())};
}

std::string PinOf(absl::string_view certificate) {
  const Owned<BIO, BIO_free_all> bio(BIO_new_mem_buf(certificate.data(), static_cast<int>(certificate.size())));
  const Owned<X509, X509_free> parsed(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  return parsed == nullptr ? "" : PinOfKey(X509_get0_pubkey(parsed.get()));
}

}  // namespace lockstep
