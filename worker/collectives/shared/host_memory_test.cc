#include "worker/collectives/shared/host_memory.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "worker/collectives/shared/linked_memory.h"

namespace lockstep::worker {
namespace {

constexpr size_t kBytes = 100'000;

char* CharsOf(const device::Buffer& buffer) { return reinterpret_cast<char*>(buffer.address()); }

TEST_CASE("shared memory: a range lies in one segment that is still there", "[shared]") {
  const auto memory = SharedMemory::Make();
  auto first = memory->Allocate(kBytes).value();
  const auto second = memory->Allocate(kBytes).value();
  const std::vector<char> elsewhere(100);

  const auto whole = memory->Find(first->address(), kBytes);
  REQUIRE(whole.has_value());
  CHECK((whole->offset == 0 && whole->bytes == kBytes));
  const auto part = memory->Find(second->address() + 64, 10);
  REQUIRE(part.has_value());
  CHECK((part->segment > whole->segment && part->offset == 64 && part->bytes == 10));
  CHECK_FALSE(memory->Find(first->address() + 1, kBytes).has_value());
  CHECK_FALSE(memory->Find(elsewhere.data(), elsewhere.size()).has_value());

  const std::byte* const gone = first->address();
  first.reset();
  CHECK_FALSE(memory->Find(gone, 10).has_value());
  const auto third = memory->Allocate(kBytes).value();
  CHECK(memory->Find(third->address(), 10)->segment > part->segment);
}

TEST_CASE("shared memory: it is zero, aligned, and of the size that was asked for", "[shared]") {
  const size_t bytes = GENERATE(size_t{0}, size_t{1}, kBytes);
  const auto buffer = SharedMemory::Make()->Allocate(bytes).value();
  CHECK(buffer->size() == bytes);
  CHECK(buffer->host_visible());
  CHECK(reinterpret_cast<uintptr_t>(buffer->address()) % device::Buffer::kAlignment == 0);
  CHECK(std::string(CharsOf(*buffer), bytes) == std::string(bytes, '\0'));
}

TEST_CASE("shared memory: a size that no machine has is refused", "[shared]") {
  CHECK(absl::IsResourceExhausted(SharedMemory::Make()->Allocate(size_t{1} << 60).status()));
}

TEST_CASE("shared memory: a limit of file sizes ends no process, but what is larger is not shared", "[shared]") {
  rlimit before = {};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit low = {.rlim_cur = kBytes, .rlim_max = before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &low) == 0);
  const auto memory = SharedMemory::Make();
  const absl::Status fits = memory->Allocate(kBytes).status();
  const absl::Status larger = memory->Allocate(kBytes + 1).status();
  REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
  CHECK(fits.ok());
  CHECK(larger.code() == absl::StatusCode::kUnavailable);
}

TEST_CASE("host memory: a peer reads what the owner writes, and nothing else", "[shared]") {
  const auto memory = SharedMemory::Make();
  const auto buffer = memory->Allocate(kBytes).value();
  const LinkedMemory linked(memory, nullptr);
  std::strcpy(CharsOf(*buffer) + 1000, "what was written");

  const auto range = linked.zero->RangeFor(1, buffer->address() + 1000, 17);
  REQUIRE(range.has_value());
  const char* const read = linked.one->BytesOf(0, *range);
  REQUIRE(read != nullptr);
  CHECK(std::string(read) == "what was written");
  CHECK(read != CharsOf(*buffer) + 1000);
  // The last byte, and one beyond.
  CHECK(linked.one->BytesOf(0, {range->segment, kBytes - 1, 1}) != nullptr);
  CHECK(linked.one->BytesOf(0, {range->segment, kBytes - 1, 2}) == nullptr);
  CHECK(linked.one->BytesOf(0, {range->segment, ~uint64_t{0}, 2}) == nullptr);
  CHECK(linked.one->BytesOf(0, {range->segment + 1, 0, 1}) == nullptr);
  // Who shares nothing is read by nobody.
  CHECK_FALSE(linked.one->RangeFor(0, buffer->address(), 1).has_value());
  CHECK(linked.zero->BytesOf(1, *range) == nullptr);
}

TEST_CASE("host memory: segments that were made after the peers were linked are not offered", "[shared]") {
  const auto memory = SharedMemory::Make();
  const auto before = memory->Allocate(kBytes).value();
  const LinkedMemory linked(memory, nullptr);
  const auto after = memory->Allocate(kBytes).value();
  CHECK(linked.zero->RangeFor(1, before->address(), 1).has_value());
  CHECK_FALSE(linked.zero->RangeFor(1, after->address(), 1).has_value());
}

TEST_CASE("host memory: once revoked, nothing that was read holds, and of a dead owner everything does", "[shared]") {
  const auto memory = SharedMemory::Make();
  auto buffer = memory->Allocate(kBytes).value();
  LinkedMemory linked(memory, nullptr);
  const SharedRange range = linked.zero->RangeFor(1, buffer->address(), 4).value();
  std::strcpy(CharsOf(*buffer), "yes");
  CHECK(linked.one->Holds(0));
  SECTION("revoked") {
    linked.zero->Revoke();
    CHECK_FALSE(linked.one->Holds(0));
  }
  SECTION("gone") {
    linked.zero.reset();
    buffer.reset();
    CHECK(std::string(linked.one->BytesOf(0, range)) == "yes");
    CHECK(linked.one->Holds(0));
  }
}

TEST_CASE("host memory: a peer cannot write", "[shared]") {
  const auto memory = SharedMemory::Make();
  const auto buffer = memory->Allocate(kBytes).value();
  const std::vector<SharedMemory::Listed> list = memory->List(1);
  REQUIRE(list.size() == 1);
  const int fd = list[0].fd.get();
  CHECK(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
  CHECK(ftruncate(fd, 1) != 0);
  CHECK(pwrite(fd, "x", 1, 0) != 1);
}

// Sends bytes with descriptors, as a peer might.
void Send(int socket, const std::string& bytes, const std::vector<int>& descriptors) {
  alignas(cmsghdr) char control[CMSG_SPACE(32 * sizeof(int))] = {};
  iovec part = {.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!descriptors.empty()) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
    cmsghdr* const entry = CMSG_FIRSTHDR(&header);
    entry->cmsg_level = SOL_SOCKET;
    entry->cmsg_type = SCM_RIGHTS;
    entry->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(entry), descriptors.data(), descriptors.size() * sizeof(int));
  }
  REQUIRE(sendmsg(socket, &header, 0) == static_cast<ssize_t>(bytes.size()));
}

// The message that a rank with one segment passes.
std::string MessageOf(const std::shared_ptr<SharedMemory>& memory) {
  const UnixPair sockets;
  REQUIRE(HostMemory(memory, 2).PassTo(1, sockets.one.get()).ok());
  std::string message(4096, '\0');
  message.resize(static_cast<size_t>(recv(sockets.other.get(), message.data(), message.size(), 0)));
  return message;
}

TEST_CASE("host memory: what is no list of sealed segments is refused", "[shared]") {
  const auto memory = SharedMemory::Make();
  const auto buffer = memory->Allocate(kBytes).value();
  const std::string good = MessageOf(memory);
  const SharedSegment flag = SharedSegment::Make(4096).value();
  const std::vector<SharedMemory::Listed> list = memory->List(1);
  const int segment = list[0].fd.get();
  const Descriptor unsealed(memfd_create("unsealed", MFD_CLOEXEC));
  REQUIRE(ftruncate(unsealed.get(), kBytes) == 0);
  std::string other_size = good;
  other_size[24] = static_cast<char>(other_size[24] + 1);

  struct Case {
    const char* what;
    std::string bytes;
    std::vector<int> descriptors;
    bool ok;
  };
  const Case cases[] = {{"whole", good, {flag.fd.get(), segment}, true},
                        {"without descriptors", good, {}, false},
                        {"a descriptor too few", good, {flag.fd.get()}, false},
                        {"a descriptor too many", good, {flag.fd.get(), segment, segment}, false},
                        {"more descriptors than any list", good, std::vector<int>(20, segment), false},
                        {"another size", other_size, {flag.fd.get(), segment}, false},
                        {"unsealed memory", good, {flag.fd.get(), unsealed.get()}, false},
                        {"no memory", good, {flag.fd.get(), STDIN_FILENO}, false},
                        {"a part", good.substr(0, 20), {flag.fd.get(), segment}, false},
                        {"another text", std::string(good.size(), 'x'), {flag.fd.get(), segment}, false}};
  for (const Case& one : cases) {
    INFO(one.what);
    const UnixPair sockets;
    Send(sockets.one.get(), one.bytes, one.descriptors);
    HostMemory reader(nullptr, 2);
    const absl::Status taken = reader.TakeFrom(0, sockets.other.get());
    INFO(taken.ToString());
    CHECK(taken.code() == (one.ok ? absl::StatusCode::kOk : absl::StatusCode::kUnavailable));
  }
  UnixPair closed;
  closed.one.Close();
  CHECK(HostMemory(nullptr, 2).TakeFrom(0, closed.other.get()).code() == absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace lockstep::worker
