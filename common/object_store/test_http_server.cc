#include "common/object_store/test_http_server.h"

#include <sys/socket.h>

#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace lockstep {
namespace {

// Appends what comes; false at the end of the connection.
bool ReceiveMore(int socket, std::string& buffer) {
  char bytes[65536];
  const ssize_t count = recv(socket, bytes, sizeof(bytes), 0);
  if (count <= 0) return false;
  buffer.append(bytes, static_cast<size_t>(count));
  return true;
}

// Takes one request off the front of `buffer`, receiving as much as it needs.
std::optional<TestHttpServer::Request> ReceiveRequest(int socket, std::string& buffer) {
  size_t end = 0;
  while ((end = buffer.find("\r\n\r\n")) == std::string::npos) {
    if (!ReceiveMore(socket, buffer)) return std::nullopt;
  }
  TestHttpServer::Request request;
  const std::vector<std::string> lines = absl::StrSplit(buffer.substr(0, end), "\r\n");
  const std::vector<std::string> first = absl::StrSplit(lines[0], ' ');
  if (first.size() != 3) return std::nullopt;
  request.method = first[0];
  request.target = first[1];
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(lines[i], absl::MaxSplits(':', 1));
    request.headers[absl::AsciiStrToLower(parts.first)] = std::string(absl::StripAsciiWhitespace(parts.second));
  }
  size_t length = 0;
  if (const auto found = request.headers.find("content-length"); found != request.headers.end()) {
    if (!absl::SimpleAtoi(found->second, &length)) return std::nullopt;
  }
  buffer.erase(0, end + 4);
  while (buffer.size() < length) {
    if (!ReceiveMore(socket, buffer)) return std::nullopt;
  }
  request.body = buffer.substr(0, length);
  buffer.erase(0, length);
  return request;
}

}  // namespace

TestHttpServer::TestHttpServer(Handler handler)
    : handler_(std::move(handler)), server_([this](int socket) { Serve(socket); }) {}

std::string TestHttpServer::url() const { return absl::StrCat("http://127.0.0.1:", port()); }

void TestHttpServer::Serve(int socket) {
  std::string buffer;
  while (auto request = ReceiveRequest(socket, buffer)) {
    const HttpAnswer answer = handler_(*request);
    if (answer.code == 0) break;
    std::string head = absl::StrCat("HTTP/1.1 ", answer.code, " Answer\r\n");
    for (const auto& [name, value] : answer.headers) absl::StrAppend(&head, name, ": ", value, "\r\n");
    if (answer.headers.count("content-length") == 0) {
      absl::StrAppend(&head, "content-length: ", answer.body.size(), "\r\n");
    }
    absl::StrAppend(&head, "\r\n");
    if (!SendAll(socket, absl::StrCat(head, request->method == "HEAD" ? "" : answer.body))) break;
    if (answer.headers.count("connection") != 0) break;
  }
}

}  // namespace lockstep
