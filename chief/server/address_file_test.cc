#include "chief/server/address_file.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace lockstep::chief {
namespace {

namespace fs = std::filesystem;

fs::path NewDirectory() {
  const char* base = std::getenv("TEST_TMPDIR");
  std::string made = std::string(base != nullptr ? base : "/tmp") + "/address-XXXXXX";
  REQUIRE(mkdtemp(made.data()) != nullptr);
  return made;
}

std::string FirstLine(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

size_t Entries(const fs::path& directory) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
}

TEST_CASE("address file: what is there is replaced, links are not followed, and nothing else is left", "[chief]") {
  const fs::path directory = NewDirectory();
  const fs::path target = NewDirectory() / "target";
  std::ofstream(target) << "precious\n";
  fs::create_symlink(target, directory / "address");

  REQUIRE(AddressFile(directory / "address", "10.0.0.1:7").Write().ok());

  CHECK(FirstLine(directory / "address") == "10.0.0.1:7");
  CHECK(FirstLine(target) == "precious");
  CHECK(Entries(directory) == 1);
}

TEST_CASE("address file: one that was removed is written again, one that is there is left alone", "[chief]") {
  const fs::path directory = NewDirectory();
  const AddressFile file(directory / "address", "10.0.0.1:7");
  REQUIRE(file.Write().ok());

  std::ofstream(directory / "address") << "10.0.0.2:8\n";
  CHECK(file.Keep().ok());
  CHECK(FirstLine(directory / "address") == "10.0.0.2:8");
  fs::remove(directory / "address");
  CHECK(file.Keep().ok());

  CHECK(FirstLine(directory / "address") == "10.0.0.1:7");
}

TEST_CASE("address file: a folder that is gone is an error with its path, and no file is wanted without a path",
          "[chief]") {
  const fs::path directory = NewDirectory();

  const absl::Status status = AddressFile(directory / "gone" / "address", "10.0.0.1:7").Write();

  CHECK_FALSE(status.ok());
  CHECK_THAT(std::string(status.message()), Catch::Contains((directory / "gone").string()));
  CHECK(AddressFile("", "10.0.0.1:7").Write().ok());
  CHECK(AddressFile("", "10.0.0.1:7").Keep().ok());
}

}  // namespace
}  // namespace lockstep::chief
