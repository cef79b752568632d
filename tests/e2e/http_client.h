// Sends one GET request to an HTTP server, as a browser would.
//
// Threading: thread-safe (stateless); blocks for at most ten seconds per read.
#ifndef LOCKSTEP_TESTS_E2E_HTTP_CLIENT_H_
#define LOCKSTEP_TESTS_E2E_HTTP_CLIENT_H_

#include <arpa/inet.h>
#include <sys/socket.h>

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/storage/descriptor.h"

namespace lockstep::e2e {

struct HttpAnswer {
  int status = 0;  // 0: there was no answer
  std::string head;
  std::string body;
};

// GETs `path` from 127.0.0.1:`port`. `headers`: further header lines, each with its line end.
inline HttpAnswer HttpGet(int port, const std::string& path, const std::string& headers = "",
                          const std::string& host = "localhost") {
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
  const timeval limit = {10, 0};
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  sockaddr_in peer = {};
  peer.sin_family = AF_INET;
  peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  peer.sin_port = htons(static_cast<uint16_t>(port));
  if (connect(socket.get(), reinterpret_cast<sockaddr*>(&peer), sizeof peer) != 0) return {};
  const std::string request =
      absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: ", host, "\r\n", headers, "Connection: close\r\n\r\n");
  send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL);
  std::string text;
  char bytes[65536];
  for (ssize_t n; (n = recv(socket.get(), bytes, sizeof bytes, 0)) > 0;) text.append(bytes, static_cast<size_t>(n));
  const size_t end = text.find("\r\n\r\n");
  if (end == std::string::npos || text.size() < 12) return {};
  return {std::atoi(text.c_str() + 9), text.substr(0, end), text.substr(end + 4)};
}

}  // namespace lockstep::e2e

#endif  // LOCKSTEP_TESTS_E2E_HTTP_CLIENT_H_
