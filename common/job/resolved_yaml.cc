#include <string>

#include "absl/strings/str_cat.h"
#include "common/job/job.h"
#include "common/job/scalar.h"

namespace lockstep {
namespace {

void AppendSection(const google::protobuf::Message& message, int depth, std::string& out) {
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const auto* field = message.GetDescriptor()->field(i);
    if (!job::IsSet(message, field)) continue;
    const std::string indent(static_cast<size_t>(depth) * 2, ' ');
    if (job::IsSectionList(field)) {
      absl::StrAppend(&out, indent, field->name(), ":\n");
      for (int item = 0; item < message.GetReflection()->FieldSize(message, field); ++item) {
        std::string section;
        AppendSection(message.GetReflection()->GetRepeatedMessage(message, field, item), depth + 2, section);
        section[indent.size() + 2] = '-';
        out += section;
      }
    } else if (job::IsSection(field)) {
      absl::StrAppend(&out, indent, field->name(), ":\n");
      AppendSection(message.GetReflection()->GetMessage(message, field), depth + 1, out);
    } else {
      absl::StrAppend(&out, indent, field->name(), ": ", job::FieldText(message, field), "\n");
    }
  }
}

}  // namespace

std::string ResolvedYaml(const JobSpec& spec) {
  std::string out;
  AppendSection(spec, 0, out);
  return out;
}

}  // namespace lockstep
