#include "common/job/scalar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/job/extent.h"
#include "common/job/suggest.h"
#include "common/job/units.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"

namespace lockstep::job {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// "ON_NAN_SKIP_STEP" of enum OnNan -> "skip_step": values carry their enum's name, as protobuf wants it.
std::string EnumText(const google::protobuf::EnumValueDescriptor* value) {
  std::string prefix;
  for (const char c : value->type()->name()) {
    if (absl::ascii_isupper(c) && !prefix.empty()) prefix += '_';
    prefix += absl::ascii_toupper(c);
  }
  prefix += '_';
  LS_CHECK(absl::StartsWith(value->name(), prefix), "enum values are named after their enum");
  return absl::AsciiStrToLower(value->name().substr(prefix.size()));
}

// Holds one number against the limits of its key.
absl::Status CheckLimits(const Key& key, double value, absl::string_view shown) {
  if (key.has_min() && value < key.min()) {
    return absl::InvalidArgumentError(absl::StrCat("must be at least ", NumberText(key.min()), ", found ", shown));
  }
  if (key.has_max() && value > key.max()) {
    return absl::InvalidArgumentError(absl::StrCat("must be at most ", NumberText(key.max()), ", found ", shown));
  }
  if (key.has_above() && value <= key.above()) {
    return absl::InvalidArgumentError(absl::StrCat("must be above ", NumberText(key.above()), ", found ", shown));
  }
  if (key.has_below() && value >= key.below()) {
    return absl::InvalidArgumentError(absl::StrCat("must be below ", NumberText(key.below()), ", found ", shown));
  }
  return absl::OkStatus();
}

absl::string_view UnitOf(const Amount& amount) {
  switch (amount.amount_case()) {
    case Amount::kMilliEpochs:
      return "ep";
    case Amount::kSteps:
      return "steps";
    case Amount::kSamples:
      return "samples";
    case Amount::kAutomatic:
      return "auto";
    default:
      return "time";
  }
}

absl::Status CheckAmount(const Key& key, const Amount& amount, absl::string_view shown) {
  const std::vector<std::string> units = absl::StrSplit(key.units(), ' ');
  if (!absl::StrContains(absl::StrCat(" ", key.units(), " "), absl::StrCat(" ", UnitOf(amount), " "))) {
    return absl::InvalidArgumentError(absl::StrCat("is given in ", absl::StrJoin(units, ", "), ", found ", shown));
  }
  if (amount.automatic()) return absl::OkStatus();
  const double value = amount.has_time()
                           ? absl::ToDoubleSeconds(ToDuration(amount.time()))
                           : static_cast<double>(amount.milli_epochs() + amount.steps() + amount.samples());
  if (value <= 0 && !key.has_min()) {
    return absl::InvalidArgumentError(absl::StrCat("must be more than nothing, found ", shown));
  }
  return absl::OkStatus();
}

absl::Status SetValueMessage(absl::string_view text, const FieldDescriptor* field, Message* message) {
  const Key& key = KeyOf(field);
  Message* value = message->GetReflection()->MutableMessage(message, field);
  if (field->message_type() == Amount::descriptor()) {
    LS_ASSIGN_OR_RETURN(const Amount amount, ParseAmount(text));
    value->CopyFrom(amount);
    return CheckAmount(key, amount, text);
  }
  if (field->message_type() == WorkerRange::descriptor()) {
    LS_ASSIGN_OR_RETURN(const WorkerRange range, ParseWorkerRange(text));
    value->CopyFrom(range);
    LS_RETURN_IF_ERROR(CheckLimits(key, static_cast<double>(range.min()), text));
    return CheckLimits(key, static_cast<double>(range.max()), text);
  }
  if (field->message_type() == ByteSize::descriptor()) {
    LS_ASSIGN_OR_RETURN(const ByteSize size, ParseByteSize(text));
    value->CopyFrom(size);
    return CheckLimits(key, static_cast<double>(size.bytes()), text);
  }
  if (field->message_type() == GpuMemory::descriptor()) {
    LS_ASSIGN_OR_RETURN(const GpuMemory memory, ParseGpuMemory(text));
    value->CopyFrom(memory);
    return absl::OkStatus();
  }
  LS_ASSIGN_OR_RETURN(const absl::Duration time, ParseTime(text));
  value->CopyFrom(FromDuration(time));
  return CheckLimits(key, absl::ToDoubleSeconds(time), text);
}

absl::Status SetEnum(const ScalarText& scalar, const FieldDescriptor* field, Message* message) {
  for (int i = 0; i < field->enum_type()->value_count(); ++i) {
    const auto* value = field->enum_type()->value(i);
    if (value->number() != 0 && EnumText(value) == scalar.text) {
      message->GetReflection()->SetEnum(message, field, value);
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError(absl::StrCat("expected ", ExpectedText(field), ", found '", scalar.text, "'",
                                                 DidYouMean(scalar.text, EnumTexts(field->enum_type()))));
}

absl::Status SetNumber(const ScalarText& scalar, const FieldDescriptor* field, Message* message) {
  const Reflection* reflection = message->GetReflection();
  const Key& key = KeyOf(field);
  const bool list = field->is_repeated();
  double value = 0;
  bool parsed = false;
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
    parsed = absl::SimpleAtod(scalar.text, &value) && std::isfinite(value);
    if (parsed && list) reflection->AddDouble(message, field, value);
    if (parsed && !list) reflection->SetDouble(message, field, value);
  } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT64) {
    int64_t integer = 0;
    parsed = absl::SimpleAtoi(scalar.text, &integer);
    if (parsed && list) reflection->AddInt64(message, field, integer);
    if (parsed && !list) reflection->SetInt64(message, field, integer);
    value = static_cast<double>(integer);
  } else {
    LS_CHECK(field->cpp_type() == FieldDescriptor::CPPTYPE_UINT64 && !list, "a type that job files have");
    uint64_t integer = 0;
    parsed = absl::SimpleAtoi(scalar.text, &integer);
    if (parsed) reflection->SetUInt64(message, field, integer);
    value = static_cast<double>(integer);
  }
  if (!parsed) {
    return absl::InvalidArgumentError(absl::StrCat("expected ", ExpectedText(field), ", found '", scalar.text, "'"));
  }
  return CheckLimits(key, value, scalar.text);
}

bool LooksPlain(const std::string& text) {
  static constexpr absl::string_view kWords[] = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"};
  for (const absl::string_view word : kWords) {
    if (absl::EqualsIgnoreCase(word, text)) return false;
  }
  if (text.empty() || !(absl::ascii_isalpha(text[0]) || text[0] == '/')) return false;
  for (const char c : text) {
    if (!absl::ascii_isalnum(c) && !absl::StrContains("_-./", absl::string_view(&c, 1))) return false;
  }
  return true;
}

std::string QuotedText(const std::string& text) {
  if (LooksPlain(text)) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      absl::StrAppend(&out, "\\", absl::string_view(&c, 1));
    } else if (absl::ascii_iscntrl(c)) {
      absl::StrAppend(&out, "\\x", absl::Hex(static_cast<uint8_t>(c), absl::kZeroPad2));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string ValueMessageText(const Message& value) {
  if (value.GetDescriptor() == Amount::descriptor()) return AmountText(static_cast<const Amount&>(value));
  if (value.GetDescriptor() == WorkerRange::descriptor()) {
    return absl::StrCat("\"", WorkerRangeText(static_cast<const WorkerRange&>(value)), "\"");
  }
  if (value.GetDescriptor() == ByteSize::descriptor()) return ByteSizeText(static_cast<const ByteSize&>(value));
  if (value.GetDescriptor() == GpuMemory::descriptor()) return GpuMemoryText(static_cast<const GpuMemory&>(value));
  return TimeText(ToDuration(static_cast<const google::protobuf::Duration&>(value)));
}

// Sorted by key.
std::string MapText(const Message& message, const FieldDescriptor* field) {
  std::vector<std::string> items;
  const Reflection* reflection = message.GetReflection();
  const Descriptor* entry = field->message_type();
  for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
    const Message& item = reflection->GetRepeatedMessage(message, field, i);
    items.push_back(absl::StrCat(QuotedText(item.GetReflection()->GetString(item, entry->map_key())), ": ",
                                 QuotedText(item.GetReflection()->GetString(item, entry->map_value()))));
  }
  std::sort(items.begin(), items.end());
  return absl::StrCat("{", absl::StrJoin(items, ", "), "}");
}

std::string ListText(const Message& message, const FieldDescriptor* field) {
  std::vector<std::string> items;
  const Reflection* reflection = message.GetReflection();
  for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      items.push_back(QuotedText(reflection->GetRepeatedString(message, field, i)));
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
      items.push_back(NumberText(reflection->GetRepeatedDouble(message, field, i)));
    } else {
      items.push_back(absl::StrCat(reflection->GetRepeatedInt64(message, field, i)));
    }
  }
  return absl::StrCat("[", absl::StrJoin(items, ", "), "]");
}

// Of sections that hold no sections.
std::string SectionListText(const Message& message, const FieldDescriptor* field) {
  std::vector<std::string> items;
  for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i) {
    const Message& item = message.GetReflection()->GetRepeatedMessage(message, field, i);
    std::vector<std::string> keys;
    for (int k = 0; k < item.GetDescriptor()->field_count(); ++k) {
      const FieldDescriptor* key = item.GetDescriptor()->field(k);
      if (IsSet(item, key)) keys.push_back(absl::StrCat(key->name(), ": ", FieldText(item, key)));
    }
    items.push_back(absl::StrCat("{", absl::StrJoin(keys, ", "), "}"));
  }
  return absl::StrCat("[", absl::StrJoin(items, ", "), "]");
}

}  // namespace

bool IsValueMessage(const Descriptor* type) {
  return type == Amount::descriptor() || type == WorkerRange::descriptor() || type == ByteSize::descriptor() ||
         type == GpuMemory::descriptor() || type == google::protobuf::Duration::descriptor();
}

bool IsSection(const FieldDescriptor* field) {
  return field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !IsValueMessage(field->message_type()) &&
         !field->is_map() && !field->is_repeated();
}

bool IsSectionList(const FieldDescriptor* field) {
  return field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !IsValueMessage(field->message_type()) &&
         !field->is_map() && field->is_repeated();
}

const Key& KeyOf(const FieldDescriptor* field) { return field->options().GetExtension(key); }

std::vector<std::string> EnumTexts(const EnumDescriptor* type) {
  std::vector<std::string> texts;
  for (int i = 0; i < type->value_count(); ++i) {
    if (type->value(i)->number() != 0) texts.push_back(EnumText(type->value(i)));
  }
  return texts;
}

std::string ExpectedText(const FieldDescriptor* field) {
  if (field->is_map()) return "names with a text each, such as {a: b}";
  if (IsSectionList(field)) return "a list of sections";
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return "a number";
    case FieldDescriptor::CPPTYPE_INT64:
      return "an integer";
    case FieldDescriptor::CPPTYPE_UINT64:
      return "an integer from 0 to 2^64 - 1";
    case FieldDescriptor::CPPTYPE_STRING:
      return "a text";
    case FieldDescriptor::CPPTYPE_ENUM:
      return absl::StrCat("one of ", absl::StrJoin(EnumTexts(field->enum_type()), ", "));
    default:
      break;
  }
  if (field->message_type() == Amount::descriptor()) return "an amount such as 10ep, 500steps, 60000samples or 2h";
  if (field->message_type() == WorkerRange::descriptor()) return "a number of workers such as 4 or \"1:8\"";
  if (field->message_type() == ByteSize::descriptor()) return "a size such as 20GiB";
  if (field->message_type() == GpuMemory::descriptor()) return "grow, a fraction such as 0.4, or a size such as 8GiB";
  if (field->message_type() == google::protobuf::Duration::descriptor()) return "a time such as 10m";
  return "a section of keys";
}

absl::Status SetScalar(const ScalarText& scalar, const FieldDescriptor* field, Message* message) {
  const Reflection* reflection = message->GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      if (scalar.text.find('\0') != std::string::npos) return absl::InvalidArgumentError("holds a zero byte");
      if (field->is_repeated()) {
        reflection->AddString(message, field, scalar.text);
      } else {
        reflection->SetString(message, field, scalar.text);
      }
      return absl::OkStatus();
    case FieldDescriptor::CPPTYPE_ENUM:
      return SetEnum(scalar, field, message);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return SetValueMessage(scalar.text, field, message);
    default:
      break;
  }
  if (scalar.quoted) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected ", ExpectedText(field), ", found the text \"", scalar.text, "\"; remove the quotes"));
  }
  if (field->cpp_type() != FieldDescriptor::CPPTYPE_BOOL) return SetNumber(scalar, field, message);
  if (scalar.text != "true" && scalar.text != "false") {
    return absl::InvalidArgumentError(absl::StrCat("expected true or false, found '", scalar.text, "'"));
  }
  reflection->SetBool(message, field, scalar.text == "true");
  return absl::OkStatus();
}

std::string FieldText(const Message& message, const FieldDescriptor* field) {
  LS_CHECK(!IsSection(field), "a section has no text of its own");
  const Reflection* reflection = message.GetReflection();
  if (field->is_map()) return MapText(message, field);
  if (IsSectionList(field)) return SectionListText(message, field);
  if (field->is_repeated()) return ListText(message, field);
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection->GetBool(message, field) ? "true" : "false";
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return NumberText(reflection->GetDouble(message, field));
    case FieldDescriptor::CPPTYPE_INT64:
      return absl::StrCat(reflection->GetInt64(message, field));
    case FieldDescriptor::CPPTYPE_UINT64:
      return absl::StrCat(reflection->GetUInt64(message, field));
    case FieldDescriptor::CPPTYPE_STRING:
      return QuotedText(reflection->GetString(message, field));
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumText(reflection->GetEnum(message, field));
    default:
      return ValueMessageText(reflection->GetMessage(message, field));
  }
}

bool IsHash(absl::string_view text) {
  const auto is_digit = [](char c) { return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f'); };
  return text.size() == 64 && std::all_of(text.begin(), text.end(), is_digit);
}

bool IsSet(const Message& message, const FieldDescriptor* field) {
  return field->is_repeated() ? message.GetReflection()->FieldSize(message, field) > 0
                              : message.GetReflection()->HasField(message, field);
}

}  // namespace lockstep::job
