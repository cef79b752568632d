#include "tests/e2e/on_path.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <stdexcept>

namespace lockstep::e2e {
namespace {

constexpr int kPollMilliseconds = 20;
constexpr size_t kNoteBytes = 10;          // struct virtio_net_hdr, whose header is none for C++
constexpr size_t kLargestFrame = 1 << 17;  // the kernel joins segments up to 64 KiB

// A socket that takes and sends whole frames of an interface, with a note each about what the network card was to do:
// its checksum, and cutting it into segments. So a frame can be sent on as it came.
int OpenInterface(const std::string& name) {
  const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
  const int on = 1;
  sockaddr_ll at = {};
  at.sll_family = AF_PACKET;
  at.sll_protocol = htons(ETH_P_ALL);
  at.sll_ifindex = static_cast<int>(if_nametoindex(name.c_str()));
  const bool open = fd >= 0 && at.sll_ifindex > 0 && setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on) == 0 &&
                    setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on) == 0 &&
                    bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0;
  if (!open) throw std::runtime_error("frames of " + name + " cannot be taken");
  return fd;
}

// Where the payload of a TCP segment over IPv4 begins and ends in `frame`, behind the kernel's note; the same twice for
// any other frame, and for one from or to `spared`.
struct Range {
  size_t begin = 0;
  size_t end = 0;
};
Range PayloadOf(const std::string& frame, const std::string& spared) {
  const auto byte = [&](size_t at) { return static_cast<uint8_t>(frame[at]); };
  const size_t ip = kNoteBytes + ETH_HLEN;
  if (frame.size() < ip + 40 || byte(ip - 2) != 0x08 || byte(ip - 1) != 0 || byte(ip) >> 4 != 4 || byte(ip + 9) != 6)
    return {};
  if (frame.compare(ip + 12, 4, spared) == 0 || frame.compare(ip + 16, 4, spared) == 0) return {};
  const size_t tcp = ip + static_cast<size_t>(byte(ip) & 15) * 4;
  if (frame.size() < tcp + 20) return {};
  return {.begin = tcp + static_cast<size_t>(byte(tcp + 12) >> 4) * 4, .end = frame.size()};
}

}  // namespace

OnPath::OnPath(const Hosts& hosts, int host, const std::string& spared)
    : hosts_(hosts), host_(host), spared_([&] {
        in_addr address = {};
        inet_pton(AF_INET, spared.c_str(), &address);
        return std::string(reinterpret_cast<const char*>(&address), sizeof address);
      }()) {
  const Hosts::CableEnds ends = hosts_.OpenCable(host);
  inside_ = OpenInterface(ends.at_host);
  outside_ = OpenInterface(ends.at_switch);
  thread_ = std::thread([this] { Forward(); });
}

OnPath::~OnPath() {
  ended_ = true;
  thread_.join();
  close(inside_);
  close(outside_);
  hosts_.CloseCable(host_);
}

void OnPath::Forward() {
  std::array<pollfd, 2> ends = {pollfd{.fd = inside_, .events = POLLIN, .revents = 0},
                                pollfd{.fd = outside_, .events = POLLIN, .revents = 0}};
  std::string frame;
  while (!ended_) {
    poll(ends.data(), ends.size(), kPollMilliseconds);
    for (size_t from = 0; from < ends.size(); ++from) {
      if ((ends[from].revents & POLLIN) == 0) continue;
      frame.resize(kLargestFrame);
      const ssize_t n = recv(ends[from].fd, frame.data(), frame.size(), MSG_DONTWAIT);
      if (n <= 0) continue;
      frame.resize(static_cast<size_t>(n));
      Change(frame);
      send(ends[1 - from].fd, frame.data(), frame.size(), 0);  // what is lost here is sent again by TCP
    }
  }
}

void OnPath::Change(std::string& frame) {
  if (!wanted_) return;
  const Range payload = PayloadOf(frame, spared_);
  if (payload.begin >= payload.end) return;
  frame[(payload.begin + payload.end) / 2] ^= 0x01;
  wanted_ = false;
  ++changed_;
}

}  // namespace lockstep::e2e
