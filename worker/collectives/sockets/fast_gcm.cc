#include "worker/collectives/sockets/fast_gcm.h"

// Else it defines macros for its old names, among them SHA1, which OpenSSL declares.
#define NO_COMPAT_IMB_API_053
#include <intel-ipsec-mb.h>
#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/provider.h>

#include <cstring>
#include <initializer_list>
#include <new>
#include <utility>

#include "absl/types/span.h"
#include "common/status/check.h"

namespace lockstep::worker {
namespace {

constexpr size_t kAesKeyBytes = 16;
constexpr size_t kIvBytes = 12;
constexpr size_t kTagBytes = 16;

// Chooses its loops by the processor, once; what is called of it afterwards only reads it.
IMB_MGR* Library() {
  static IMB_MGR* const library = [] {
    IMB_MGR* const made = alloc_mb_mgr(0);
    LS_CHECK(made != nullptr, "ipsec-mb has memory");
    init_mb_mgr_auto(made, nullptr);
    return made;
  }();
  return library;
}

// One direction of a connection. A message is: an IV, associated data once or not at all, data in any pieces, the tag.
// An IV serves one message.
class Gcm {
 public:
  bool Begin(bool encrypts, absl::Span<const unsigned char> key, absl::Span<const unsigned char> iv) {
    encrypts_ = encrypts;
    if (!key.empty()) {
      if (key.size() != kAesKeyBytes) return false;
      IMB_AES128_GCM_PRE(Library(), key.data(), &key_);
      has_key_ = true;
    }
    if (iv.empty()) return true;
    if (iv.size() != kIvBytes) return false;
    std::memcpy(iv_, iv.data(), kIvBytes);
    stage_ = Stage::kHasIv;
    has_tag_ = false;
    return true;
  }

  bool Associate(absl::Span<const unsigned char> data) {
    if (!has_key_ || stage_ != Stage::kHasIv) return false;
    IMB_AES128_GCM_INIT(Library(), &key_, &message_, iv_, data.data(), data.size());
    stage_ = Stage::kInData;
    return true;
  }

  bool Update(absl::Span<const unsigned char> in, unsigned char* out) {
    if (stage_ == Stage::kHasIv && !Associate({})) return false;
    if (stage_ != Stage::kInData) return false;
    if (in.empty()) return true;
    if (encrypts_) IMB_AES128_GCM_ENC_UPDATE(Library(), &key_, &message_, out, in.data(), in.size());
    if (!encrypts_) IMB_AES128_GCM_DEC_UPDATE(Library(), &key_, &message_, out, in.data(), in.size());
    return true;
  }

  // Of what is decrypted: whether the tag is the right one.
  bool End() {
    if (stage_ == Stage::kHasIv && !Associate({})) return false;
    if (stage_ != Stage::kInData || (!encrypts_ && !has_tag_)) return false;
    stage_ = Stage::kNoIv;
    if (encrypts_) {
      IMB_AES128_GCM_ENC_FINALIZE(Library(), &key_, &message_, tag_, kTagBytes);
      has_tag_ = true;
      return true;
    }
    unsigned char tag[kTagBytes];
    IMB_AES128_GCM_DEC_FINALIZE(Library(), &key_, &message_, tag, kTagBytes);
    has_tag_ = false;
    return CRYPTO_memcmp(tag, tag_, kTagBytes) == 0;
  }

  bool SetTag(absl::Span<const unsigned char> tag) {
    if (encrypts_ || tag.size() != kTagBytes) return false;
    std::memcpy(tag_, tag.data(), kTagBytes);
    has_tag_ = true;
    return true;
  }
  // Empty while there is none.
  absl::Span<const unsigned char> tag() const { return {tag_, encrypts_ && has_tag_ ? kTagBytes : 0}; }

  ~Gcm() { OPENSSL_cleanse(this, sizeof(*this)); }

 private:
  enum class Stage { kNoIv, kHasIv, kInData };

  gcm_key_data key_ = {};
  gcm_context_data message_ = {};
  unsigned char iv_[kIvBytes] = {};
  unsigned char tag_[kTagBytes] = {};
  Stage stage_ = Stage::kNoIv;
  bool encrypts_ = true;
  bool has_key_ = false;
  bool has_tag_ = false;
};

// From here on the functions that OpenSSL calls (provider-cipher(7)): 1 is success, 0 failure.

void* New(void*) { return new (std::nothrow) Gcm; }
void Free(void* gcm) { delete static_cast<Gcm*>(gcm); }

int SetParameters(void* gcm, const OSSL_PARAM parameters[]) {
  if (parameters == nullptr) return 1;
  if (const OSSL_PARAM* const tag = OSSL_PARAM_locate_const(parameters, OSSL_CIPHER_PARAM_AEAD_TAG); tag != nullptr) {
    const auto* const bytes = static_cast<const unsigned char*>(tag->data);
    if (tag->data_type != OSSL_PARAM_OCTET_STRING || bytes == nullptr) return 0;
    if (!static_cast<Gcm*>(gcm)->SetTag({bytes, tag->data_size})) return 0;
  }
  size_t size = 0;
  if (const OSSL_PARAM* const iv = OSSL_PARAM_locate_const(parameters, OSSL_CIPHER_PARAM_AEAD_IVLEN); iv != nullptr) {
    if (OSSL_PARAM_get_size_t(iv, &size) != 1 || size != kIvBytes) return 0;
  }
  if (const OSSL_PARAM* const key = OSSL_PARAM_locate_const(parameters, OSSL_CIPHER_PARAM_KEYLEN); key != nullptr) {
    if (OSSL_PARAM_get_size_t(key, &size) != 1 || size != kAesKeyBytes) return 0;
  }
  return 1;
}

int Begin(void* gcm, bool encrypts, const unsigned char* key, size_t key_size, const unsigned char* iv, size_t iv_size,
          const OSSL_PARAM parameters[]) {
  const bool begun =
      static_cast<Gcm*>(gcm)->Begin(encrypts, {key, key != nullptr ? key_size : 0}, {iv, iv != nullptr ? iv_size : 0});
  return begun ? SetParameters(gcm, parameters) : 0;
}
int BeginToEncrypt(void* gcm, const unsigned char* key, size_t key_size, const unsigned char* iv, size_t iv_size,
                   const OSSL_PARAM parameters[]) {
  return Begin(gcm, true, key, key_size, iv, iv_size, parameters);
}
int BeginToDecrypt(void* gcm, const unsigned char* key, size_t key_size, const unsigned char* iv, size_t iv_size,
                   const OSSL_PARAM parameters[]) {
  return Begin(gcm, false, key, key_size, iv, iv_size, parameters);
}

// Without `out`, `in` is associated data.
int Update(void* gcm, unsigned char* out, size_t* written, size_t room, const unsigned char* in, size_t size) {
  *written = out != nullptr ? size : 0;
  if (out == nullptr) return static_cast<Gcm*>(gcm)->Associate({in, size}) ? 1 : 0;
  return room >= size && static_cast<Gcm*>(gcm)->Update({in, size}, out) ? 1 : 0;
}

int Final(void* gcm, unsigned char*, size_t* written, size_t) {
  *written = 0;
  return static_cast<Gcm*>(gcm)->End() ? 1 : 0;
}

// Sets those of the sizes that are asked for.
int TellSizes(OSSL_PARAM parameters[], std::initializer_list<std::pair<const char*, size_t>> sizes) {
  for (const auto& [name, size] : sizes) {
    OSSL_PARAM* const asked = OSSL_PARAM_locate(parameters, name);
    if (asked != nullptr && OSSL_PARAM_set_size_t(asked, size) != 1) return 0;
  }
  return 1;
}

int TellOfMessage(void* gcm, OSSL_PARAM parameters[]) {
  if (OSSL_PARAM* const tag = OSSL_PARAM_locate(parameters, OSSL_CIPHER_PARAM_AEAD_TAG); tag != nullptr) {
    const absl::Span<const unsigned char> bytes = static_cast<const Gcm*>(gcm)->tag();
    if (tag->data_size != bytes.size() || OSSL_PARAM_set_octet_string(tag, bytes.data(), bytes.size()) != 1) return 0;
  }
  return TellSizes(parameters, {{OSSL_CIPHER_PARAM_KEYLEN, kAesKeyBytes},
                                {OSSL_CIPHER_PARAM_IVLEN, kIvBytes},
                                {OSSL_CIPHER_PARAM_AEAD_TAGLEN, kTagBytes}});
}

int TellOfCipher(OSSL_PARAM parameters[]) {
  for (const char* const name : {OSSL_CIPHER_PARAM_AEAD, OSSL_CIPHER_PARAM_CUSTOM_IV}) {
    OSSL_PARAM* const asked = OSSL_PARAM_locate(parameters, name);
    if (asked != nullptr && OSSL_PARAM_set_int(asked, 1) != 1) return 0;
  }
  OSSL_PARAM* const mode = OSSL_PARAM_locate(parameters, OSSL_CIPHER_PARAM_MODE);
  if (mode != nullptr && OSSL_PARAM_set_uint(mode, EVP_CIPH_GCM_MODE) != 1) return 0;
  return TellSizes(parameters, {{OSSL_CIPHER_PARAM_KEYLEN, kAesKeyBytes},
                                {OSSL_CIPHER_PARAM_IVLEN, kIvBytes},
                                {OSSL_CIPHER_PARAM_BLOCK_SIZE, 1}});
}

template <typename Function>
OSSL_DISPATCH Entry(int id, Function* function) {
  return {id, reinterpret_cast<void (*)()>(function)};
}

const OSSL_ALGORITHM* CiphersOf(void*, int operation, int* no_store) {
  static const OSSL_DISPATCH functions[] = {
      Entry(OSSL_FUNC_CIPHER_NEWCTX, New),
      Entry(OSSL_FUNC_CIPHER_FREECTX, Free),
      Entry(OSSL_FUNC_CIPHER_ENCRYPT_INIT, BeginToEncrypt),
      Entry(OSSL_FUNC_CIPHER_DECRYPT_INIT, BeginToDecrypt),
      Entry(OSSL_FUNC_CIPHER_UPDATE, Update),
      Entry(OSSL_FUNC_CIPHER_FINAL, Final),
      Entry(OSSL_FUNC_CIPHER_GET_PARAMS, TellOfCipher),
      Entry(OSSL_FUNC_CIPHER_GET_CTX_PARAMS, TellOfMessage),
      Entry(OSSL_FUNC_CIPHER_SET_CTX_PARAMS, SetParameters),
      {0, nullptr},
  };
  static const OSSL_ALGORITHM ciphers[] = {
      {"AES-128-GCM:id-aes128-GCM:2.16.840.1.101.3.4.1.6", "provider=ipsec-mb", functions, nullptr},
      {nullptr, nullptr, nullptr, nullptr},
  };
  *no_store = 0;
  return operation == OSSL_OP_CIPHER ? ciphers : nullptr;
}

int StartProvider(const OSSL_CORE_HANDLE*, const OSSL_DISPATCH*, const OSSL_DISPATCH** functions, void** context) {
  static const OSSL_DISPATCH own[] = {Entry(OSSL_FUNC_PROVIDER_QUERY_OPERATION, CiphersOf), {0, nullptr}};
  *functions = own;
  *context = nullptr;
  return 1;
}

OSSL_LIB_CTX* MakeLibrary() {
  if ((Library()->features & IMB_FEATURE_VAES) == 0) return nullptr;
  OSSL_LIB_CTX* const library = OSSL_LIB_CTX_new();
  const bool loaded = library != nullptr && OSSL_PROVIDER_add_builtin(library, "ipsec-mb", StartProvider) == 1 &&
                      OSSL_PROVIDER_load(library, "ipsec-mb") != nullptr &&
                      OSSL_PROVIDER_load(library, "default") != nullptr;
  LS_CHECK(loaded, "OpenSSL takes a provider, and has its own");
  return library;
}

}  // namespace

OSSL_LIB_CTX* FastGcmLibrary() {
  static OSSL_LIB_CTX* const library = MakeLibrary();
  return library;
}

}  // namespace lockstep::worker
