#include "worker/collectives/shared/host_memory.h"

#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace lockstep::worker {
namespace {

constexpr size_t kFlagBytes = 4096;
// A worker has two segments, for its gradients and their sums.
constexpr size_t kMostSegments = 15;
constexpr size_t kMostDescriptors = kMostSegments + 1;
constexpr char kMagic[8] = {'L', 'S', 'm', 'e', 'm', '0', '1', '\0'};

// Sent together with the descriptors: that of the flag, then those of the segments. Without segments there is neither.
struct Message {
  char magic[8] = {};
  uint64_t segments = 0;
  struct {
    uint64_t number = 0;
    uint64_t bytes = 0;
  } segment[kMostSegments] = {};
};

absl::Status Failure(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat("memory cannot be shared with it: ", what));
}

std::atomic_ref<uint32_t> FlagAt(std::byte* begin) {
  return std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t*>(begin));
}

// The control part of a message, aligned as the system wants it.
union Control {
  cmsghdr head;
  char bytes[CMSG_SPACE(kMostDescriptors * sizeof(int))];
};

// Receives a message and its descriptors. Owns every descriptor that came, also after an error.
absl::Status Receive(int fd, Message& message, std::vector<Descriptor>& descriptors) {
  Control control = {};
  iovec part = {.iov_base = &message, .iov_len = sizeof(message)};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.bytes;
  header.msg_controllen = sizeof(control.bytes);
  ssize_t n = 0;
  do {
    n = recvmsg(fd, &header, MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  if (n < 0) return Failure(std::strerror(errno));
  for (const cmsghdr* entry = CMSG_FIRSTHDR(&header); entry != nullptr;
       entry = CMSG_NXTHDR(&header, const_cast<cmsghdr*>(entry))) {
    if (entry->cmsg_level != SOL_SOCKET || entry->cmsg_type != SCM_RIGHTS) continue;
    for (size_t at = 0; at + sizeof(int) <= entry->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(entry) + at, sizeof(descriptor));
      descriptors.emplace_back(descriptor);
    }
  }
  if (n == 0) return Failure("the other end closed the connection");
  const bool whole = n == static_cast<ssize_t>(sizeof(message)) && (header.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) == 0;
  if (!whole || std::memcmp(message.magic, kMagic, sizeof(kMagic)) != 0 || message.segments > kMostSegments ||
      descriptors.size() != (message.segments == 0 ? 0 : message.segments + 1)) {
    return Failure("what came is no list of segments");
  }
  return absl::OkStatus();
}

// Maps sealed memory that a peer passed.
absl::StatusOr<SharedMapping> MapPassed(int fd, uint64_t bytes) {
  LS_RETURN_IF_ERROR(SharedSegment::Check(fd, bytes));
  SharedMapping mapping(fd, bytes, /*writable=*/false);
  if (mapping.begin() == nullptr)
    return Failure(
        "no address space is left (raise ulimit -v, or set `security.peers: encrypted`, which shares no memory)");
  return mapping;
}

}  // namespace

HostMemory::HostMemory(std::shared_ptr<SharedMemory> own, int ranks)
    : own_(std::move(own)), peers_(static_cast<size_t>(ranks)) {
  if (own_ == nullptr) return;
  if (auto flag = SharedSegment::Make(kFlagBytes); flag.ok()) flag_ = *std::move(flag);
}

absl::Status HostMemory::PassTo(int peer, int fd) {
  std::vector<SharedMemory::Listed> list;
  if (flag_.mapping.begin() != nullptr) list = own_->List(kMostSegments);
  Message message;
  std::memcpy(message.magic, kMagic, sizeof(kMagic));
  message.segments = list.size();
  int descriptors[kMostDescriptors] = {flag_.fd.get()};
  for (size_t i = 0; i < list.size(); ++i) {
    message.segment[i] = {list[i].number, list[i].bytes};
    descriptors[i + 1] = list[i].fd.get();
  }
  const size_t bytes = list.empty() ? 0 : (list.size() + 1) * sizeof(int);
  Control control = {};
  iovec part = {.iov_base = &message, .iov_len = sizeof(message)};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (bytes > 0) {
    header.msg_control = control.bytes;
    header.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr* const entry = CMSG_FIRSTHDR(&header);
    entry->cmsg_level = SOL_SOCKET;
    entry->cmsg_type = SCM_RIGHTS;
    entry->cmsg_len = CMSG_LEN(bytes);
    std::memcpy(CMSG_DATA(entry), descriptors, bytes);
  }
  // Fits into an empty send buffer.
  if (sendmsg(fd, &header, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof(message))) {
    return Failure(std::strerror(errno));
  }
  peers_[static_cast<size_t>(peer)].last_passed = list.empty() ? 0 : list.back().number;
  return absl::OkStatus();
}

absl::Status HostMemory::TakeFrom(int peer, int fd) {
  Message message;
  std::vector<Descriptor> descriptors;
  LS_RETURN_IF_ERROR(Receive(fd, message, descriptors));
  if (descriptors.empty()) return absl::OkStatus();
  Peer& from = peers_[static_cast<size_t>(peer)];
  LS_ASSIGN_OR_RETURN(from.flag, MapPassed(descriptors[0].get(), kFlagBytes));
  for (size_t i = 0; i < message.segments; ++i) {
    const auto& [number, bytes] = message.segment[i];
    LS_ASSIGN_OR_RETURN(from.segments[number], MapPassed(descriptors[i + 1].get(), bytes));
  }
  return absl::OkStatus();
}

std::optional<SharedRange> HostMemory::RangeFor(int peer, const void* begin, size_t bytes) const {
  const uint64_t last = peers_[static_cast<size_t>(peer)].last_passed;
  if (last == 0) return std::nullopt;
  const std::optional<SharedRange> range = own_->Find(begin, bytes);
  return range.has_value() && range->segment <= last ? range : std::nullopt;
}

const char* HostMemory::BytesOf(int peer, const SharedRange& range) const {
  const auto& segments = peers_[static_cast<size_t>(peer)].segments;
  const auto found = segments.find(range.segment);
  if (found == segments.end()) return nullptr;
  const SharedMapping& mapping = found->second;
  if (range.offset > mapping.size() || range.bytes > mapping.size() - range.offset) return nullptr;
  return reinterpret_cast<const char*>(mapping.begin()) + range.offset;
}

bool HostMemory::Holds(int peer) const {
  std::byte* const flag = peers_[static_cast<size_t>(peer)].flag.begin();
  // What was read before is not read after the flag.
  std::atomic_thread_fence(std::memory_order_acquire);
  return flag != nullptr && FlagAt(flag).load(std::memory_order_relaxed) == 0;
}

void HostMemory::Revoke() {
  if (flag_.mapping.begin() == nullptr) return;
  FlagAt(flag_.mapping.begin()).store(1, std::memory_order_relaxed);
  // What is written after is not seen before the flag.
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace lockstep::worker
