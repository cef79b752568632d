// HTTP over libcurl. Connections are reused; a request to a server that is silent or too slow fails before its
// deadline.
//
// Respects http_proxy, https_proxy and no_proxy of the environment, except for addresses of this machine.
//
// Threading: thread-safe; each request has a handle of its own, from a pool. Send blocks.
#ifndef LOCKSTEP_COMMON_OBJECT_STORE_HTTP_CLIENT_H_
#define LOCKSTEP_COMMON_OBJECT_STORE_HTTP_CLIENT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/object_store/http_transport.h"
#include "common/sync/mutex.h"

namespace lockstep {

struct HttpClientOptions {
  absl::Duration connect_timeout = absl::Seconds(5);
  // A connection with fewer bytes per second, averaged over `stalled_after`, is given up.
  int min_bytes_per_second = 1024;
  absl::Duration stalled_after = absl::Seconds(20);
  std::string ca_bundle;    // file with the certificates to trust instead of the system's; "": the system's
  bool use_proxies = true;  // of the environment
  size_t max_idle = 16;     // handles, each with its connection
};

class HttpClient final : public HttpTransport {
 public:
  explicit HttpClient(HttpClientOptions options);
  ~HttpClient() override;

  absl::StatusOr<HttpAnswer> Send(const HttpClientRequest& request) override;

 private:
  struct Close {
    void operator()(void* handle) const;
  };
  using Handle = std::unique_ptr<void, Close>;  // a CURL

  Handle Take();
  void Keep(Handle handle);

  const HttpClientOptions options_;
  Mutex mutex_;
  std::vector<Handle> idle_ GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBJECT_STORE_HTTP_CLIENT_H_
