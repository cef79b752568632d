#include "common/graph/metagraph_diff.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status/status_macros.h"
#include "protos/metagraph.pb.h"

namespace lockstep {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::TextFormat;
using google::protobuf::util::MessageDifferencer;
using Path = std::vector<MessageDifferencer::SpecificField>;

constexpr size_t kLongestValue = 200;  // bytes; a longer one is cut

absl::StatusOr<proto::MetaGraph> Parse(absl::string_view bytes) {
  proto::MetaGraph metagraph;
  if (!metagraph.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || !metagraph.has_forward()) {
    return absl::InvalidArgumentError("these bytes are no metagraph");
  }
  return metagraph;
}

// What an element of a list is called: its name, or where it stands.
std::string NameOf(const Message& element, int index) {
  const FieldDescriptor* name = element.GetDescriptor()->FindFieldByName("name");
  if (name == nullptr || name->cpp_type() != FieldDescriptor::CPPTYPE_STRING) return absl::StrCat(index);
  return element.GetReflection()->GetString(element, name);
}

// All values of a field of `message`; "none" where there is none.
std::string Values(const Message& message, const FieldDescriptor* field) {
  const Reflection& reflection = *message.GetReflection();
  if (field->has_presence() && !reflection.HasField(message, field)) return "none";
  std::vector<std::string> values;
  const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
  for (int i = 0; i < count; ++i) {
    std::string value;
    TextFormat::Printer printer;
    printer.SetSingleLineMode(true);
    printer.PrintFieldValueToString(message, field, field->is_repeated() ? i : -1, &value);
    values.push_back(std::move(value));
  }
  std::string text = absl::StrJoin(values, ", ");
  if (text.size() > kLongestValue) text = absl::StrCat(text.substr(0, kLongestValue), "... (", text.size(), " bytes)");
  return field->is_repeated() ? absl::StrCat("[", text, "]") : text;
}

class Lines : public MessageDifferencer::Reporter {
 public:
  Lines(const Message& before, const Message& after) : before_(before), after_(after) {}

  void ReportAdded(const Message&, const Message&, const Path& path) override { Add(path, Kind::kAdded); }
  void ReportDeleted(const Message&, const Message&, const Path& path) override { Add(path, Kind::kDeleted); }
  void ReportModified(const Message&, const Message&, const Path& path) override { Add(path, Kind::kModified); }

  std::vector<std::string> Take() { return std::move(lines_); }

 private:
  enum class Kind : uint8_t { kAdded, kDeleted, kModified };

  // Walks down to what differs.
  void Add(const Path& path, Kind kind) {
    const Message* before = &before_;
    const Message* after = &after_;
    std::string place;
    for (size_t i = 0; i + 1 < path.size(); ++i) {  // both have these
      const FieldDescriptor* field = path[i].field;
      if (field->is_repeated()) {
        before = &before->GetReflection()->GetRepeatedMessage(*before, field, path[i].index);
        after = &after->GetReflection()->GetRepeatedMessage(*after, field, path[i].new_index);
        absl::StrAppend(&place, field->name(), "[", NameOf(*before, path[i].index), "].");
      } else {
        before = &before->GetReflection()->GetMessage(*before, field);
        after = &after->GetReflection()->GetMessage(*after, field);
        absl::StrAppend(&place, field->name(), ".");
      }
    }
    const FieldDescriptor* field = path.back().field;
    if (field == nullptr) return Put(absl::StrCat(place, "field ", path.back().unknown_field_number, ": not known"));
    absl::StrAppend(&place, field->name());
    const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (is_message && kind == Kind::kModified) return;  // what differs in it was told
    if (!is_message || !field->is_repeated()) {
      return Put(absl::StrCat(place, ": ", Values(*before, field), " -> ", Values(*after, field)));
    }
    const Message& parent = kind == Kind::kAdded ? *after : *before;
    const Message& element = parent.GetReflection()->GetRepeatedMessage(parent, field, path.back().index);
    Put(absl::StrCat(place, "[", NameOf(element, path.back().index), "]: only in the ",
                     kind == Kind::kAdded ? "second" : "first"));
  }

  // Of a list of numbers every element is reported: it is told as a whole, once.
  void Put(std::string line) {
    if (lines_.empty() || lines_.back() != line) lines_.push_back(std::move(line));
  }

  const Message& before_;
  const Message& after_;
  std::vector<std::string> lines_;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> DiffMetaGraphs(absl::string_view before, absl::string_view after) {
  LS_ASSIGN_OR_RETURN(const proto::MetaGraph first, Parse(before));
  LS_ASSIGN_OR_RETURN(const proto::MetaGraph second, Parse(after));
  MessageDifferencer differ;
  const auto by_name = [&](const google::protobuf::Descriptor* type, const char* list) {
    const FieldDescriptor* field = type->FindFieldByName(list);
    differ.TreatAsMap(field, field->message_type()->FindFieldByName("name"));
  };
  for (const char* list : {"inputs", "variables", "constants", "nodes"}) by_name(proto::Graph::descriptor(), list);
  for (const char* list : {"signature", "aliases"}) by_name(proto::MetaGraph::descriptor(), list);
  by_name(proto::Node::descriptor(), "attributes");
  Lines lines(first, second);
  differ.ReportDifferencesTo(&lines);
  differ.Compare(first, second);
  return lines.Take();
}

}  // namespace lockstep
