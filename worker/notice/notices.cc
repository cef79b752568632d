#include "worker/notice/notices.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "common/status/status_macros.h"
#include "worker/notice/notice_file.h"
#include "worker/notice/notice_input.h"

namespace lockstep::worker {
namespace {

constexpr absl::Duration kLookAtFileEvery = absl::Seconds(1);

absl::StatusOr<Cloud> ReadCloud(const std::string& word, const std::string& dmi) {
  if (word == "auto") return DetectCloud(dmi);
  for (const Cloud cloud : {Cloud::kNone, Cloud::kAws, Cloud::kGcp, Cloud::kAzure}) {
    if (word == CloudName(cloud)) return cloud;
  }
  return absl::InvalidArgumentError(absl::StrCat("--notice '", word, "': give aws, gcp, azure, auto or none"));
}

std::unique_ptr<NoticeWatch> Watch(std::unique_ptr<NoticeSource> source, absl::Duration every,
                                   const std::function<void(const Notice&)>& on_notice) {
  NoticeWatch::Options options;
  options.source = std::move(source);
  options.every = every;
  options.on_notice = [on_notice](const Notice& notice) {
    LS_LOG(info, "notice: ", notice.what);
    on_notice(notice);
  };
  options.say = [](const std::string& line) { LS_LOG(warn, line); };
  return std::make_unique<NoticeWatch>(std::move(options));
}

}  // namespace

absl::StatusOr<NoticePlan> PlanNotices(const NoticeOptions& options, const std::string& dmi) {
  NoticePlan plan;
  plan.file = options.file;
  plan.input = options.input;
  LS_ASSIGN_OR_RETURN(plan.cloud, ReadCloud(options.cloud, dmi));
  const absl::StatusOr<HttpEndpoint> endpoint =
      ParseEndpoint(options.endpoint.empty() ? kMetadataEndpoint : options.endpoint);
  if (!endpoint.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--notice-endpoint: ", endpoint.status().message()));
  }
  if (!options.endpoint.empty() && options.cloud == CloudName(Cloud::kNone)) {
    return absl::InvalidArgumentError("--notice-endpoint says where a cloud's server is; say which with --notice");
  }
  plan.endpoint = *endpoint;
  return plan;
}

std::vector<std::unique_ptr<NoticeWatch>> WatchNotices(const NoticePlan& plan,
                                                       const std::function<void(const Notice&)>& on_notice) {
  std::vector<std::unique_ptr<NoticeWatch>> watches;
  if (!plan.file.empty()) {
    watches.push_back(Watch(std::make_unique<NoticeFile>(plan.file), kLookAtFileEvery, on_notice));
  }
  if (plan.input) watches.push_back(Watch(std::make_unique<NoticeInput>(STDIN_FILENO), kLookAtFileEvery, on_notice));
  if (plan.cloud != Cloud::kNone) {
    LS_LOG(info, "notices of ", CloudName(plan.cloud), " are looked for at ", plan.endpoint.ToString());
    watches.push_back(Watch(MakeCloudSource(plan.cloud, plan.endpoint), LookEvery(plan.cloud), on_notice));
  }
  return watches;
}

}  // namespace lockstep::worker
