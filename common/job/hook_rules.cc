#include "common/job/hook_rules.h"

#include <filesystem>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace lockstep::job {
namespace {

class HookRules {
 public:
  HookRules(const Places& places, const JobSpec& spec, JobMistakes& mistakes)
      : places_(places), spec_(spec), mistakes_(mistakes) {}

  void Check(int index) {
    const Hook& hook = spec_.hooks(index);
    section_ = absl::StrCat("hooks.", index);
    if (mistakes_.IsInvalid(section_)) return;
    Name(hook.name(), index);
    Condition(hook);
    const bool observes = hook.statistics_size() > 0 || hook.histograms_size() > 0;
    if (!hook.stop() && hook.run().empty() && !observes && !hook.has_profile()) {
      Error("", "does nothing; give it stop, run, statistics, histograms or profile");
    }
    Observation(hook, observes);
    if (hook.run_size() > 0 && hook.run(0).empty()) Error("run", "begins with an empty text; name a command");
    if (hook.stop() && hook.on() == Hook::ON_END) Error("stop", "the job has ended then; remove the key");
  }

 private:
  void Error(const std::string& key, const std::string& message) {
    const std::string path = key.empty() ? section_ : absl::StrCat(section_, ".", key);
    if (!mistakes_.HasInvalidPart(path)) mistakes_.Add(path, places_.Error(path, message));
  }

  void Name(const std::string& name, int index) {
    if (mistakes_.IsInvalid(absl::StrCat(section_, ".name"))) return;
    bool good = !name.empty() && name.size() <= 64 && absl::ascii_isalnum(name[0]);
    for (const char c : name) good = good && (absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.');
    if (!good) {
      return Error("name", absl::StrCat("expected letters, digits, '-', '_' and '.', at most 64, beginning with a "
                                        "letter or digit, found '",
                                        name, "'"));
    }
    const auto [first, is_new] = names_.try_emplace(name, index);
    if (is_new) return;
    Error("name", absl::StrCat("'", name, "' is the name of hooks.", first->second, " as well (",
                               places_.Of(absl::StrCat("hooks.", first->second)), "); give it another"));
  }

  void Observation(const Hook& hook, bool observes) {
    const bool timed = hook.has_every() && hook.every().has_time();
    if (mistakes_.HasInvalidPart(section_)) return;
    if (hook.has_profile() && (timed || hook.on() == Hook::ON_END)) {
      Error("profile",
            absl::StrCat("is of the steps behind an instant that workers know; give step, every in ep, steps ",
                         "or samples, or on: evaluation, checkpoint or nan"));
    }
    if (!observes || !timed) return;
    Error(hook.statistics_size() > 0 ? "statistics" : "histograms",
          "are of the state after a step; give step, every in ep, steps or samples, or on");
  }

  void Condition(const Hook& hook) {
    for (const char* key : {"step", "every", "on"}) {
      if (mistakes_.IsInvalid(absl::StrCat(section_, ".", key))) return;
    }
    const int given = (hook.has_step() ? 1 : 0) + (hook.has_every() ? 1 : 0) + (hook.has_on() ? 1 : 0);
    if (given == 0) return Error("", "says not when; give it step, every or on");
    if (given > 1) return Error("", "has several of step, every and on; give it one, or make it several hooks");
    if (hook.on() == Hook::ON_EVALUATION && !spec_.data().has_eval() && !mistakes_.HasInvalidPart("data")) {
      Error("on", "there are no evaluations; give data.eval, or another condition");
    }
  }

  const Places& places_;
  const JobSpec& spec_;
  JobMistakes& mistakes_;
  std::string section_;
  std::map<std::string, int> names_;
};

}  // namespace

void ResolveHooks(const std::string& directory, JobSpec& spec) {
  for (Hook& hook : *spec.mutable_hooks()) {
    if (hook.run_size() == 0 || !absl::StrContains(hook.run(0), '/')) continue;
    hook.set_run(0, (std::filesystem::path(directory) / hook.run(0)).lexically_normal().string());
  }
}

void ValidateHooks(const Places& places, const JobSpec& spec, JobMistakes& mistakes) {
  HookRules rules(places, spec, mistakes);
  for (int i = 0; i < spec.hooks_size(); ++i) rules.Check(i);
}

}  // namespace lockstep::job
