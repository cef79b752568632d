#include "common/net/sample_hello.h"

#include <openssl/ssl.h>

#include <memory>

#include "common/status/check.h"

namespace lockstep {

std::string SampleHello(const std::string& name) {
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  const std::unique_ptr<SSL, void (*)(SSL*)> client(SSL_new(context.get()), SSL_free);
  LS_CHECK(name.empty() || SSL_set_tlsext_host_name(client.get(), name.c_str()) == 1, "a name can be asked for");
  BIO* const out = BIO_new(BIO_s_mem());
  SSL_set_bio(client.get(), BIO_new(BIO_s_mem()), out);
  LS_CHECK(SSL_connect(client.get()) < 0, "nobody answers");
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(out, &bytes);
  return std::string(bytes, static_cast<size_t>(size));
}

}  // namespace lockstep
