#include "worker/collectives/sockets/fast_gcm.h"

#include <openssl/evp.h>
#include <openssl/provider.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace lockstep::worker {
namespace {

using Bytes = std::vector<unsigned char>;

struct FreeCipher {
  void operator()(EVP_CIPHER* cipher) const { EVP_CIPHER_free(cipher); }
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using Cipher = std::unique_ptr<EVP_CIPHER, FreeCipher>;
using Context = std::unique_ptr<EVP_CIPHER_CTX, FreeCipher>;

// Whether this machine can run these tests.
bool HasIt() {
  if (FastGcmLibrary() != nullptr) return true;
  std::printf("SKIPPED: this processor has no VAES\n");
  return false;
}

Cipher Fast() { return Cipher(EVP_CIPHER_fetch(FastGcmLibrary(), "AES-128-GCM", kFastGcmProperties)); }
Cipher OfOpenSsl() { return Cipher(EVP_CIPHER_fetch(nullptr, "AES-128-GCM", nullptr)); }

struct Message {
  Bytes key, iv, associated, data;
};

Bytes RandomBytes(std::mt19937& random, size_t n) {
  Bytes bytes(n);
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random());
  return bytes;
}

// Feeds data in two pieces.
bool Feed(EVP_CIPHER_CTX* context, const Message& message, const Bytes& in, Bytes& out) {
  int n = 0, m = 0;
  out.resize(in.size());
  const size_t cut = in.size() / 3;
  if (!message.associated.empty() && EVP_CipherUpdate(context, nullptr, &n, message.associated.data(),
                                                      static_cast<int>(message.associated.size())) != 1)
    return false;
  if (in.empty()) return true;
  return EVP_CipherUpdate(context, out.data(), &n, in.data(), static_cast<int>(cut)) == 1 &&
         EVP_CipherUpdate(context, out.data() + n, &m, in.data() + cut, static_cast<int>(in.size() - cut)) == 1 &&
         static_cast<size_t>(n + m) == in.size();
}

// The ciphertext with the tag behind it.
std::optional<Bytes> Encrypt(const Cipher& cipher, const Message& message) {
  const Context context(EVP_CIPHER_CTX_new());
  Bytes out, tag(16);
  unsigned char rest[16];
  int n = 0;
  if (EVP_EncryptInit_ex2(context.get(), cipher.get(), message.key.data(), message.iv.data(), nullptr) != 1 ||
      !Feed(context.get(), message, message.data, out) || EVP_EncryptFinal_ex(context.get(), rest, &n) != 1 || n != 0 ||
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG, 16, tag.data()) != 1) {
    return std::nullopt;
  }
  out.insert(out.end(), tag.begin(), tag.end());
  return out;
}

std::optional<Bytes> Decrypt(const Cipher& cipher, const Message& message, Bytes sealed) {
  Bytes tag(sealed.end() - 16, sealed.end());
  sealed.resize(sealed.size() - 16);
  const Context context(EVP_CIPHER_CTX_new());
  Bytes out;
  unsigned char rest[16];
  int n = 0;
  if (EVP_DecryptInit_ex2(context.get(), cipher.get(), message.key.data(), message.iv.data(), nullptr) != 1 ||
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_SET_TAG, 16, tag.data()) != 1 ||
      !Feed(context.get(), message, sealed, out) || EVP_DecryptFinal_ex(context.get(), rest, &n) != 1) {
    return std::nullopt;
  }
  return out;
}

TEST_CASE("fast gcm: it is fetched from ipsec-mb, and other algorithms from OpenSSL", "[sockets]") {
  if (!HasIt()) return;
  const auto provider_of = [](const char* name) {
    const Cipher cipher(EVP_CIPHER_fetch(FastGcmLibrary(), name, kFastGcmProperties));
    REQUIRE(cipher != nullptr);
    return std::string(OSSL_PROVIDER_get0_name(EVP_CIPHER_get0_provider(cipher.get())));
  };
  CHECK(provider_of("AES-128-GCM") == "ipsec-mb");
  CHECK(provider_of("id-aes128-GCM") == "ipsec-mb");
  CHECK(provider_of("AES-256-GCM") == "default");
}

TEST_CASE("fast gcm: it makes what OpenSSL's makes of a message, and each opens the other's", "[sockets]") {
  if (!HasIt()) return;
  std::mt19937 random(5);
  for (const size_t size : {0, 1, 15, 16, 17, 48, 255, 4096, 16384, 100'003}) {
    for (const size_t associated : {0, 5, 13, 40}) {
      CAPTURE(size, associated);
      const Message message{.key = RandomBytes(random, 16),
                            .iv = RandomBytes(random, 12),
                            .associated = RandomBytes(random, associated),
                            .data = RandomBytes(random, size)};
      const auto fast = Encrypt(Fast(), message), slow = Encrypt(OfOpenSsl(), message);
      REQUIRE(fast.has_value());
      CHECK(fast == slow);
      CHECK(Decrypt(Fast(), message, *slow) == message.data);
      CHECK(Decrypt(OfOpenSsl(), message, *fast) == message.data);
    }
  }
}

TEST_CASE("fast gcm: a changed bit anywhere is found", "[sockets]") {
  if (!HasIt()) return;
  std::mt19937 random(6);
  const Message message{.key = RandomBytes(random, 16),
                        .iv = RandomBytes(random, 12),
                        .associated = RandomBytes(random, 5),
                        .data = RandomBytes(random, 100)};
  const Bytes sealed = Encrypt(Fast(), message).value();
  for (size_t i = 0; i < sealed.size(); ++i) {
    Bytes changed = sealed;
    changed[i] ^= static_cast<unsigned char>(1 << (i % 8));
    CHECK_FALSE(Decrypt(Fast(), message, changed).has_value());
  }
  for (size_t i = 0; i < message.associated.size(); ++i) {
    Message changed = message;
    changed.associated[i] ^= 1;
    CHECK_FALSE(Decrypt(Fast(), changed, sealed).has_value());
  }
}

TEST_CASE("fast gcm: an IV serves one message, and what was not set is not made up", "[sockets]") {
  if (!HasIt()) return;
  std::mt19937 random(7);
  const Bytes key = RandomBytes(random, 16), iv = RandomBytes(random, 12);
  unsigned char in[16] = {}, out[32], tag[16];
  int n = 0;
  const Cipher cipher = Fast();
  const Context context(EVP_CIPHER_CTX_new());
  REQUIRE(EVP_EncryptInit_ex2(context.get(), cipher.get(), key.data(), nullptr, nullptr) == 1);
  CHECK(EVP_EncryptUpdate(context.get(), out, &n, in, 16) != 1);  // no IV yet
  CHECK(EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG, 16, tag) != 1);
  REQUIRE(EVP_EncryptInit_ex2(context.get(), nullptr, nullptr, iv.data(), nullptr) == 1);
  CHECK(EVP_EncryptUpdate(context.get(), out, &n, in, 16) == 1);
  CHECK(EVP_EncryptUpdate(context.get(), nullptr, &n, in, 16) != 1);  // associated data comes first
  CHECK(EVP_EncryptFinal_ex(context.get(), out, &n) == 1);
  CHECK(EVP_EncryptUpdate(context.get(), out, &n, in, 16) != 1);
  CHECK(EVP_EncryptFinal_ex(context.get(), out, &n) != 1);
  CHECK(EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_SET_IVLEN, 16, nullptr) != 1);

  const Context decrypts(EVP_CIPHER_CTX_new());
  REQUIRE(EVP_DecryptInit_ex2(decrypts.get(), cipher.get(), key.data(), iv.data(), nullptr) == 1);
  CHECK(EVP_DecryptUpdate(decrypts.get(), out, &n, in, 16) == 1);
  CHECK(EVP_DecryptFinal_ex(decrypts.get(), out, &n) != 1);  // no tag
}

}  // namespace
}  // namespace lockstep::worker
