// A small HTTP server on a free port of the loopback, for tests. A function answers each request.
//
// Threading: thread-safe; a thread per connection, which stays open between requests. The destructor ends and joins
// them.
#ifndef LOCKSTEP_COMMON_OBJECT_STORE_TEST_HTTP_SERVER_H_
#define LOCKSTEP_COMMON_OBJECT_STORE_TEST_HTTP_SERVER_H_

#include <functional>
#include <map>
#include <string>

#include "common/net/loopback_server.h"
#include "common/object_store/http_transport.h"

namespace lockstep {

class TestHttpServer {
 public:
  struct Request {
    std::string method;
    std::string target;                          // path and query, as they came
    std::map<std::string, std::string> headers;  // lower-case names
    std::string body;
  };
  // Code 0 closes the connection without an answer. A header "content-length" replaces the correct one.
  using Handler = std::function<HttpAnswer(const Request&)>;

  explicit TestHttpServer(Handler handler);

  int port() const { return server_.port(); }
  std::string url() const;                                   // "http://127.0.0.1:PORT"
  int connections() const { return server_.connections(); }  // accepted so far

 private:
  void Serve(int socket);

  const Handler handler_;
  LoopbackServer server_;  // last: it ends first
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBJECT_STORE_TEST_HTTP_SERVER_H_
