// What is known of a job's directory before a chief takes it over.
#include "chief/server/job_directory.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace lockstep::chief {
namespace {

using Catch::Contains;
namespace fs = std::filesystem;

// A directory below TEST_TMPDIR, removed when dropped.
class Directory {
 public:
  Directory() {
    const char* base = std::getenv("TEST_TMPDIR");
    path_ = std::string(base != nullptr ? base : "/tmp") + "/place-XXXXXX";
    REQUIRE(mkdtemp(path_.data()) != nullptr);
  }
  ~Directory() { fs::remove_all(path_); }
  std::string In(const std::string& path) const { return path_ + "/" + path; }

 private:
  std::string path_;
};

TEST_CASE("directory: a checkpoint may be where one lies, and where the file system cannot say", "[server]") {
  const Directory place;
  CHECK_FALSE(MayHoldCheckpoint(place.In("nothing")));
  fs::create_directories(place.In("job"));
  std::ofstream(place.In("job/LOCKSTEP")) << "{}";
  CHECK_FALSE(MayHoldCheckpoint(place.In("job")));
  fs::create_directories(place.In("job/checkpoints/notes"));
  CHECK_FALSE(MayHoldCheckpoint(place.In("job")));

  fs::create_directories(place.In("job/checkpoints/step-000000000"));
  fs::create_directories(place.In("cut"));
  fs::create_symlink("checkpoints", place.In("cut/checkpoints"));  // to itself

  CHECK(MayHoldCheckpoint(place.In("job")));
  CHECK(MayHoldCheckpoint(place.In("cut")));
  CHECK(MayHoldCheckpoint(place.In(std::string(300, 'x'))));
}

TEST_CASE("directory: room is asked for where the directory will lie, and nothing is made", "[server]") {
  const Directory place;
  const std::string directory = place.In("new/job");

  const absl::Status fits = CheckRoom(directory, 1);
  const absl::Status beyond = CheckRoom(directory, int64_t{1} << 62);

  CHECK(fits.ok());
  CHECK(beyond.code() == absl::StatusCode::kResourceExhausted);
  CHECK_THAT(std::string(beyond.message()),
             Contains(directory) && Contains("4611686018427387904") && Contains("--dir"));
  CHECK_FALSE(fs::exists(place.In("new")));
}

}  // namespace
}  // namespace lockstep::chief
