#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <iostream>
#include <string>

#include "common/net/answer_limit.h"
#include "common/net/descriptors.h"
#include "common/net/rpc.h"
#include "common/net/token.h"

namespace lockstep {
namespace {

using Catch::Matchers::Contains;

std::string WriteFile(const std::string& name, const std::string& content, int mode) {
  const char* directory = std::getenv("TEST_TMPDIR");
  const std::string path = std::string(directory == nullptr ? "." : directory) + "/" + name;
  unlink(path.c_str());
  const int fd = open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC, mode);
  REQUIRE(fd >= 0);
  REQUIRE(fchmod(fd, mode) == 0);
  REQUIRE(write(fd, content.data(), content.size()) == static_cast<ssize_t>(content.size()));
  close(fd);
  return path;
}

TEST_CASE("token: only the same bytes are the same token", "[net]") {
  CHECK(SameToken("abc", "abc"));
  CHECK_FALSE(SameToken("abd", "abc"));
  CHECK_FALSE(SameToken("ab", "abc"));
  CHECK_FALSE(SameToken("abcd", "abc"));
  CHECK_FALSE(SameToken("", "abc"));
}

TEST_CASE("token: it is read from a private file without its line end", "[net]") {
  CHECK(ReadCallerToken(WriteFile("good", "secret\n", 0600)).value() == "secret");
  CHECK_THAT(std::string(ReadCallerToken(WriteFile("open", "secret\n", 0644)).status().message()),
             Contains("chmod 600"));
  CHECK(ReadCallerToken(WriteFile("empty", "\n", 0600)).status().code() == absl::StatusCode::kNotFound);
  CHECK(ReadCallerToken("/nowhere/token").status().code() == absl::StatusCode::kNotFound);
}

TEST_CASE("token: a group may read a file of root's, as the volume of a Secret is, and no other", "[net]") {
  if (geteuid() != 0) {
    std::cout << "SKIPPED: files of another user need the right to give files away\n";
    return;
  }
  CHECK(ReadCallerToken(WriteFile("group", "secret\n", 0440)).value() == "secret");
  CHECK(ReadCallerToken(WriteFile("group", "secret\n", 0640)).value() == "secret");
  for (const int mode : {0444, 0460, 0644}) {
    CHECK(absl::IsFailedPrecondition(ReadCallerToken(WriteFile("group", "secret\n", mode)).status()));
  }
  const std::string of_another = WriteFile("group", "secret\n", 0440);
  REQUIRE(chown(of_another.c_str(), 65532, 65532) == 0);
  CHECK(absl::IsFailedPrecondition(ReadCallerToken(of_another).status()));
}

TEST_CASE("token: without a file the environment gives it, without both the ways are named", "[net]") {
  unsetenv(kTokenVariable);
  CHECK_THAT(std::string(ReadCallerToken("").status().message()), Contains("--token-file") && Contains(kTokenVariable));
  setenv(kTokenVariable, "from the environment", 1);
  CHECK(ReadCallerToken("").value() == "from the environment");
}

TEST_CASE("address: host and port are taken apart, anything else is refused with a reason", "[net]") {
  CHECK(ParseHostPort("127.0.0.1:80")->ToString() == "127.0.0.1:80");
  CHECK(ParseHostPort("[::1]:0")->host == "::1");
  CHECK(ParseHostPort("[::1]:5")->ToString() == "[::1]:5");
  CHECK_THAT(std::string(ParseHostPort("chief").status().message()), Contains("no port"));
  CHECK_THAT(std::string(ParseHostPort(":5").status().message()), Contains("no host"));
  CHECK_THAT(std::string(ParseHostPort("::1:5").status().message()), Contains("several colons"));
  CHECK_THAT(std::string(ParseHostPort("chief:70000").status().message()), Contains("65535"));
  CHECK_THAT(std::string(ParseHostPort("chief:x").status().message()), Contains("65535"));
}

TEST_CASE("answer limit: it follows what answers take, and grows while none comes", "[net]") {
  AnswerLimit limit(absl::Seconds(1), absl::Seconds(8));
  CHECK(limit.limit() == absl::Seconds(1));

  limit.Missed();
  limit.Missed();
  CHECK(limit.limit() == absl::Seconds(4));
  limit.Answered(absl::Milliseconds(1500));
  CHECK(limit.limit() == absl::Seconds(6));

  limit.Answered(absl::Milliseconds(1));
  CHECK(limit.limit() == absl::Seconds(3));  // one quick answer does not make a link quick
  for (int i = 0; i < 2; ++i) limit.Answered(absl::Milliseconds(1));
  CHECK(limit.limit() == absl::Seconds(1));
  for (int i = 0; i < 9; ++i) limit.Missed();
  CHECK(limit.limit() == absl::Seconds(8));
}

TEST_CASE("descriptors: the soft limit becomes the hard one", "[net]") {
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit low{before.rlim_max / 2, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &low) == 0);

  CHECK(RaiseDescriptorLimit() == before.rlim_max);

  rlimit after{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &after) == 0);
  CHECK(after.rlim_cur == before.rlim_max);
}

TEST_CASE("status: codes and messages survive both ways", "[net]") {
  const absl::Status status = absl::DataLossError("torn");
  CHECK(FromGrpc(ToGrpc(status)) == status);
  CHECK(FromGrpc(ToGrpc(absl::OkStatus())).ok());
}

}  // namespace
}  // namespace lockstep
