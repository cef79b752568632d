#include "common/net/stranger_answer.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "common/status/status_macros.h"

namespace lockstep {
namespace {

// gRPC looks at a certificate only where HTTP/2 was agreed on.
int ChooseHttp2(SSL*, const unsigned char** chosen, unsigned char* size, const unsigned char* offered,
                unsigned int offered_size, void*) {
  static constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  unsigned char* found = nullptr;
  if (SSL_select_next_proto(&found, size, kHttp2, sizeof kHttp2, offered, offered_size) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_NOACK;
  }
  *chosen = found;
  return SSL_TLSEXT_ERR_OK;
}

template <typename T, typename F>
std::unique_ptr<T, F> Own(T* object, F free_it) {
  return std::unique_ptr<T, F>(object, free_it);
}

BIO* Reading(const std::string& text) { return BIO_new_mem_buf(text.data(), static_cast<int>(text.size())); }

}  // namespace

void StrangerAnswer::Free::operator()(SSL* ssl) const { SSL_free(ssl); }
void StrangerAnswerFactory::Free::operator()(SSL_CTX* context) const { SSL_CTX_free(context); }

bool StrangerAnswer::Advance() {
  ERR_clear_error();
  const int done = SSL_accept(ssl_.get());
  if (done == 1) {
    SSL_shutdown(ssl_.get());
    return false;
  }
  const int error = SSL_get_error(ssl_.get(), done);
  ERR_clear_error();
  return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
}

absl::StatusOr<StrangerAnswerFactory> StrangerAnswerFactory::Make(const ChiefIdentity& identity) {
  StrangerAnswerFactory answers(SSL_CTX_new(TLS_server_method()));
  SSL_CTX* const context = answers.context_.get();
  const auto key_text = Own(Reading(identity.private_key), BIO_free_all);
  const auto certificate_text = Own(Reading(identity.certificate), BIO_free_all);
  const auto key = Own(PEM_read_bio_PrivateKey(key_text.get(), nullptr, nullptr, nullptr), EVP_PKEY_free);
  const auto certificate = Own(PEM_read_bio_X509(certificate_text.get(), nullptr, nullptr, nullptr), X509_free);
  if (context == nullptr || SSL_CTX_use_certificate(context, certificate.get()) != 1 ||
      SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1 ||
      SSL_CTX_set_num_tickets(context, 0) != 1) {
    ERR_clear_error();
    return absl::InternalError("OpenSSL does not take the chief's key");
  }
  SSL_CTX_set_alpn_select_cb(context, ChooseHttp2, nullptr);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
  return answers;
}

absl::StatusOr<StrangerAnswer> StrangerAnswerFactory::Begin(int socket) const {
  StrangerAnswer answer(SSL_new(context_.get()));
  if (answer.ssl_ == nullptr || SSL_set_fd(answer.ssl_.get(), socket) != 1) {
    return absl::InternalError("OpenSSL has no memory");
  }
  return answer;
}

}  // namespace lockstep
