#include "chief/server/backlog.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace lockstep::chief {
namespace {

TEST_CASE("backlog: what the storage does not take comes again, with what came since, and is dropped beyond a limit",
          "[server]") {
  std::vector<std::string> asked;
  bool works = true;
  Backlog backlog(
      "lines",
      [&](const std::string& text) {
        asked.push_back(text);
        return works ? absl::OkStatus() : absl::UnavailableError("the disk is away");
      },
      /*most_bytes=*/4);

  backlog.Write("");
  backlog.Write("a");
  works = false;
  backlog.Write("b");
  backlog.Write("c");
  CHECK_FALSE(backlog.empty());
  works = true;
  backlog.Write("");
  CHECK(backlog.empty());
  works = false;
  backlog.Write("12345");
  CHECK(backlog.empty());
  backlog.Write("d");

  CHECK(asked == std::vector<std::string>{"a", "b", "bc", "bc", "12345", "d"});
}

}  // namespace
}  // namespace lockstep::chief
