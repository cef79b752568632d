// A fake metadata server of a cloud for tests, which answers each request by calling a function of the test.
//
// Threading: owned by the test. The server's own thread calls the function, one request at a time, until the destructor
// returns.
#ifndef LOCKSTEP_WORKER_NOTICE_FAKE_METADATA_SERVER_H_
#define LOCKSTEP_WORKER_NOTICE_FAKE_METADATA_SERVER_H_

#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status/check.h"
#include "worker/notice/http.h"

namespace lockstep::worker {

class FakeMetadataServer {
 public:
  // Receives a request with all its headers; returns the bytes of the answer, or kHang to keep the connection open
  // without an answer.
  using Answer = std::function<std::string(const std::string& request)>;
  static constexpr char kHang[] = "";

  explicit FakeMetadataServer(Answer answer) : answer_(std::move(answer)) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    LS_CHECK(bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0 && listen(listener_, 16) == 0 &&
                 getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0,
             "a port of the loopback is free");
    endpoint_ = HttpEndpoint{"127.0.0.1", ntohs(address.sin_port)};
    end_ = eventfd(0, EFD_CLOEXEC);
    thread_ = std::thread([this] { Run(); });
  }
  ~FakeMetadataServer() {
    const uint64_t one = 1;
    LS_CHECK(write(end_, &one, sizeof one) == sizeof one, "an event can be counted");
    thread_.join();
    close(listener_);
    close(end_);
  }
  FakeMetadataServer(const FakeMetadataServer&) = delete;
  FakeMetadataServer& operator=(const FakeMetadataServer&) = delete;

  const HttpEndpoint& endpoint() const { return endpoint_; }

  // A reply with Content-Length.
  static std::string Reply(int status, const std::string& body, const std::string& headers = "") {
    return absl::StrCat("HTTP/1.1 ", status, " Some Reason\r\n", headers, "Content-Length: ", body.size(), "\r\n\r\n",
                        body);
  }

 private:
  bool Ends(int fd) const {
    pollfd ready[2] = {{fd, POLLIN, 0}, {end_, POLLIN, 0}};
    poll(ready, 2, -1);
    return ready[1].revents != 0;
  }

  void Run() {
    while (!Ends(listener_)) {
      const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) continue;
      Serve(fd);
      close(fd);
    }
  }

  void Serve(int fd) const {
    std::string request;
    char buffer[1024];
    while (!absl::StrContains(request, "\r\n\r\n")) {
      if (Ends(fd)) return;
      const ssize_t size = recv(fd, buffer, sizeof buffer, 0);
      if (size <= 0) return;
      request.append(buffer, static_cast<size_t>(size));
    }
    const std::string reply = answer_(request);
    if (!reply.empty()) {
      (void)!send(fd, reply.data(), reply.size(), MSG_NOSIGNAL);
      return;
    }
    // kHang: wait until the client gives up.
    while (!Ends(fd) && recv(fd, buffer, sizeof buffer, 0) > 0) continue;
  }

  const Answer answer_;
  HttpEndpoint endpoint_;
  int listener_ = -1;
  int end_ = -1;
  std::thread thread_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_NOTICE_FAKE_METADATA_SERVER_H_
