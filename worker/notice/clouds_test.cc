// Each cloud's metadata server as it behaves before, during and after a notice, and as it misbehaves.
#include "worker/notice/clouds.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "worker/notice/fake_metadata_server.h"

namespace lockstep::worker {
namespace {

using Catch::Contains;

constexpr int kNoCancel = -1;
const absl::Time kNow = absl::FromCivil(absl::CivilSecond(2026, 11, 23, 12, 0, 0), absl::UTCTimeZone());
constexpr char kDate[] = "Date: Mon, 23 Nov 2026 12:00:00 GMT\r\n";

std::string Reply(int status, const std::string& body, const std::string& headers = kDate) {
  return FakeMetadataServer::Reply(status, body, headers);
}

// A source of `cloud` that asks this server; it gives no answer much time.
std::unique_ptr<NoticeSource> Source(Cloud cloud, const FakeMetadataServer& server) {
  return MakeCloudSource(cloud, server.endpoint(), {absl::Milliseconds(200), absl::Milliseconds(200)});
}

// What every server may do wrong: none of it is a notice, all of it is an error that says what came.
void CheckMisbehaviour(Cloud cloud) {
  std::string reply;
  FakeMetadataServer server([&](const std::string&) { return reply; });
  const auto source = Source(cloud, server);
  SECTION("it hangs") {
    reply = FakeMetadataServer::kHang;
    CHECK(absl::IsDeadlineExceeded(source->Look(kNoCancel).status()));
  }
  SECTION("it fails") {
    reply = Reply(500, "out of order");
    CHECK_THAT(std::string(source->Look(kNoCancel).status().message()), Contains("500") && Contains("out of order"));
  }
  SECTION("it answers nonsense") {
    reply = Reply(200, "<html>\x01 log in to the hotel's network</html>");
    CHECK_FALSE(source->Look(kNoCancel).ok());
  }
  SECTION("it speaks no HTTP") {
    reply = "220 mail.example.com ESMTP\r\n";
    CHECK(absl::IsDataLoss(source->Look(kNoCancel).status()));
  }
}

// ---- AWS
// --------------------------------------------------------------------------------------------------------

struct Aws {
  Aws() : server([this](const std::string& request) { return Answer(request); }), source(Source(Cloud::kAws, server)) {}

  std::string Answer(const std::string& request) {
    if (absl::StartsWith(request, "PUT /latest/api/token HTTP")) {
      if (!absl::StrContains(request, "X-aws-ec2-metadata-token-ttl-seconds: 21600\r\n")) return Reply(400, "");
      return Reply(200, absl::StrCat("token-", ++tokens));
    }
    if (!absl::StrContains(request, absl::StrCat("X-aws-ec2-metadata-token: token-", valid, "\r\n"))) {
      return Reply(401, "");
    }
    for (const auto& [path, body] : pages) {
      if (absl::StartsWith(request, absl::StrCat("GET /latest/meta-data/", path, " HTTP"))) return Reply(200, body);
    }
    return Reply(404, "");
  }

  int tokens = 0;
  int valid = 1;  // the token that is taken
  std::map<std::string, std::string> pages;
  FakeMetadataServer server;
  std::unique_ptr<NoticeSource> source;
};

TEST_CASE("notice: AWS says nothing before, and gives the time that is left in the notice", "[notice]") {
  Aws aws;
  for (int i = 0; i < 3; ++i) {
    const auto look = aws.source->Look(kNoCancel);
    REQUIRE(look.ok());
    CHECK_FALSE(look->notice.has_value());
    CHECK(look->remark.empty());
  }
  CHECK(aws.tokens == 1);

  aws.pages["spot/instance-action"] = R"({"action": "terminate", "time": "2026-11-23T12:02:00Z"})";

  const auto look = aws.source->Look(kNoCancel);
  REQUIRE(look.ok());
  REQUIRE(look->notice.has_value());
  CHECK(look->notice->grace == absl::Minutes(2));
  CHECK(look->notice->what == "AWS will terminate this instance at 2026-11-23T12:02:00Z");
}

TEST_CASE("notice: AWS takes a token no more, and a fresh one is asked for", "[notice]") {
  Aws aws;
  REQUIRE(aws.source->Look(kNoCancel).ok());

  aws.valid = 2;
  CHECK(aws.source->Look(kNoCancel).ok());
  CHECK(aws.tokens == 2);
  aws.valid = 99;  // none that it gives
  CHECK_THAT(std::string(aws.source->Look(kNoCancel).status().message()), Contains("401"));
}

TEST_CASE("notice: a rebalance recommendation of AWS is a remark, once", "[notice]") {
  Aws aws;
  aws.pages["events/recommendations/rebalance"] = R"({"noticeTime": "2026-11-23T12:00:00Z"})";

  const auto first = aws.source->Look(kNoCancel);
  REQUIRE(first.ok());
  CHECK_FALSE(first->notice.has_value());
  CHECK_THAT(first->remark, Contains("recommends"));
  CHECK(aws.source->Look(kNoCancel)->remark.empty());
}

TEST_CASE("notice: what AWS may say of the end", "[notice]") {
  // A hibernation begins at once.
  const auto now = ReadAwsAction(R"({"action": "hibernate", "time": "2026-11-23T11:59:59Z"})", kNow);
  CHECK(now->grace == kLeastGrace);
  CHECK(ReadAwsAction(R"({"action": "stop", "time": "soon"})", kNow)->grace == absl::ZeroDuration());
  CHECK(ReadAwsAction(R"({"action": "stop", "time": "2026-11-23T12:01:30.5Z", "new": {"a": [1]}})", kNow)->grace ==
        absl::Seconds(90.5));
  for (const char* json : {"", "terminate", "{}", "[]", R"({"action": 7})", R"({"action": ""})", "{\"action\":"}) {
    CAPTURE(json);
    CHECK(absl::IsDataLoss(ReadAwsAction(json, kNow).status()));
  }
}

TEST_CASE("notice: a server of AWS that misbehaves", "[notice]") { CheckMisbehaviour(Cloud::kAws); }

// ---- GCP
// --------------------------------------------------------------------------------------------------------

TEST_CASE("notice: GCP answers FALSE before and TRUE in the last 30 s", "[notice]") {
  std::string body = "FALSE";
  std::string flavor = "Metadata-Flavor: Google\r\n";
  FakeMetadataServer server([&](const std::string& request) {
    if (!absl::StartsWith(request, "GET /computeMetadata/v1/instance/preempted HTTP")) return Reply(404, "");
    if (!absl::StrContains(request, "\r\nMetadata-Flavor: Google\r\n")) return Reply(403, "");
    return Reply(200, body, flavor);
  });
  const auto source = Source(Cloud::kGcp, server);

  REQUIRE(source->Look(kNoCancel).ok());
  CHECK_FALSE(source->Look(kNoCancel)->notice.has_value());
  body = "TRUE\n";
  const auto look = source->Look(kNoCancel);
  REQUIRE(look->notice.has_value());
  // It may have been there since the last look.
  CHECK(look->notice->grace == absl::Seconds(30) - LookEvery(Cloud::kGcp));
  flavor = "";
  CHECK(absl::IsDataLoss(source->Look(kNoCancel).status()));
}

TEST_CASE("notice: a server of GCP that misbehaves", "[notice]") { CheckMisbehaviour(Cloud::kGcp); }

// ---- Azure
// ------------------------------------------------------------------------------------------------------

std::string Event(const std::string& type, const std::string& resource, const std::string& not_before) {
  return absl::StrCat(R"({"EventId": "602d9444", "EventType": ")", type, R"(", "ResourceType": "VirtualMachine", )",
                      R"("Resources": ["other_0", ")", resource, R"("], "EventStatus": "Scheduled", "NotBefore": ")",
                      not_before, R"("})");
}

std::string Events(const std::string& events) {
  return absl::StrCat(R"({"DocumentIncarnation": 1, "Events": [)", events, "]}");
}

TEST_CASE("notice: Azure lists no event before, and the time that is left in one that ends this machine", "[notice]") {
  std::string events;
  FakeMetadataServer server([&](const std::string& request) {
    if (!absl::StrContains(request, "\r\nMetadata: true\r\n")) return Reply(400, "");
    if (absl::StartsWith(request, "GET /metadata/instance/compute/name?api-version=")) return Reply(200, "Set_7");
    if (!absl::StartsWith(request, "GET /metadata/scheduledevents?api-version=2020-07-01 ")) return Reply(404, "");
    return Reply(200, Events(events));
  });
  const auto source = Source(Cloud::kAzure, server);

  CHECK_FALSE(source->Look(kNoCancel)->notice.has_value());
  events = Event("Preempt", "set_8", "Mon, 23 Nov 2026 12:00:30 GMT");
  CHECK_FALSE(source->Look(kNoCancel)->notice.has_value());
  events += ", " + Event("Preempt", "set_7", "Mon, 23 Nov 2026 12:00:30 GMT");
  const auto look = source->Look(kNoCancel);
  REQUIRE(look->notice.has_value());
  CHECK(look->notice->grace == absl::Seconds(30));
  CHECK_THAT(look->notice->what, Contains("Preempt not before Mon, 23 Nov 2026 12:00:30 GMT"));
}

TEST_CASE("notice: which events of Azure end the machine, and when", "[notice]") {
  const auto read = [](const std::string& events) { return ReadAzureEvents(Events(events), "vm", kNow); };

  for (const char* type : {"Preempt", "Terminate", "Reboot", "Redeploy"}) {
    CAPTURE(type);
    CHECK(read(Event(type, "VM", "Mon, 23 Nov 2026 12:01:00 GMT"))->notice->grace == absl::Minutes(1));
  }
  CHECK_FALSE(read(Event("Freeze", "vm", "Mon, 23 Nov 2026 12:01:00 GMT"))->notice.has_value());
  // One that has begun has no time.
  CHECK(read(Event("Reboot", "vm", ""))->notice->grace == kLeastGrace);
  // Of several the first one counts.
  CHECK(read(Event("Reboot", "vm", "Mon, 23 Nov 2026 12:04:00 GMT") + "," +
             Event("Preempt", "vm", "Mon, 23 Nov 2026 12:00:30 GMT"))
            ->notice->grace == absl::Seconds(30));
  // A failing host is announced days before.
  const auto far = read(Event("Redeploy", "vm", "Mon, 30 Nov 2026 12:00:00 GMT"));
  CHECK_FALSE(far->notice.has_value());
  CHECK_THAT(far->remark, Contains("Redeploy not before Mon, 30 Nov"));
  CHECK(absl::IsDataLoss(read(Event("Reboot", "vm", "tomorrow")).status()));
  for (const char* json : {"", "{}", R"({"Events": 7})", "no"}) {
    CAPTURE(json);
    CHECK(absl::IsDataLoss(ReadAzureEvents(json, "vm", kNow).status()));
  }
  const std::string deep(200'000, '[');
  CHECK(absl::IsDataLoss(ReadAzureEvents(deep, "vm", kNow).status()));
  CHECK(absl::IsDataLoss(
      ReadAzureEvents(absl::StrCat("{\"Events\":", deep, std::string(deep.size(), ']'), ", 7}"), "vm", kNow).status()));
  // What is of another kind than it should be concerns nobody.
  const std::string odd_events =
      R"({"Events": [7, null, {}, {"EventType": 7}, {"EventType": "Reboot"}, {"EventType": "Preempt", "Resources": "vm"},
                     {"EventType": "Preempt", "Resources": [7, null]}]})";
  const auto odd = ReadAzureEvents(odd_events, "vm", kNow);
  REQUIRE(odd.ok());
  CHECK_FALSE(odd->notice.has_value());
}

TEST_CASE("notice: an event of Azure that is far away is a remark once, and a notice in the end", "[notice]") {
  std::string date = kDate;
  FakeMetadataServer server([&](const std::string& request) {
    if (absl::StrContains(request, "compute/name")) return Reply(200, "vm");
    return Reply(200, Events(Event("Reboot", "vm", "Mon, 23 Nov 2026 12:15:00 GMT")), date);
  });
  const auto source = Source(Cloud::kAzure, server);

  CHECK_FALSE(source->Look(kNoCancel)->remark.empty());
  CHECK(source->Look(kNoCancel)->remark.empty());
  date = "Date: Mon, 23 Nov 2026 12:10:00 GMT\r\n";
  CHECK(source->Look(kNoCancel)->notice->grace == absl::Minutes(5));
}

TEST_CASE("notice: a server of Azure that misbehaves", "[notice]") { CheckMisbehaviour(Cloud::kAzure); }

// ---- which cloud
// ------------------------------------------------------------------------------------------------

TEST_CASE("notice: the machine's firmware tells its cloud", "[notice]") {
  const char* const base = std::getenv("TEST_TMPDIR");
  const std::string dmi = absl::StrCat(base == nullptr ? "/tmp" : base, "/dmi.", getpid());
  const auto with = [&](const std::string& file, const std::string& text) {
    std::filesystem::remove_all(dmi);
    std::filesystem::create_directories(dmi);
    std::ofstream(dmi + "/" + file) << text << "\n";
    return DetectCloud(dmi);
  };

  CHECK(with("sys_vendor", "Amazon EC2") == Cloud::kAws);
  CHECK(with("bios_version", "4.11.amazon") == Cloud::kAws);
  CHECK(with("sys_vendor", "Google") == Cloud::kGcp);
  CHECK(with("product_name", "Google Compute Engine") == Cloud::kGcp);
  CHECK(with("chassis_asset_tag", "7783-7084-3265-9085-8269-3286-77") == Cloud::kAzure);
  CHECK(with("sys_vendor", "Microsoft Corporation") == Cloud::kNone);
  CHECK(with("sys_vendor", "QEMU") == Cloud::kNone);
  std::filesystem::remove_all(dmi);
  CHECK(DetectCloud(dmi) == Cloud::kNone);
}

}  // namespace
}  // namespace lockstep::worker
