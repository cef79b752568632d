#include "worker/device/host/host_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::device {
namespace {

bool AllZero(const Buffer& buffer) {
  return std::all_of(buffer.address(), buffer.address() + buffer.size(), [](std::byte b) { return b == std::byte{0}; });
}

// Of the pages between the first and the last whole one.
size_t PagesNotTouched(const Buffer& buffer) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(buffer.address()) + page - 1) / page * page;
  const uintptr_t end = reinterpret_cast<uintptr_t>(buffer.address() + buffer.size()) / page * page;
  std::vector<unsigned char> resident((end - begin) / page);
  REQUIRE(mincore(reinterpret_cast<void*>(begin), end - begin, resident.data()) == 0);
  return static_cast<size_t>(
      std::count_if(resident.begin(), resident.end(), [](unsigned char r) { return (r & 1) == 0; }));
}

}  // namespace

TEST_CASE("host memory: buffers of every size are zero, aligned, touched and writable to their ends", "[device]") {
  constexpr size_t kMiB = size_t{1} << 20;
  for (const size_t bytes : {size_t{1}, size_t{4096}, 4 * kMiB - 1, 4 * kMiB, 4 * kMiB + 1, 6 * kMiB, 33 * kMiB + 7}) {
    for (int round = 0; round < 2; ++round) {  // the second one may get memory that the first one wrote to
      absl::StatusOr<std::unique_ptr<Buffer>> buffer = AllocateHostBuffer(bytes);
      REQUIRE(buffer.ok());

      CHECK((*buffer)->size() == bytes);
      CHECK(reinterpret_cast<uintptr_t>((*buffer)->address()) % Buffer::kAlignment == 0);
      CHECK(AllZero(**buffer));
      if (bytes > kMiB) CHECK(PagesNotTouched(**buffer) == 0);
      std::memset((*buffer)->address(), 0xff, bytes);
    }
  }
}

TEST_CASE("host memory: what cannot be had is refused with its size", "[device]") {
  for (const size_t bytes : {std::numeric_limits<size_t>::max(), std::numeric_limits<size_t>::max() - (1u << 20),
                             std::numeric_limits<size_t>::max() / 2}) {
    const absl::Status refused = AllocateHostBuffer(bytes).status();

    CHECK(absl::IsResourceExhausted(refused));
    CHECK_THAT(std::string(refused.message()), Catch::Contains(std::to_string(bytes)));
  }
}

}  // namespace lockstep::device
