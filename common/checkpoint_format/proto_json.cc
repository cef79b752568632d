#include "common/checkpoint_format/proto_json.h"

#include <google/protobuf/util/json_util.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/checkpoint_format/strict_json.h"
#include "common/status/check.h"

namespace lockstep {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using Json = nlohmann::ordered_json;

Json MessageJson(const Message& message);

// JSON has no word for what is not finite; protobuf's reader takes these.
Json NumberJson(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

Json FieldJson(const Message& m, const Reflection& r, const FieldDescriptor* f) {
  switch (f->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return r.GetInt32(m, f);
    case FieldDescriptor::CPPTYPE_INT64:
      return r.GetInt64(m, f);
    case FieldDescriptor::CPPTYPE_UINT32:
      return r.GetUInt32(m, f);
    case FieldDescriptor::CPPTYPE_UINT64:
      return r.GetUInt64(m, f);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return NumberJson(r.GetDouble(m, f));
    case FieldDescriptor::CPPTYPE_BOOL:
      return r.GetBool(m, f);
    case FieldDescriptor::CPPTYPE_STRING:
      return r.GetString(m, f);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return MessageJson(r.GetMessage(m, f));
    default:
      LS_CHECK(false, "files on disk use no enums and no floats");
      return {};
  }
}

Json ElementJson(const Message& m, const Reflection& r, const FieldDescriptor* f, int i) {
  switch (f->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      return r.GetRepeatedInt64(m, f, i);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return NumberJson(r.GetRepeatedDouble(m, f, i));
    case FieldDescriptor::CPPTYPE_STRING:
      return r.GetRepeatedString(m, f, i);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return MessageJson(r.GetRepeatedMessage(m, f, i));
    default:
      LS_CHECK(false, "lists in files on disk hold int64, double, text or messages");
      return {};
  }
}

Json MessageJson(const Message& message) {
  const Reflection& r = *message.GetReflection();
  const auto* descriptor = message.GetDescriptor();
  Json json = Json::object();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    if (!field->is_repeated()) {
      json[field->name()] = FieldJson(message, r, field);
      continue;
    }
    Json list = Json::array();
    for (int k = 0; k < r.FieldSize(message, field); ++k) list.push_back(ElementJson(message, r, field, k));
    json[field->name()] = std::move(list);
  }
  return json;
}

// Protobuf's printer made strings of them.
void MakeNumbers(const google::protobuf::Descriptor& type, Json& json) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* field = type.field(i);
    const auto found = json.find(field->name());
    if (found == json.end()) continue;
    const auto convert = [field](Json& value) {
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && value.is_object()) {
        MakeNumbers(*field->message_type(), value);
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT64) {
        value = std::stoll(value.get<std::string>());
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_UINT64) {
        value = std::stoull(value.get<std::string>());
      }
    };
    if (!found->is_array()) {
      convert(*found);
    } else {
      for (Json& value : *found) convert(value);
    }
  }
}

}  // namespace

std::string ToSparseJson(const Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  LS_CHECK(status.ok(), "a valid message has a JSON form");
  Json json = Json::parse(text);
  MakeNumbers(*message.GetDescriptor(), json);
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string ToJson(const Message& message) {
  return MessageJson(message).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::Status FromJson(absl::string_view json, absl::string_view file, Message* message) {
  if (absl::Status strict = CheckStrictJson(json); !strict.ok()) {
    return absl::DataLossError(absl::StrCat(file, " is malformed: ", strict.message()));
  }
  message->Clear();
  const auto status =
      google::protobuf::util::JsonStringToMessage(google::protobuf::StringPiece(json.data(), json.size()), message);
  if (status.ok()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(file, " is malformed: ", std::string(status.message())));
}

}  // namespace lockstep
