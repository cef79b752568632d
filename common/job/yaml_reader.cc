#include "common/job/yaml_reader.h"

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "common/job/scalar.h"
#include "common/job/suggest.h"
#include "common/status/status_macros.h"
#include "yaml-cpp/eventhandler.h"
#include "yaml-cpp/yaml.h"

namespace lockstep::job {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr size_t kLargestFile = 1 << 20;

std::string KeyBelow(const std::string& path, const std::string& key) { return path.empty() ? key : path + "." + key; }

std::string KindOf(const YAML::Node& node) {
  if (node.IsMap()) return "a section of keys";
  if (node.IsSequence()) return "a list";
  if (node.IsNull()) return "nothing";
  return absl::StrCat("'", node.Scalar(), "'");
}

std::vector<std::string> FieldNames(const Descriptor* type) {
  std::vector<std::string> names;
  for (int i = 0; i < type->field_count(); ++i) names.push_back(type->field(i)->name());
  return names;
}

// The paths of all keys called `name` below `type`.
void FindKey(const Descriptor* type, const std::string& name, const std::string& path,
             std::vector<std::string>& found) {
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    if (field->name() == name) found.push_back(KeyBelow(path, name));
    if (IsSection(field)) FindKey(field->message_type(), name, KeyBelow(path, field->name()), found);
  }
}

// What a key that its section does not know may have meant.
struct UnknownKey {
  std::string message;
  std::optional<std::string> meant;  // of the keys of the section
};

UnknownKey ExplainUnknown(const Descriptor* section, const std::string& path, const std::string& name) {
  const std::optional<std::string> meant = Nearest(name, FieldNames(section));
  if (meant.has_value()) return {absl::StrCat("unknown key; did you mean '", *meant, "'?"), meant};
  std::vector<std::string> elsewhere;
  FindKey(JobSpec::descriptor(), name, "", elsewhere);
  if (elsewhere.size() == 1 && elsewhere[0] == name) {
    return {absl::StrCat("unknown key; '", name, "' is a key of the file itself, not of '", path, "'"), {}};
  }
  if (!elsewhere.empty()) {
    return {absl::StrCat("unknown key; did you mean '", absl::StrJoin(elsewhere, "' or '"), "'?"), {}};
  }
  return {absl::StrCat("unknown key; known here: ", absl::StrJoin(FieldNames(section), ", ")), {}};
}

// Walks one YAML document. Errors carry the mark of the offending node; `fixed_place` stands for it in --set.
class Reader {
 public:
  Reader(Places& places, std::string fixed_place, JobMistakes& mistakes)
      : places_(places), fixed_place_(std::move(fixed_place)), mistakes_(mistakes) {}

  void Section(const YAML::Node& node, const std::string& path, const YAML::Mark& at, Message* message) {
    if (!node.IsMap()) {
      return mistakes_.Add(path, Fail(path, at, absl::StrCat("expected a section of keys, found ", KindOf(node))));
    }
    std::set<std::string> seen;
    for (const auto& entry : node) {
      const YAML::Mark mark = entry.first.Mark();
      if (!entry.first.IsScalar()) {
        mistakes_.AddBeside(Fail(path, mark, "a key must be a plain name"));
        continue;
      }
      const std::string& name = entry.first.Scalar();
      const std::string key = KeyBelow(path, name);
      if (!seen.insert(name).second) {
        mistakes_.Add(key, Fail(key, mark, "the key is given twice in this section"));
        continue;
      }
      const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(name);
      if (field != nullptr) {
        Value(entry.second, key, mark, field, message);
        continue;
      }
      const UnknownKey unknown = ExplainUnknown(message->GetDescriptor(), path, name);
      const absl::Status mistake = Fail(key, mark, unknown.message);
      unknown.meant.has_value() ? mistakes_.Add(KeyBelow(path, *unknown.meant), mistake) : mistakes_.AddBeside(mistake);
    }
  }

  void Value(const YAML::Node& node, const std::string& key, const YAML::Mark& key_mark, const FieldDescriptor* field,
             Message* message) {
    places_.Set(key, PlaceOf(key_mark));
    const YAML::Mark at = node.Mark().line < 0 ? key_mark : node.Mark();
    if (node.IsNull()) {
      return mistakes_.Add(key, Fail(key, at, absl::StrCat("has no value; expected ", ExpectedText(field))));
    }
    if (IsSection(field)) {
      Message* const section = message->GetReflection()->MutableMessage(message, field);
      const std::string& plain = KeyOf(field).plain();
      if (plain.empty() || !node.IsScalar()) return Section(node, key, at, section);
      return Value(node, KeyBelow(key, plain), key_mark, section->GetDescriptor()->FindFieldByName(plain), section);
    }
    if (IsSectionList(field)) return SectionList(node, key, at, field, message);
    mistakes_.Add(key, Plain(node, key, at, field, message));
  }

 private:
  // The sections are called "hooks.0", "hooks.1", ...
  void SectionList(const YAML::Node& node, const std::string& key, const YAML::Mark& at, const FieldDescriptor* field,
                   Message* message) {
    message->GetReflection()->ClearField(message, field);
    if (!node.IsSequence()) {
      return mistakes_.Add(key,
                           Fail(key, at, absl::StrCat("expected ", ExpectedText(field), ", found ", KindOf(node))));
    }
    if (node.size() > KeyOf(field).max_items()) {
      return mistakes_.Add(
          key, Fail(key, at,
                    absl::StrCat("has ", node.size(), " entries; at most ", KeyOf(field).max_items(), " are allowed")));
    }
    int index = 0;
    for (const YAML::Node& item : node) {
      const std::string section = KeyBelow(key, absl::StrCat(index++));
      places_.Set(section, PlaceOf(item.Mark()));
      Section(item, section, item.Mark(), message->GetReflection()->AddMessage(message, field));
    }
  }

  // A value that is no section.
  absl::Status Plain(const YAML::Node& node, const std::string& key, const YAML::Mark& at, const FieldDescriptor* field,
                     Message* message) {
    if (field->is_map()) return Map(node, key, at, field, message);
    if (field->is_repeated()) return List(node, key, at, field, message);
    if (!node.IsScalar()) {
      return Fail(key, at, absl::StrCat("expected ", ExpectedText(field), ", found ", KindOf(node)));
    }
    return Scalar(node, key, at, field, message);
  }

  absl::Status List(const YAML::Node& node, const std::string& key, const YAML::Mark& at, const FieldDescriptor* field,
                    Message* message) {
    message->GetReflection()->ClearField(message, field);
    if (node.IsScalar()) return Scalar(node, key, at, field, message);
    if (!node.IsSequence() || node.size() == 0) {
      return Fail(key, at,
                  absl::StrCat("expected ", ExpectedText(field), " or a list of them, found ",
                               node.IsSequence() ? "an empty list" : KindOf(node)));
    }
    const size_t most = KeyOf(field).max_items() == 0 ? 16 : KeyOf(field).max_items();
    if (node.size() > most) {
      return Fail(key, at, absl::StrCat("has ", node.size(), " entries; at most ", most, " are allowed"));
    }
    for (const YAML::Node& item : node) {
      if (!item.IsScalar()) {
        return Fail(key, item.Mark(), absl::StrCat("expected ", ExpectedText(field), ", found ", KindOf(item)));
      }
      LS_RETURN_IF_ERROR(Scalar(item, key, item.Mark(), field, message));
    }
    return absl::OkStatus();
  }

  // Texts by name.
  absl::Status Map(const YAML::Node& node, const std::string& key, const YAML::Mark& at, const FieldDescriptor* field,
                   Message* message) {
    message->GetReflection()->ClearField(message, field);
    if (!node.IsMap()) {
      return Fail(key, at, absl::StrCat("expected ", ExpectedText(field), ", found ", KindOf(node)));
    }
    std::set<std::string> seen;
    for (const auto& entry : node) {
      if (!entry.first.IsScalar() || !entry.second.IsScalar()) {
        return Fail(key, entry.first.Mark(), absl::StrCat("expected ", ExpectedText(field)));
      }
      if (!seen.insert(entry.first.Scalar()).second) {
        return Fail(key, entry.first.Mark(), absl::StrCat("'", entry.first.Scalar(), "' is given twice"));
      }
      Message* item = message->GetReflection()->AddMessage(message, field);
      LS_RETURN_IF_ERROR(Scalar(entry.first, key, entry.first.Mark(), field->message_type()->map_key(), item));
      LS_RETURN_IF_ERROR(Scalar(entry.second, key, entry.second.Mark(), field->message_type()->map_value(), item));
    }
    return absl::OkStatus();
  }

  absl::Status Scalar(const YAML::Node& node, const std::string& key, const YAML::Mark& at,
                      const FieldDescriptor* field, Message* message) {
    // "?" is a plain scalar, "!" a quoted one; anything else was asked for in the file.
    if (node.Tag() != "?" && node.Tag() != "!" && !node.Tag().empty()) {
      return Fail(key, at, absl::StrCat("has the tag ", node.Tag(), "; tags are not used here, remove it"));
    }
    const absl::Status status = SetScalar({.text = node.Scalar(), .quoted = node.Tag() == "!"}, field, message);
    return status.ok() ? status : Fail(key, at, status.message());
  }

  std::string PlaceOf(const YAML::Mark& mark) const {
    if (!fixed_place_.empty()) return fixed_place_;
    return absl::StrCat(places_.file(), ":", mark.line + 1, ":", mark.column + 1);
  }

  absl::Status Fail(const std::string& key, const YAML::Mark& mark, absl::string_view message) const {
    const std::string subject = key.empty() ? "" : absl::StrCat(key, ": ");
    return absl::InvalidArgumentError(absl::StrCat(PlaceOf(mark), ": ", subject, message));
  }

  Places& places_;
  std::string fixed_place_;
  JobMistakes& mistakes_;
};

// The fields that a dotted path names, from the top. A path of the wrong shape is an error.
absl::StatusOr<std::vector<const FieldDescriptor*>> Locate(const std::string& path) {
  const Descriptor* section = JobSpec::descriptor();
  std::vector<const FieldDescriptor*> fields;
  std::string above;
  for (const std::string& name : std::vector<std::string>(absl::StrSplit(path, '.'))) {
    if (section == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", fields.back()->name(), "' is ", ExpectedText(fields.back()), " and has no keys"));
    }
    const FieldDescriptor* field = section->FindFieldByName(name);
    if (field == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("'", name, "': ", ExplainUnknown(section, above, name).message));
    }
    fields.push_back(field);
    above = KeyBelow(above, name);
    section = IsSection(field) ? field->message_type() : nullptr;
  }
  return fields;
}

// Listens to a parser and keeps nothing.
class NoHandler : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

absl::StatusOr<YAML::Node> Parse(const std::string& text, const std::string& place) {
  try {
    // Counted first, and not by loading them all: a stray "," gives empty documents for ever.
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    NoHandler handler;
    if (parser.HandleNextDocument(handler) && parser.HandleNextDocument(handler)) {
      return absl::InvalidArgumentError(absl::StrCat(
          place, ": is not one YAML document: it holds several, or begins with what begins none; one is one job"));
    }
    return YAML::Load(text);
  } catch (const YAML::Exception& e) {
    return absl::InvalidArgumentError(
        absl::StrCat(place, ":", e.mark.line + 1, ":", e.mark.column + 1, ": not YAML: ", e.msg));
  }
}

}  // namespace

void ReadYaml(absl::string_view text, Places& places, JobSpec& spec, JobMistakes& mistakes) {
  if (text.size() > kLargestFile) {
    return mistakes.Add("", absl::InvalidArgumentError(absl::StrCat(places.file(), ": has ", text.size(),
                                                                    " bytes; a job file has at most ", kLargestFile)));
  }
  const absl::StatusOr<YAML::Node> root = Parse(std::string(text), places.file());
  if (!root.ok()) return mistakes.Add("", root.status());
  if (root->IsNull()) {
    return mistakes.Add("", absl::InvalidArgumentError(absl::StrCat(places.file(), ": the file is empty")));
  }
  Reader(places, "", mistakes).Section(*root, "", root->Mark(), &spec);
}

void ReadOverride(absl::string_view assignment, Places& places, JobSpec& spec, JobMistakes& mistakes) {
  const std::string place = absl::StrCat("--set ", assignment);
  const size_t equals = assignment.find('=');
  if (equals == absl::string_view::npos || equals == 0) {
    return mistakes.AddBeside(
        absl::InvalidArgumentError(absl::StrCat(place, ": expected key=value, such as train.optimizer.lr=1e-3")));
  }
  const std::string path(assignment.substr(0, equals));
  const auto fields = Locate(path);
  if (!fields.ok()) {
    return mistakes.AddBeside(absl::InvalidArgumentError(absl::StrCat(place, ": ", fields.status().message())));
  }
  const absl::StatusOr<YAML::Node> value = Parse(std::string(assignment.substr(equals + 1)), place);
  if (!value.ok()) return mistakes.Add(path, value.status());
  Message* message = &spec;
  for (const FieldDescriptor* above : absl::MakeConstSpan(*fields).first(fields->size() - 1)) {
    message = message->GetReflection()->MutableMessage(message, above);
  }
  const FieldDescriptor* field = fields->back();
  if (value->IsNull()) {
    message->GetReflection()->ClearField(message, field);
    places.Erase(path);
    return;
  }
  Reader(places, place, mistakes).Value(*value, path, YAML::Mark::null_mark(), field, message);
}

absl::Status ReadValue(const std::string& yaml, const FieldDescriptor* field, Message* message) {
  Places places("job.proto");
  JobMistakes mistakes;
  LS_ASSIGN_OR_RETURN(const YAML::Node value, Parse(yaml, field->full_name()));
  Reader(places, field->full_name(), mistakes).Value(value, field->name(), YAML::Mark::null_mark(), field, message);
  return mistakes.status();
}

}  // namespace lockstep::job
