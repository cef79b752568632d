#include "chief/server/address_file.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "common/storage/local/no_room.h"
#include "common/storage/may_pass.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;
namespace fs = std::filesystem;

constexpr char kHere[] = "127.0.0.1:4242";

// A folder below TEST_TMPDIR with room for an address file, removed when dropped.
class Place {
 public:
  Place() {
    const char* base = std::getenv("TEST_TMPDIR");
    root_ = std::string(base != nullptr ? base : "/tmp") + "/address-XXXXXX";
    REQUIRE(mkdtemp(root_.data()) != nullptr);
    fs::create_directory(folder());
  }
  ~Place() { fs::remove_all(root_); }
  std::string folder() const { return root_ + "/logs"; }
  std::string file() const { return folder() + "/run.address"; }
  std::string Content() const {
    std::ifstream in(file(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  int64_t Files() const { return std::distance(fs::directory_iterator(folder()), fs::directory_iterator()); }

 private:
  std::string root_;
};

TEST_CASE("address file: it is replaced in one step, and nothing is left beside it", "[server]") {
  const Place place;

  REQUIRE(WriteAddressFile(place.file(), "127.0.0.1:1").ok());
  REQUIRE(WriteAddressFile(place.file(), kHere).ok());

  CHECK(place.Content() == "127.0.0.1:4242\n");
  CHECK(place.Files() == 1);
}

TEST_CASE("address file: a disk that is full is an outage, which a chief outlasts, and leaves no file", "[server]") {
  const Place place;
  absl::Status written;
  {
    const NoRoom full;
    written = WriteAddressFile(place.file(), kHere);
  }

  CHECK(IsOutage(written));
  CHECK_THAT(std::string(written.message()), Contains(place.file()) && Contains("--address-file"));
  CHECK(place.Files() == 0);
  CHECK(WriteAddressFile(place.file(), kHere).ok());
}

TEST_CASE("address file: a folder that is missing is named", "[server]") {
  const Place place;
  const absl::Status written = WriteAddressFile(place.folder() + "/none/address", kHere);

  CHECK_FALSE(IsOutage(written));
  CHECK_THAT(std::string(written.message()), Contains(place.folder() + "/none"));
}

TEST_CASE("address file: one that is removed or emptied comes back, and one that says something stays", "[server]") {
  const Place place;
  REQUIRE(WriteAddressFile(place.file(), kHere).ok());

  for (const std::string damage : {"removed", "emptied", "removed with its folder"}) {
    CAPTURE(damage);
    if (damage == "removed") fs::remove(place.file());
    if (damage == "emptied") fs::resize_file(place.file(), 0);
    if (damage == "removed with its folder") fs::remove_all(place.folder());
    CHECK(RestoreAddressFile(place.file(), kHere).ok());
    CHECK(place.Content() == "127.0.0.1:4242\n");
  }

  CHECK(RestoreAddressFile(place.file(), "127.0.0.1:1").ok());
  CHECK(place.Content() == "127.0.0.1:4242\n");
}

TEST_CASE("address file: it is removed with what a killed chief left beside it", "[server]") {
  const Place place;
  std::ofstream(place.file() + ".lockstep-new") << "127.0";
  REQUIRE(WriteAddressFile(place.file(), kHere).ok());
  std::ofstream(place.file() + ".lockstep-new") << "127.0";

  RemoveAddressFile(place.file());

  CHECK(place.Files() == 0);
}

}  // namespace
}  // namespace lockstep::chief
