#include "worker/notice/clouds.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/clock/clock.h"
#include "common/status/status_macros.h"

namespace lockstep::worker {
namespace {

constexpr char kTokenLife[] = "21600";  // seconds
constexpr size_t kMaxToken = 4096;
constexpr absl::Duration kGcpNotice = absl::Seconds(30);

std::string Shown(absl::string_view text) { return absl::CHexEscape(text.substr(0, 80)); }

absl::Status Unexpected(absl::string_view what, const HttpReply& reply) {
  return absl::UnavailableError(
      absl::StrCat(what, " was answered with status ", reply.status, " '", Shown(reply.body), "'"));
}

// An object.
absl::StatusOr<nlohmann::json> ParseJson(absl::string_view json) {
  nlohmann::json parsed = nlohmann::json::parse(json.begin(), json.end(), nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) return absl::DataLossError(absl::StrCat("no JSON was answered: '", Shown(json), "'"));
  return parsed;
}

// A field; null when it is missing, or this is no object.
const nlohmann::json& Field(const nlohmann::json& object, const char* name) {
  static const nlohmann::json kNull;
  const auto field = object.is_object() ? object.find(name) : object.end();
  return field == object.end() ? kNull : *field;
}

// The text of a field; empty when it is missing or no text.
std::string Text(const nlohmann::json& object, const char* name) {
  const nlohmann::json& field = Field(object, name);
  return field.is_string() ? field.get<std::string>() : "";
}

// The server's clock: a machine's own may be wrong.
absl::Time ServerTime(const HttpReply& reply) {
  const auto date = reply.headers.find("date");
  absl::Time time;
  const bool told =
      date != reply.headers.end() && absl::ParseTime("%a, %d %b %Y %H:%M:%S GMT", date->second, &time, nullptr);
  return told ? time : SteadyNow();
}

std::string FirstLine(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

class AwsSource : public NoticeSource {
 public:
  AwsSource(const HttpEndpoint& endpoint, const CloudLimits& limits) : endpoint_(endpoint), limits_(limits) {}
  std::string name() const override { return absl::StrCat("the metadata server of AWS at ", endpoint_.ToString()); }

  absl::StatusOr<NoticeLook> Look(int cancel_fd) override {
    LS_ASSIGN_OR_RETURN(const HttpReply action, Get("/latest/meta-data/spot/instance-action", cancel_fd));
    if (action.status == 200) {
      LS_ASSIGN_OR_RETURN(Notice notice, ReadAwsAction(action.body, ServerTime(action)));
      return NoticeLook{std::move(notice), ""};
    }
    if (action.status != 404) return Unexpected("spot/instance-action", action);
    if (rebalance_said_) return NoticeLook();
    LS_ASSIGN_OR_RETURN(const HttpReply advice, Get("/latest/meta-data/events/recommendations/rebalance", cancel_fd));
    if (advice.status == 404) return NoticeLook();
    if (advice.status != 200) return Unexpected("events/recommendations/rebalance", advice);
    rebalance_said_ = true;
    return NoticeLook{std::nullopt,
                      "AWS recommends to move away from this instance, which may be interrupted soon; "
                      "the worker stays until it is"};
  }

 private:
  // With a token, and with a fresh one when the server takes the old one no more.
  absl::StatusOr<HttpReply> Get(const std::string& target, int cancel_fd) {
    for (int attempt = 0;; ++attempt) {
      if (token_.empty()) LS_RETURN_IF_ERROR(FetchToken(cancel_fd));
      LS_ASSIGN_OR_RETURN(HttpReply reply, Exchange(endpoint_, {"GET", target, {{"X-aws-ec2-metadata-token", token_}}},
                                                    limits_.reply, cancel_fd));
      if (reply.status != 401 || attempt > 0) return reply;
      token_.clear();
    }
  }

  absl::Status FetchToken(int cancel_fd) {
    const HttpRequest request = {"PUT", "/latest/api/token", {{"X-aws-ec2-metadata-token-ttl-seconds", kTokenLife}}};
    LS_ASSIGN_OR_RETURN(const HttpReply reply, Exchange(endpoint_, request, limits_.reply, cancel_fd));
    if (reply.status != 200) return Unexpected("the request for a token", reply);
    const absl::string_view token = absl::StripAsciiWhitespace(reply.body);
    const bool plausible = !token.empty() && token.size() <= kMaxToken &&
                           std::all_of(token.begin(), token.end(), [](char c) { return absl::ascii_isgraph(c); });
    if (!plausible) return absl::DataLossError(absl::StrCat("'", Shown(token), "' is no token"));
    token_ = std::string(token);
    return absl::OkStatus();
  }

  const HttpEndpoint endpoint_;
  const CloudLimits limits_;
  std::string token_;
  bool rebalance_said_ = false;
};

class GcpSource : public NoticeSource {
 public:
  GcpSource(const HttpEndpoint& endpoint, const CloudLimits& limits) : endpoint_(endpoint), limits_(limits) {}
  std::string name() const override { return absl::StrCat("the metadata server of GCP at ", endpoint_.ToString()); }

  absl::StatusOr<NoticeLook> Look(int cancel_fd) override {
    const HttpRequest request = {"GET", "/computeMetadata/v1/instance/preempted", {{"Metadata-Flavor", "Google"}}};
    LS_ASSIGN_OR_RETURN(const HttpReply reply, Exchange(endpoint_, request, limits_.reply, cancel_fd));
    if (reply.status != 200) return Unexpected("instance/preempted", reply);
    const auto flavor = reply.headers.find("metadata-flavor");
    if (flavor == reply.headers.end() || !absl::EqualsIgnoreCase(flavor->second, "Google")) {
      return absl::DataLossError("its reply does not say Metadata-Flavor: Google, so it is another server");
    }
    return ReadGcpPreempted(reply.body);
  }

 private:
  const HttpEndpoint endpoint_;
  const CloudLimits limits_;
};

class AzureSource : public NoticeSource {
 public:
  AzureSource(const HttpEndpoint& endpoint, const CloudLimits& limits) : endpoint_(endpoint), limits_(limits) {}
  std::string name() const override { return absl::StrCat("the metadata server of Azure at ", endpoint_.ToString()); }

  absl::StatusOr<NoticeLook> Look(int cancel_fd) override {
    if (machine_.empty()) {
      LS_ASSIGN_OR_RETURN(
          const HttpReply reply,
          Get("/metadata/instance/compute/name?api-version=2021-02-01&format=text", limits_.reply, cancel_fd));
      const absl::string_view machine = absl::StripAsciiWhitespace(reply.body);
      if (reply.status != 200 || machine.empty() || machine.size() > 256) {
        return Unexpected("the machine's name", reply);
      }
      machine_ = std::string(machine);
    }
    LS_ASSIGN_OR_RETURN(const HttpReply reply, Get("/metadata/scheduledevents?api-version=2020-07-01",
                                                   answered_ ? limits_.reply : limits_.first_events, cancel_fd));
    if (reply.status != 200) return Unexpected("scheduledevents", reply);
    answered_ = true;
    LS_ASSIGN_OR_RETURN(NoticeLook look, ReadAzureEvents(reply.body, machine_, ServerTime(reply)));
    if (look.remark == remark_) {
      look.remark.clear();
    } else if (!look.remark.empty()) {
      remark_ = look.remark;
    }
    return look;
  }

 private:
  absl::StatusOr<HttpReply> Get(const std::string& target, absl::Duration limit, int cancel_fd) {
    return Exchange(endpoint_, {"GET", target, {{"Metadata", "true"}}}, limit, cancel_fd);
  }

  const HttpEndpoint endpoint_;
  const CloudLimits limits_;
  std::string machine_;
  std::string remark_;
  bool answered_ = false;
};

bool EndsMachine(absl::string_view type) {
  return type == "Preempt" || type == "Terminate" || type == "Reboot" || type == "Redeploy";
}

bool Concerns(const nlohmann::json& event, const std::string& machine) {
  const nlohmann::json& names = Field(event, "Resources");
  return names.is_array() && std::any_of(names.begin(), names.end(), [&](const nlohmann::json& name) {
           return name.is_string() && absl::EqualsIgnoreCase(name.get_ref<const std::string&>(), machine);
         });
}

}  // namespace

const char* CloudName(Cloud cloud) {
  switch (cloud) {
    case Cloud::kNone:
      return "none";
    case Cloud::kAws:
      return "aws";
    case Cloud::kGcp:
      return "gcp";
    case Cloud::kAzure:
      return "azure";
  }
  return "none";
}

Cloud DetectCloud(const std::string& dmi) {
  const std::string vendor = FirstLine(dmi + "/sys_vendor");
  // Older instances run on Xen, and only their firmware's version tells.
  const bool amazon = vendor == "Amazon EC2" || absl::StrContains(FirstLine(dmi + "/bios_version"), "amazon");
  if (amazon) return Cloud::kAws;
  if (vendor == "Google" || FirstLine(dmi + "/product_name") == "Google Compute Engine") return Cloud::kGcp;
  // Every virtual machine of Hyper-V has the vendor; this tag is Azure's.
  if (FirstLine(dmi + "/chassis_asset_tag") == "7783-7084-3265-9085-8269-3286-77") return Cloud::kAzure;
  return Cloud::kNone;
}

absl::Duration LookEvery(Cloud cloud) { return cloud == Cloud::kAws ? absl::Seconds(5) : absl::Seconds(2); }

std::unique_ptr<NoticeSource> MakeCloudSource(Cloud cloud, const HttpEndpoint& endpoint, const CloudLimits& limits) {
  switch (cloud) {
    case Cloud::kAws:
      return std::make_unique<AwsSource>(endpoint, limits);
    case Cloud::kGcp:
      return std::make_unique<GcpSource>(endpoint, limits);
    case Cloud::kAzure:
      return std::make_unique<AzureSource>(endpoint, limits);
    case Cloud::kNone:
      break;
  }
  return nullptr;
}

absl::StatusOr<Notice> ReadAwsAction(absl::string_view json, absl::Time now) {
  LS_ASSIGN_OR_RETURN(const nlohmann::json parsed, ParseJson(json));
  const std::string action = Text(parsed, "action");
  if (action.empty()) return absl::DataLossError(absl::StrCat("no action in '", Shown(json), "'"));
  const std::string when = Text(parsed, "time");
  absl::Time time;
  Notice notice{absl::StrCat("AWS will ", Shown(action), " this instance"), absl::ZeroDuration()};
  if (!absl::ParseTime(absl::RFC3339_full, when, &time, nullptr)) return notice;
  absl::StrAppend(&notice.what, " at ", Shown(when));
  notice.grace = std::max(time - now, kLeastGrace);
  return notice;
}

absl::StatusOr<NoticeLook> ReadGcpPreempted(absl::string_view text) {
  const absl::string_view word = absl::StripAsciiWhitespace(text);
  if (absl::EqualsIgnoreCase(word, "FALSE")) return NoticeLook();
  if (!absl::EqualsIgnoreCase(word, "TRUE")) {
    return absl::DataLossError(absl::StrCat("neither TRUE nor FALSE was answered: '", Shown(word), "'"));
  }
  return NoticeLook{Notice{"GCP takes this instance away", kGcpNotice - LookEvery(Cloud::kGcp)}, ""};
}

absl::StatusOr<NoticeLook> ReadAzureEvents(absl::string_view json, const std::string& machine, absl::Time now) {
  LS_ASSIGN_OR_RETURN(const nlohmann::json parsed, ParseJson(json));
  const nlohmann::json& events = Field(parsed, "Events");
  if (!events.is_array()) return absl::DataLossError(absl::StrCat("no Events in '", Shown(json), "'"));
  NoticeLook look;
  for (const nlohmann::json& event : events) {
    const std::string type = Text(event, "EventType");
    if (!EndsMachine(type) || !Concerns(event, machine)) continue;
    const std::string when = Text(event, "NotBefore");
    absl::Time time = absl::InfinitePast();  // it has begun
    if (!when.empty() && !absl::ParseTime("%a, %d %b %Y %H:%M:%S GMT", when, &time, nullptr)) {
      return absl::DataLossError(absl::StrCat("'", Shown(when), "' is no time of an event"));
    }
    const std::string what =
        absl::StrCat("Azure announces the event ", type, when.empty() ? ", which has begun" : " not before ", when);
    if (time - now > kActWithin) {
      look.remark = absl::StrCat(what, "; the worker stays until ", absl::FormatDuration(kActWithin), " before it");
      continue;
    }
    const absl::Duration grace = std::max(time - now, kLeastGrace);
    if (!look.notice.has_value() || grace < look.notice->grace) look.notice = Notice{what, grace};
  }
  return look;
}

}  // namespace lockstep::worker
