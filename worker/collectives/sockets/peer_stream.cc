#include "worker/collectives/sockets/peer_stream.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"
#include "worker/collectives/sockets/fast_gcm.h"

namespace lockstep::worker {
namespace {

constexpr size_t kKeyBytes = 32;
// Encrypted records are collected until they are worth a system call.
constexpr size_t kSendBytes = 256 * 1024;
// A connection keeps this and a record's 16 KiB: giving them back when they are empty costs page faults in every step.
constexpr size_t kReadAheadBytes = 64 * 1024;
// AES-GCM may encrypt 2^24.5 full records, 388 GB, with one key (RFC 8446, 5.5).
constexpr uint64_t kKeyBytesLimit = uint64_t{64} << 30;

absl::Status Closed() { return absl::UnavailableError("the other end closed the connection"); }

class PlainStream final : public PeerStream {
 public:
  explicit PlainStream(Descriptor socket) : socket_(std::move(socket)) {}
  int fd() const override { return socket_.get(); }
  bool encrypts() const override { return false; }

  absl::StatusOr<size_t> Read(absl::Span<const iovec> into) override {
    msghdr message = {};
    message.msg_iov = const_cast<iovec*>(into.data());
    message.msg_iovlen = into.size();
    for (;;) {
      const ssize_t n = recvmsg(fd(), &message, 0);
      if (n > 0) return static_cast<size_t>(n);
      if (n == 0) return Closed();
      if (errno == EAGAIN) return size_t{0};
      if (errno != EINTR) return SystemError("reading");
    }
  }

  absl::StatusOr<size_t> Write(absl::Span<const iovec> from) override {
    msghdr message = {};
    message.msg_iov = const_cast<iovec*>(from.data());
    message.msg_iovlen = from.size();
    for (;;) {
      const ssize_t n = sendmsg(fd(), &message, MSG_NOSIGNAL);
      if (n >= 0) return static_cast<size_t>(n);
      if (errno == EAGAIN) return size_t{0};
      if (errno != EINTR) return SystemError("writing");
    }
  }

  absl::StatusOr<bool> Flush() override { return true; }

 private:
  const Descriptor socket_;
};

// OpenSSL writes into memory, from where a few large system calls send, and reads from the socket.
struct Transport {
  Descriptor socket;
  std::vector<char> out;
  size_t sent = 0;  // of `out`

  // False: the socket takes no more now. Unavailable: broken.
  absl::StatusOr<bool> Flush() {
    while (sent < out.size()) {
      const ssize_t n = send(socket.get(), out.data() + sent, out.size() - sent, MSG_NOSIGNAL);
      if (n < 0 && errno == EAGAIN) return false;
      if (n < 0 && errno != EINTR) return SystemError("writing");
      if (n > 0) sent += static_cast<size_t>(n);
    }
    out.clear();
    sent = 0;
    return true;
  }
};

int BioWrite(BIO* bio, const char* bytes, int size) {
  auto* const transport = static_cast<Transport*>(BIO_get_data(bio));
  transport->out.insert(transport->out.end(), bytes, bytes + size);
  return size;
}

int BioRead(BIO* bio, char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const auto* const transport = static_cast<const Transport*>(BIO_get_data(bio));
  for (;;) {
    const ssize_t n = recv(transport->socket.get(), bytes, static_cast<size_t>(size), 0);
    if (n >= 0) return static_cast<int>(n);
    if (errno == EINTR) continue;
    if (errno == EAGAIN) BIO_set_retry_read(bio);
    return -1;
  }
}

long BioControl(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

BIO_METHOD* MakeBioMethod() {
  BIO_METHOD* const method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "peer transport");
  LS_CHECK(method != nullptr, "OpenSSL has memory");
  BIO_meth_set_write(method, BioWrite);
  BIO_meth_set_read(method, BioRead);
  BIO_meth_set_ctrl(method, BioControl);
  return method;
}

SSL_SESSION* SessionOf(SSL* ssl) {
  constexpr unsigned char kAes128GcmSha256[] = {0x13, 0x01};
  const auto& key = *static_cast<const std::string*>(SSL_get_app_data(ssl));
  SSL_SESSION* const session = SSL_SESSION_new();
  const SSL_CIPHER* const cipher = SSL_CIPHER_find(ssl, kAes128GcmSha256);
  if (session != nullptr && cipher != nullptr &&
      SSL_SESSION_set1_master_key(session, reinterpret_cast<const unsigned char*>(key.data()), key.size()) == 1 &&
      SSL_SESSION_set_cipher(session, cipher) == 1 && SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1) {
    return session;
  }
  SSL_SESSION_free(session);
  return nullptr;
}

constexpr unsigned char kIdentity[] = "rank";

int UseSession(SSL* ssl, const EVP_MD*, const unsigned char** identity, size_t* size, SSL_SESSION** session) {
  *session = SessionOf(ssl);
  *identity = kIdentity;
  *size = sizeof(kIdentity) - 1;
  return *session != nullptr ? 1 : 0;
}

// Which key is meant was said by the prelude.
int FindSession(SSL* ssl, const unsigned char*, size_t, SSL_SESSION** session) {
  *session = SessionOf(ssl);
  return *session != nullptr ? 1 : 0;
}

SSL_CTX* MakeContext(bool dials, bool encrypts) {
  OSSL_LIB_CTX* const fast = FastGcmLibrary();
  SSL_CTX* const context = SSL_CTX_new_ex(fast, fast != nullptr ? kFastGcmProperties : nullptr,
                                          dials ? TLS_client_method() : TLS_server_method());
  LS_CHECK(context != nullptr, "OpenSSL has memory");
  const bool set = SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
                   SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") == 1 &&
                   SSL_CTX_set_num_tickets(context, 0) == 1;
  LS_CHECK(set, "OpenSSL has TLS 1.3 with AES-128-GCM");
  SSL_CTX_clear_options(context, SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  // A listener without the key would need a certificate, and there is none that would do.
  if (dials) SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  if (dials) SSL_CTX_set_psk_use_session_callback(context, UseSession);
  if (!dials) SSL_CTX_set_psk_find_session_callback(context, FindSession);
  // What follows a handshake in the clear must not be read with it.
  if (encrypts) {
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_default_read_buffer_len(context, kReadAheadBytes);
  }
  return context;
}

SSL_CTX* ContextOf(bool dials, bool encrypts) {
  static SSL_CTX* const contexts[2][2] = {{MakeContext(false, false), MakeContext(false, true)},
                                          {MakeContext(true, false), MakeContext(true, true)}};
  return contexts[dials][encrypts];
}

struct FreeSsl {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};
using SslPointer = std::unique_ptr<SSL, FreeSsl>;

std::string ErrorText() {
  char text[160] = "no reason given";
  if (const unsigned long code = ERR_get_error(); code != 0) ERR_error_string_n(code, text, sizeof(text));
  return text;
}

class TlsStream final : public PeerStream {
 public:
  TlsStream(std::unique_ptr<Transport> transport, SslPointer ssl)
      : transport_(std::move(transport)), ssl_(std::move(ssl)) {}
  int fd() const override { return transport_->socket.get(); }
  bool encrypts() const override { return true; }

  absl::StatusOr<size_t> Read(absl::Span<const iovec> into) override {
    size_t total = 0;
    for (const iovec& part : into) {
      size_t at = 0;
      while (at < part.iov_len) {
        size_t n = 0;
        ERR_clear_error();
        const int ok = SSL_read_ex(ssl_.get(), static_cast<char*>(part.iov_base) + at, part.iov_len - at, &n);
        if (ok != 1) {
          const int error = SSL_get_error(ssl_.get(), ok);
          if (error == SSL_ERROR_WANT_READ || total + at > 0) return total + at;
          if (error == SSL_ERROR_SYSCALL || error == SSL_ERROR_ZERO_RETURN) return Closed();
          return absl::UnavailableError(absl::StrCat("what came was not sent by the other end: ", ErrorText()));
        }
        at += n;
      }
      total += at;
    }
    return total;
  }

  absl::StatusOr<size_t> Write(absl::Span<const iovec> from) override {
    size_t total = 0;
    for (const iovec& part : from) {
      if (part.iov_len == 0) continue;
      // OpenSSL takes a part as a whole: its transport always has room.
      if (transport_->out.size() >= kSendBytes) {
        LS_ASSIGN_OR_RETURN(const bool flushed, transport_->Flush());
        if (!flushed) return total;
      }
      size_t n = 0;
      ERR_clear_error();
      if (SSL_write_ex(ssl_.get(), part.iov_base, part.iov_len, &n) != 1) {
        return absl::UnavailableError(absl::StrCat("cannot encrypt: ", ErrorText()));
      }
      total += n;
      LS_RETURN_IF_ERROR(CountForKey(n));
    }
    return total;
  }

  absl::StatusOr<bool> Flush() override { return transport_->Flush(); }

 private:
  absl::Status CountForKey(size_t bytes) {
    with_key_ += bytes;
    if (with_key_ < kKeyBytesLimit) return absl::OkStatus();
    with_key_ = 0;
    if (SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) == 1) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("cannot change keys: ", ErrorText()));
  }

  const std::unique_ptr<Transport> transport_;
  const SslPointer ssl_;
  uint64_t with_key_ = 0;  // bytes sent
};

class PskHandshake final : public TlsHandshake {
 public:
  PskHandshake(std::unique_ptr<Transport> transport, std::string key, bool encrypts)
      : transport_(std::move(transport)), key_(std::move(key)), encrypts_(encrypts) {}
  ~PskHandshake() override {
    if (ssl_ != nullptr) SSL_set_app_data(ssl_.get(), nullptr);
  }

  absl::Status Start(bool dials) {
    static BIO_METHOD* const method = MakeBioMethod();
    ssl_.reset(SSL_new(ContextOf(dials, encrypts_)));
    BIO* const bio = BIO_new(method);
    if (ssl_ == nullptr || bio == nullptr) {
      BIO_free(bio);
      return absl::InternalError(absl::StrCat("no TLS connection can be made: ", ErrorText()));
    }
    BIO_set_data(bio, transport_.get());
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl_.get(), bio, bio);
    SSL_set_app_data(ssl_.get(), &key_);
    if (dials) SSL_set_connect_state(ssl_.get());
    if (!dials) SSL_set_accept_state(ssl_.get());
    return absl::OkStatus();
  }

  int fd() const override { return transport_->socket.get(); }

  absl::StatusOr<Want> Step() override {
    ERR_clear_error();
    const int done = SSL_do_handshake(ssl_.get());
    const int error = done == 1 ? SSL_ERROR_NONE : SSL_get_error(ssl_.get(), done);
    // Before the error is told: it holds the alert that tells the other end.
    LS_ASSIGN_OR_RETURN(const bool flushed, transport_->Flush());
    if (error == SSL_ERROR_SSL) {
      return absl::UnauthenticatedError(absl::StrCat("the other end is not of this generation: ", ErrorText()));
    }
    if (error != SSL_ERROR_NONE && error != SSL_ERROR_WANT_READ) return Closed();
    if (!flushed) return Want::kWrite;
    if (error == SSL_ERROR_WANT_READ) return Want::kRead;
    if (SSL_session_reused(ssl_.get()) != 1) {
      return absl::UnauthenticatedError("the other end did not use the key of this generation");
    }
    return Want::kNothing;
  }

  std::unique_ptr<PeerStream> Finish() override {
    SSL_set_app_data(ssl_.get(), nullptr);
    if (!encrypts_) return std::make_unique<PlainStream>(std::move(transport_->socket));
    return std::make_unique<TlsStream>(std::move(transport_), std::move(ssl_));
  }

 private:
  std::unique_ptr<Transport> transport_;
  const std::string key_;
  const bool encrypts_;
  SslPointer ssl_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TlsHandshake>> MakeTlsHandshake(Descriptor socket, const std::string& key, bool dials,
                                                               bool encrypts) {
  LS_CHECK(key.size() == kKeyBytes, "a key has 32 bytes");
  auto transport = std::make_unique<Transport>();
  transport->socket = std::move(socket);
  auto handshake = std::make_unique<PskHandshake>(std::move(transport), key, encrypts);
  LS_RETURN_IF_ERROR(handshake->Start(dials));
  return handshake;
}

}  // namespace lockstep::worker
