#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/job/extent.h"
#include "common/job/job.h"
#include "common/job/scalar.h"

namespace lockstep {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

class Comparison {
 public:
  Comparison(const JobSpec& before, const JobSpec& after) : before_(before), after_(after) {}

  JobDifference Run() {
    Section(before_, after_, "", job::EFFECT_BITS);
    return std::move(difference_);
  }

 private:
  void Section(const Message& before, const Message& after, const std::string& path, job::Effect inherited) {
    for (int i = 0; i < before.GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor* field = before.GetDescriptor()->field(i);
      const std::string key = path.empty() ? field->name() : absl::StrCat(path, ".", field->name());
      job::Effect effect = job::KeyOf(field).effect();
      // What lies in a free section is free, whatever the same key means elsewhere (data.eval, data.train).
      if (effect == job::EFFECT_INHERIT || inherited == job::EFFECT_FREE) effect = inherited;
      if (job::IsSection(field)) {
        Section(before.GetReflection()->GetMessage(before, field), after.GetReflection()->GetMessage(after, field), key,
                effect);
        continue;
      }
      const std::string old_text = job::IsSet(before, field) ? job::FieldText(before, field) : "";
      const std::string new_text = job::IsSet(after, field) ? job::FieldText(after, field) : "";
      if (old_text == new_text) continue;
      (ChangesBits(effect) ? difference_.refused : difference_.allowed).push_back({key, old_text, new_text});
    }
  }

  bool ChangesBits(job::Effect effect) const {
    switch (effect) {
      case job::EFFECT_FREE:
        return false;
      case job::EFFECT_DURATION:
        return UsesDuration(before_) || UsesDuration(after_);
      case job::EFFECT_DATA_PATH:
        // With both hashes known, a file that moved is the same data; `sha256` itself is compared on its own.
        return !before_.data().train().has_sha256() || !after_.data().train().has_sha256();
      case job::EFFECT_RESHAPE:
        return before_.data().transpose_size() > 0 || after_.data().transpose_size() > 0;
      default:
        return true;
    }
  }

  static bool UsesDuration(const JobSpec& spec) { return ScheduleEndsWithJob(spec.train().schedule().name()); }

  const JobSpec& before_;
  const JobSpec& after_;
  JobDifference difference_;
};

std::string Shown(const std::string& text) { return text.empty() ? "(none)" : text; }

}  // namespace

std::string JobDifference::RefusedText() const {
  return absl::StrJoin(refused, ", ", [](std::string* out, const Setting& setting) {
    absl::StrAppend(out, setting.key, ": ", Shown(setting.before), " -> ", Shown(setting.after));
  });
}

JobDifference CompareJobs(const JobSpec& before, const JobSpec& after) { return Comparison(before, after).Run(); }

}  // namespace lockstep
