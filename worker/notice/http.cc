#include "worker/notice/http.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/clock/clock.h"
#include "common/status/status_macros.h"

namespace lockstep::worker {
namespace {

constexpr absl::string_view kLineEnd = "\r\n";

absl::Status NoHttp(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("the reply is no HTTP: ", what));
}

bool MakeAddress(const HttpEndpoint& endpoint, sockaddr_storage& address, socklen_t& size) {
  address = {};
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&address);
  if (inet_pton(AF_INET, endpoint.host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(static_cast<uint16_t>(endpoint.port));
    size = sizeof *v4;
    return true;
  }
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&address);
  if (inet_pton(AF_INET6, endpoint.host.c_str(), &v6->sin6_addr) != 1) return false;
  v6->sin6_family = AF_INET6;
  v6->sin6_port = htons(static_cast<uint16_t>(endpoint.port));
  size = sizeof *v6;
  return true;
}

// The chunks of a body put together; nullopt: the last one has not come.
absl::StatusOr<std::optional<std::string>> JoinChunks(absl::string_view bytes) {
  std::string body;
  for (;;) {
    const size_t end = bytes.find(kLineEnd);
    if (end == absl::string_view::npos) return std::optional<std::string>();
    const absl::string_view line = bytes.substr(0, end);
    size_t size = 0;
    const std::string digits(absl::StripAsciiWhitespace(line.substr(0, line.find(';'))));
    if (digits.size() > 6 || !absl::SimpleHexAtoi(digits, &size)) return NoHttp("a chunk without its size");
    bytes.remove_prefix(end + kLineEnd.size());
    if (size == 0) return std::optional(body);  // what trails behind is of no interest
    if (bytes.size() < size + kLineEnd.size()) return std::optional<std::string>();
    if (bytes.substr(size, kLineEnd.size()) != kLineEnd) return NoHttp("a chunk of another size than it says");
    absl::StrAppend(&body, bytes.substr(0, size));
    bytes.remove_prefix(size + kLineEnd.size());
  }
}

absl::Status ParseHead(absl::string_view head, HttpReply& reply) {
  const std::vector<absl::string_view> lines = absl::StrSplit(head, kLineEnd);
  const std::vector<absl::string_view> words = absl::StrSplit(lines[0], absl::MaxSplits(' ', 2));
  const bool known = words.size() >= 2 && absl::StartsWith(words[0], "HTTP/1.") && words[1].size() == 3 &&
                     absl::SimpleAtoi(words[1], &reply.status);
  if (!known) return NoHttp("its first line has no status");
  for (size_t i = 1; i < lines.size(); ++i) {
    const size_t colon = lines[i].find(':');
    if (colon == absl::string_view::npos) return NoHttp("a header without a colon");
    reply.headers[absl::AsciiStrToLower(lines[i].substr(0, colon))] =
        std::string(absl::StripAsciiWhitespace(lines[i].substr(colon + 1)));
  }
  return absl::OkStatus();
}

// A connection with a deadline.
class Connection {
 public:
  Connection(const HttpEndpoint& endpoint, absl::Duration limit, int cancel_fd)
      : endpoint_(endpoint), limit_(limit), until_(SteadyNow() + limit), cancel_fd_(cancel_fd) {}
  ~Connection() {
    if (fd_ >= 0) close(fd_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  absl::Status Open() {
    sockaddr_storage address;
    socklen_t size = 0;
    if (!MakeAddress(endpoint_, address, size)) {
      return absl::InvalidArgumentError(absl::StrCat("'", endpoint_.host, "' is no address in numbers"));
    }
    fd_ = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd_ < 0) return Broken("cannot open a socket", errno);
    if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), size) == 0) return absl::OkStatus();
    if (errno != EINPROGRESS) return Broken("cannot connect", errno);
    LS_RETURN_IF_ERROR(Await(POLLOUT));
    int error = 0;
    socklen_t error_size = sizeof error;
    getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &error_size);
    return error == 0 ? absl::OkStatus() : Broken("cannot connect", error);
  }

  absl::Status Send(absl::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent > 0) {
        bytes.remove_prefix(static_cast<size_t>(sent));
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        LS_RETURN_IF_ERROR(Await(POLLOUT));
      } else if (errno != EINTR) {
        return Broken("the connection broke", errno);
      }
    }
    return absl::OkStatus();
  }

  // Appends what comes next; false at the end of the stream.
  absl::StatusOr<bool> Receive(std::string& bytes) {
    char buffer[4096];
    for (;;) {
      const ssize_t received = recv(fd_, buffer, sizeof buffer, 0);
      if (received == 0) return false;
      if (received > 0) {
        bytes.append(buffer, static_cast<size_t>(received));
        return true;
      }
      if (errno == EAGAIN || errno == EWOULDBLOCK) {
        LS_RETURN_IF_ERROR(Await(POLLIN));
      } else if (errno != EINTR) {
        return Broken("the connection broke", errno);
      }
    }
  }

 private:
  absl::Status Broken(absl::string_view what, int error) const {
    return absl::UnavailableError(absl::StrCat(endpoint_.ToString(), ": ", what, ": ", std::strerror(error)));
  }

  absl::Status Await(short events) {
    for (;;) {
      const absl::Duration left = until_ - SteadyNow();
      if (left <= absl::ZeroDuration()) {
        return absl::DeadlineExceededError(
            absl::StrCat(endpoint_.ToString(), " did not answer within ", absl::FormatDuration(limit_)));
      }
      pollfd ready[2] = {{fd_, events, 0}, {cancel_fd_, POLLIN, 0}};  // poll ignores a descriptor of -1
      const int64_t ms =
          std::clamp<int64_t>(absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1))), 1, 60000);
      if (poll(ready, 2, static_cast<int>(ms)) < 0 && errno != EINTR) return Broken("poll", errno);
      if (ready[1].revents != 0) return absl::CancelledError("not awaited any more");
      if (ready[0].revents != 0) return absl::OkStatus();
    }
  }

  const HttpEndpoint endpoint_;
  const absl::Duration limit_;
  const absl::Time until_;
  const int cancel_fd_;
  int fd_ = -1;
};

}  // namespace

std::string HttpEndpoint::ToString() const {
  const bool v6 = absl::StrContains(host, ':');
  return absl::StrCat("http://", v6 ? "[" : "", host, v6 ? "]" : "", port == 80 ? "" : absl::StrCat(":", port));
}

absl::StatusOr<HttpEndpoint> ParseEndpoint(absl::string_view text) {
  const absl::Status wrong = absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is no endpoint: give http://ADDRESS or http://ADDRESS:PORT, the address in numbers"));
  absl::string_view rest = text;
  if (!absl::ConsumePrefix(&rest, "http://")) return wrong;
  absl::ConsumeSuffix(&rest, "/");
  HttpEndpoint endpoint;
  if (absl::ConsumePrefix(&rest, "[")) {
    const size_t end = rest.find(']');
    if (end == absl::string_view::npos) return wrong;
    endpoint.host = std::string(rest.substr(0, end));
    rest.remove_prefix(end + 1);
    if (!absl::StrContains(endpoint.host, ':')) return wrong;
  } else {
    endpoint.host = std::string(rest.substr(0, rest.find(':')));
    rest.remove_prefix(endpoint.host.size());
  }
  if (absl::ConsumePrefix(&rest, ":")) {
    if (!absl::SimpleAtoi(rest, &endpoint.port) || endpoint.port < 1 || endpoint.port > 65535) return wrong;
  } else if (!rest.empty()) {
    return wrong;
  }
  sockaddr_storage address;
  socklen_t size = 0;
  if (!MakeAddress(endpoint, address, size)) return wrong;
  return endpoint;
}

absl::StatusOr<std::optional<HttpReply>> ParseReply(absl::string_view bytes, bool ended) {
  const size_t end = bytes.find("\r\n\r\n");
  if (end == absl::string_view::npos) {
    if (!absl::StartsWith(bytes, absl::string_view("HTTP/1.").substr(0, bytes.size())))
      return NoHttp("it begins otherwise");
    if (ended) return NoHttp("it ends in its headers");
    return std::optional<HttpReply>();
  }
  HttpReply reply;
  LS_RETURN_IF_ERROR(ParseHead(bytes.substr(0, end), reply));
  const absl::string_view rest = bytes.substr(end + 4);
  const bool without_body = reply.status == 204 || reply.status == 304;
  if (without_body) return std::optional(std::move(reply));
  if (absl::EqualsIgnoreCase(reply.headers["transfer-encoding"], "chunked")) {
    LS_ASSIGN_OR_RETURN(std::optional<std::string> body, JoinChunks(rest));
    if (!body.has_value() && ended) return NoHttp("it ends in a chunk");
    if (!body.has_value()) return std::optional<HttpReply>();
    reply.body = *std::move(body);
    return std::optional(std::move(reply));
  }
  if (const auto length = reply.headers.find("content-length"); length != reply.headers.end()) {
    size_t size = 0;
    if (!absl::SimpleAtoi(length->second, &size) || size > kMaxHttpReply) return NoHttp("its length is no number");
    if (rest.size() < size && ended) return NoHttp("it ends before its length");
    if (rest.size() < size) return std::optional<HttpReply>();
    reply.body = std::string(rest.substr(0, size));
    return std::optional(std::move(reply));
  }
  if (!ended) return std::optional<HttpReply>();
  reply.body = std::string(rest);
  return std::optional(std::move(reply));
}

absl::StatusOr<HttpReply> Exchange(const HttpEndpoint& endpoint, const HttpRequest& request, absl::Duration limit,
                                   int cancel_fd) {
  Connection connection(endpoint, limit, cancel_fd);
  LS_RETURN_IF_ERROR(connection.Open());
  const std::string authority(absl::StripPrefix(endpoint.ToString(), "http://"));
  std::string text = absl::StrCat(request.method, " ", request.target, " HTTP/1.1\r\nHost: ", authority,
                                  "\r\nConnection: close\r\nAccept: */*\r\nUser-Agent: lockstep\r\n");
  for (const auto& [name, value] : request.headers) absl::StrAppend(&text, name, ": ", value, "\r\n");
  if (request.method != "GET") absl::StrAppend(&text, "Content-Length: 0\r\n");
  LS_RETURN_IF_ERROR(connection.Send(absl::StrCat(text, "\r\n")));
  std::string bytes;
  for (bool ended = false;;) {
    LS_ASSIGN_OR_RETURN(const bool more, connection.Receive(bytes));
    ended = !more;
    absl::StatusOr<std::optional<HttpReply>> reply = ParseReply(bytes, ended);
    if (!reply.ok()) {
      return absl::Status(reply.status().code(), absl::StrCat(endpoint.ToString(), ": ", reply.status().message()));
    }
    if (reply->has_value()) return **std::move(reply);
    if (bytes.size() > kMaxHttpReply) {
      return absl::DataLossError(absl::StrCat(endpoint.ToString(), " sends more than ", kMaxHttpReply, " bytes"));
    }
  }
}

}  // namespace lockstep::worker
