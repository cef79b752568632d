#include "worker/notice/notices.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/sync/queue.h"
#include "worker/notice/fake_metadata_server.h"
#include "worker/notice/notice_file.h"
#include "worker/notice/notice_input.h"

namespace lockstep::worker {
namespace {

using Catch::Contains;

constexpr absl::Duration kNever = absl::Seconds(60);
constexpr int kUncancelled = -1;

std::string TempPath(const std::string& name) {
  const char* const base = std::getenv("TEST_TMPDIR");
  return absl::StrCat(base == nullptr ? "/tmp" : base, "/", name, ".", getpid());
}

TEST_CASE("notices: options are read, and what is wrong is named", "[notice]") {
  CHECK(PlanNotices({})->cloud == Cloud::kNone);
  CHECK(PlanNotices({.cloud = "aws"})->endpoint.ToString() == kMetadataEndpoint);
  CHECK(PlanNotices({.cloud = "azure", .endpoint = "http://127.0.0.1:81"})->endpoint.port == 81);
  CHECK(PlanNotices({.cloud = "auto"}, "/no/such/folder")->cloud == Cloud::kNone);

  const auto fault = [](const NoticeOptions& options) { return std::string(PlanNotices(options).status().message()); };
  CHECK_THAT(fault({.cloud = "ibm"}), Contains("--notice 'ibm'") && Contains("aws, gcp, azure, auto or none"));
  CHECK_THAT(fault({.cloud = "aws", .endpoint = "metadata"}), Contains("--notice-endpoint") && Contains("metadata"));
  CHECK_THAT(fault({.endpoint = "http://127.0.0.1:81"}), Contains("say which with --notice"));
}

TEST_CASE("notices: the file that appears is the notice, with the time that stands in it", "[notice]") {
  const std::string path = TempPath("notice");
  NoticeFile source(path);
  CHECK_FALSE(source.Look(kUncancelled)->notice.has_value());

  std::ofstream(path).flush();
  CHECK(source.Look(kUncancelled)->notice->grace == absl::ZeroDuration());
  std::ofstream(path) << "90s\n";
  CHECK(source.Look(kUncancelled)->notice->grace == absl::Seconds(90));
  std::ofstream(path) << "the machine goes down\n";
  CHECK(source.Look(kUncancelled)->notice->grace == absl::ZeroDuration());
  CHECK_THAT(source.Look(kUncancelled)->notice->what, Contains(path));
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  CHECK(source.Look(kUncancelled)->notice.has_value());
  std::filesystem::remove(path);
  CHECK_FALSE(source.Look(kUncancelled)->notice.has_value());
}

TEST_CASE("notices: an input that ends is the notice, whatever came on it before", "[notice]") {
  int input[2], cancel[2];
  REQUIRE(pipe(input) == 0);
  REQUIRE(pipe(cancel) == 0);
  NoticeInput source(input[0]);
  REQUIRE(write(input[1], "text", 4) == 4);
  REQUIRE(write(cancel[1], "x", 1) == 1);
  CHECK_FALSE(source.Look(cancel[0])->notice.has_value());  // the watch ends

  char byte = 0;
  REQUIRE(read(cancel[0], &byte, 1) == 1);
  close(input[1]);
  CHECK_THAT(source.Look(cancel[0])->notice->what, Contains("the standard input has ended"));
  for (const int fd : {input[0], cancel[0], cancel[1]}) close(fd);
}

TEST_CASE("notices: a file and a server are watched side by side", "[notice]") {
  const std::string path = TempPath("both");
  FakeMetadataServer server([](const std::string&) { return FakeMetadataServer::kHang; });
  BoundedQueue<Notice> notices(10);
  const auto watches = WatchNotices(*PlanNotices({"gcp", server.endpoint().ToString(), path}),
                                    [&](const Notice& notice) { notices.TryPush(notice); });
  REQUIRE(watches.size() == 2);

  std::ofstream(path) << "12s";

  const auto notice = notices.Pop(kNever);
  REQUIRE(notice.has_value());
  CHECK_THAT(notice->what, Contains(path));
  std::filesystem::remove(path);
}

TEST_CASE("notices: without options nothing is watched", "[notice]") {
  CHECK(WatchNotices(*PlanNotices({}), [](const Notice&) {}).empty());
}

}  // namespace
}  // namespace lockstep::worker
