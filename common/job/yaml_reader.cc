#include "common/job/yaml_reader.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
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

std::string Join(const std::string& path, const std::string& key) { return path.empty() ? key : path + "." + key; }

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
    if (field->name() == name) found.push_back(Join(path, name));
    if (IsSection(field)) FindKey(field->message_type(), name, Join(path, field->name()), found);
  }
}

std::string UnknownKey(const Descriptor* section, const std::string& name) {
  std::string hint = DidYouMean(name, FieldNames(section));
  if (hint.empty()) {
    std::vector<std::string> elsewhere;
    FindKey(JobSpec::descriptor(), name, "", elsewhere);
    if (!elsewhere.empty()) hint = absl::StrCat("; did you mean '", absl::StrJoin(elsewhere, "' or '"), "'?");
  }
  if (hint.empty()) hint = absl::StrCat("; known here: ", absl::StrJoin(FieldNames(section), ", "));
  return absl::StrCat("unknown key", hint);
}

// Walks one YAML document. Errors carry the mark of the offending node; `fixed_place` stands for it in --set.
class Reader {
 public:
  Reader(Places& places, std::string fixed_place) : places_(places), fixed_place_(std::move(fixed_place)) {}

  absl::Status Section(const YAML::Node& node, const std::string& path, const YAML::Mark& at, Message* message) {
    if (!node.IsMap()) return Fail(path, at, absl::StrCat("expected a section of keys, found ", KindOf(node)));
    std::set<std::string> seen;
    for (const auto& entry : node) {
      const YAML::Mark mark = entry.first.Mark();
      if (!entry.first.IsScalar()) return Fail(path, mark, "a key must be a plain name");
      const std::string& name = entry.first.Scalar();
      const std::string key = Join(path, name);
      if (!seen.insert(name).second) return Fail(key, mark, "the key is given twice in this section");
      const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(name);
      if (field == nullptr) return Fail(key, mark, UnknownKey(message->GetDescriptor(), name));
      LS_RETURN_IF_ERROR(Value(entry.second, key, mark, field, message));
    }
    return absl::OkStatus();
  }

  absl::Status Value(const YAML::Node& node, const std::string& key, const YAML::Mark& key_mark,
                     const FieldDescriptor* field, Message* message) {
    places_.Set(key, PlaceOf(key_mark));
    const YAML::Mark at = node.Mark().line < 0 ? key_mark : node.Mark();
    if (node.IsNull()) return Fail(key, at, absl::StrCat("has no value; expected ", ExpectedText(field)));
    if (IsSection(field)) {
      return Section(node, key, at, message->GetReflection()->MutableMessage(message, field));
    }
    if (field->is_map()) return Map(node, key, at, field, message);
    if (field->is_repeated()) return List(node, key, at, field, message);
    if (!node.IsScalar()) {
      return Fail(key, at, absl::StrCat("expected ", ExpectedText(field), ", found ", KindOf(node)));
    }
    return Scalar(node, key, at, field, message);
  }

 private:
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
};

// The field that a dotted path names, with its message created on the way. A path of the wrong shape is an error.
absl::StatusOr<std::pair<Message*, const FieldDescriptor*>> Locate(const std::string& path, JobSpec& spec) {
  Message* message = &spec;
  const std::vector<std::string> names = absl::StrSplit(path, '.');
  for (size_t i = 0; i < names.size(); ++i) {
    const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(names[i]);
    if (field == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", names[i], "': ", UnknownKey(message->GetDescriptor(), names[i])));
    }
    if (i + 1 == names.size()) return std::make_pair(message, field);
    if (!IsSection(field)) {
      return absl::InvalidArgumentError(absl::StrCat("'", names[i], "' is ", ExpectedText(field), " and has no keys"));
    }
    message = message->GetReflection()->MutableMessage(message, field);
  }
  return absl::InvalidArgumentError("no key is named");
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

absl::Status Places::Error(const std::string& key, absl::string_view message) const {
  std::string above = key;
  while (true) {
    const auto it = places_.find(above);
    if (it != places_.end()) return absl::InvalidArgumentError(absl::StrCat(it->second, ": ", key, ": ", message));
    const size_t dot = above.rfind('.');
    if (dot == std::string::npos) break;
    above.resize(dot);
  }
  return absl::InvalidArgumentError(absl::StrCat(file_, ": ", key, ": ", message));
}

absl::Status ReadYaml(absl::string_view text, Places& places, JobSpec& spec) {
  if (text.size() > kLargestFile) {
    return absl::InvalidArgumentError(
        absl::StrCat(places.file(), ": has ", text.size(), " bytes; a job file has at most ", kLargestFile));
  }
  LS_ASSIGN_OR_RETURN(const YAML::Node root, Parse(std::string(text), places.file()));
  if (root.IsNull()) return absl::InvalidArgumentError(absl::StrCat(places.file(), ": the file is empty"));
  return Reader(places, "").Section(root, "", root.Mark(), &spec);
}

absl::Status ReadOverride(absl::string_view assignment, Places& places, JobSpec& spec) {
  const std::string place = absl::StrCat("--set ", assignment);
  const size_t equals = assignment.find('=');
  if (equals == absl::string_view::npos || equals == 0) {
    return absl::InvalidArgumentError(absl::StrCat(place, ": expected key=value, such as train.optimizer.lr=1e-3"));
  }
  const std::string path(assignment.substr(0, equals));
  auto target = Locate(path, spec);
  if (!target.ok()) return absl::InvalidArgumentError(absl::StrCat(place, ": ", target.status().message()));
  LS_ASSIGN_OR_RETURN(const YAML::Node value, Parse(std::string(assignment.substr(equals + 1)), place));
  const auto [message, field] = *target;
  if (value.IsNull()) {
    message->GetReflection()->ClearField(message, field);
    places.Erase(path);
    return absl::OkStatus();
  }
  return Reader(places, place).Value(value, path, YAML::Mark::null_mark(), field, message);
}

absl::Status ReadValue(const std::string& yaml, const FieldDescriptor* field, Message* message) {
  Places places("job.proto");
  LS_ASSIGN_OR_RETURN(const YAML::Node value, Parse(yaml, field->full_name()));
  return Reader(places, field->full_name()).Value(value, field->name(), YAML::Mark::null_mark(), field, message);
}

}  // namespace lockstep::job
