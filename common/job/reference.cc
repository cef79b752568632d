#include "common/job/reference.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/job/scalar.h"
#include "common/job/units.h"
#include "protos/job.pb.h"

namespace lockstep {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

constexpr char kBegin[] = "<!-- reference: begin -->\n";
constexpr char kEnd[] = "<!-- reference: end -->";

std::string TypeText(const FieldDescriptor* field) {
  if (field->is_map()) return "`{name: text}`";
  std::string text;
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    text = absl::StrCat("`", absl::StrJoin(job::EnumTexts(field->enum_type()), "`, `"), "`");
  } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
    text = "`true`, `false`";
  } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    text = job::KeyOf(field).path() ? "path" : "text";
  } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
    text = "number";
  } else if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
    text = "integer";
  } else if (field->message_type() == job::Amount::descriptor()) {
    text = absl::StrCat("amount in ", absl::StrReplaceAll(job::KeyOf(field).units(), {{" ", ", "}}));
  } else if (field->message_type() == job::WorkerRange::descriptor()) {
    text = "`N` or `\"MIN:MAX\"`";
  } else if (field->message_type() == job::ByteSize::descriptor()) {
    text = "size";
  } else if (field->message_type() == job::GpuMemory::descriptor()) {
    text = "`grow`, number > 0, ≤ 1 or size";
  } else {
    text = "time";
  }
  return field->is_repeated() ? absl::StrCat(text, " or list of them") : text;
}

std::string LimitText(const job::Key& key) {
  std::vector<std::string> limits;
  if (key.has_min() && key.units().empty()) limits.push_back(absl::StrCat("≥ ", job::NumberText(key.min())));
  if (key.has_above()) limits.push_back(absl::StrCat("> ", job::NumberText(key.above())));
  if (key.has_max()) limits.push_back(absl::StrCat("≤ ", job::NumberText(key.max())));
  if (key.has_below()) limits.push_back(absl::StrCat("< ", job::NumberText(key.below())));
  return limits.empty() ? "" : absl::StrCat(" ", absl::StrJoin(limits, ", "));
}

// "name=adam|adamw" -> "name: adam or adamw".
std::string ConditionText(const std::string& condition) {
  return absl::StrReplaceAll(condition, {{"=", ": "}, {"|", " or "}});
}

std::string DefaultText(const job::Key& key) {
  if (key.required()) return "**required**";
  if (!key.default_doc().empty()) return key.default_doc();
  std::string text = key.default_().empty() ? "none" : absl::StrCat("`", key.default_(), "`");
  for (const job::Conditional& conditional : key.default_when()) {
    absl::StrAppend(&text, "; with `", ConditionText(conditional.when()), "` `", conditional.value(), "`");
  }
  return text;
}

// What a change of the key means for a job that goes on from its checkpoints.
std::string ResumeText(job::Effect effect) {
  switch (effect) {
    case job::EFFECT_FREE:
      return "yes";
    case job::EFFECT_DURATION:
      return "unless `schedule` is `cosine`";
    case job::EFFECT_DATA_PATH:
      return "if the data is the same";
    case job::EFFECT_RESHAPE:
      return "unless `transpose` is given";
    default:
      return "no";
  }
}

job::Effect EffectOf(const FieldDescriptor* field, job::Effect inherited) {
  const job::Effect own = job::KeyOf(field).effect();
  return own == job::EFFECT_INHERIT || inherited == job::EFFECT_FREE ? inherited : own;
}

void AppendSectionPage(const Descriptor* type, const std::string& path, job::Effect inherited, std::string& out) {
  std::vector<const FieldDescriptor*> sections;
  std::string rows;
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    if (job::IsSection(field) || job::IsSectionList(field)) {
      sections.push_back(field);
      continue;
    }
    const job::Key& key = job::KeyOf(field);
    const std::string only = key.only().empty() ? "" : absl::StrCat(" Only with `", ConditionText(key.only()), "`.");
    absl::StrAppend(&rows, "| `", field->name(), "` | ", TypeText(field), LimitText(key), " | ", DefaultText(key),
                    " | ", key.doc(), only, " | ", ResumeText(EffectOf(field, inherited)), " |\n");
  }
  if (!rows.empty()) {
    absl::StrAppend(&out, "| key | type | default | meaning | may change on resume |\n|---|---|---|---|---|\n", rows,
                    "\n");
  }
  for (const FieldDescriptor* section : sections) {
    const std::string key = path.empty() ? section->name() : absl::StrCat(path, ".", section->name());
    absl::StrAppend(&out, "### `", key, "`\n\n", job::KeyOf(section).doc());
    if (job::KeyOf(section).section_on_demand()) absl::StrAppend(&out, " Absent unless written.");
    absl::StrAppend(&out, "\n\n");
    AppendSectionPage(section->message_type(), key, EffectOf(section, inherited), out);
  }
}

}  // namespace

std::string JobFileReference() {
  std::string out;
  AppendSectionPage(job::JobSpec::descriptor(), "", job::EFFECT_BITS, out);
  return out;
}

std::string WithJobFileReference(const std::string& page) {
  const size_t begin = page.find(kBegin);
  const size_t end = page.find(kEnd);
  if (begin == std::string::npos || end == std::string::npos || end < begin) return "";
  return absl::StrCat(page.substr(0, begin + sizeof(kBegin) - 1), JobFileReference(), page.substr(end));
}

}  // namespace lockstep
