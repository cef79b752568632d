#include "common/storage/local/directory_names.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

using Catch::Contains;

// Gives these names as readdir would, and at their end what `last_error` says; 0: the regular end.
class Entries {
 public:
  Entries(std::vector<std::string> names, int last_error) : names_(std::move(names)), last_error_(last_error) {}

  const dirent* Next() {
    if (at_ < names_.size()) {
      std::strncpy(entry_.d_name, names_[at_++].c_str(), sizeof entry_.d_name - 1);
      return &entry_;
    }
    if (last_error_ != 0) errno = last_error_;
    return nullptr;
  }

 private:
  std::vector<std::string> names_;
  int last_error_;
  size_t at_ = 0;
  dirent entry_{};
};

TEST_CASE("local storage: an error in the middle of a directory is no shorter directory", "[storage]") {
  Entries entries({".", "..", "step-000000010"}, EIO);

  const auto names = CollectNames([&] { return entries.Next(); }, "/job/checkpoints");

  CHECK(names.status().code() == absl::StatusCode::kUnavailable);
  CHECK_THAT(std::string(names.status().message()), Contains("/job/checkpoints"));
}

TEST_CASE("local storage: a directory ends where no error is said, whatever failed before", "[storage]") {
  Entries entries({".", "b", "..", "a"}, 0);
  errno = EIO;

  const auto names = CollectNames([&] { return entries.Next(); }, "/job/checkpoints");

  REQUIRE(names.ok());
  CHECK(*names == std::vector<std::string>{"b", "a"});
}

TEST_CASE("local storage: a directory that is not there is said to be missing", "[storage]") {
  CHECK(ReadDirectoryNames("/no/such/directory").status().code() == absl::StatusCode::kNotFound);
  CHECK(ReadDirectoryNames("/dev/null").status().code() == absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace lockstep
