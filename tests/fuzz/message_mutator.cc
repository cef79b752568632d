#include "tests/fuzz/message_mutator.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/fuzz/mutate.h"

namespace lockstep::fuzz {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr size_t kLongestText = 4096;

// `message` and all that it holds.
template <typename M>
void Collect(M& message, std::vector<M*>& all) {
  all.push_back(&message);
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const int size = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < size; ++i) {
      if constexpr (std::is_const_v<M>) {
        Collect(field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i)
                                     : reflection.GetMessage(message, field),
                all);
      } else {
        Collect(field->is_repeated() ? *reflection.MutableRepeatedMessage(&message, field, i)
                                     : *reflection.MutableMessage(&message, field),
                all);
      }
    }
  }
}

// One of `all` that is a `type`; null: none is.
template <typename M>
const Message* Any(const std::vector<M*>& all, const Descriptor* type, Dice& dice) {
  std::vector<const Message*> found;
  for (const Message* message : all) {
    if (message->GetDescriptor() == type) found.push_back(message);
  }
  return found.empty() ? nullptr : found[dice.Below(found.size())];
}

// A field that is set in some message of `all` and holds what `field` can hold; null: none is.
std::pair<const Message*, const FieldDescriptor*> AnyLike(const std::vector<Message*>& all,
                                                          const FieldDescriptor* field, Dice& dice) {
  // A few tries: not all messages have one.
  for (int i = 0; i < 8; ++i) {
    const Message* const message = all[dice.Below(all.size())];
    std::vector<const FieldDescriptor*> fields;
    message->GetReflection()->ListFields(*message, &fields);
    std::erase_if(fields, [&](const FieldDescriptor* other) { return other->type() != field->type(); });
    if (!fields.empty()) return {message, fields[dice.Below(fields.size())]};
  }
  return {nullptr, nullptr};
}

bool IsAscii(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

double EdgeDouble(Dice& dice) {
  using Limits = std::numeric_limits<double>;
  constexpr double kEdges[] = {0.0,
                               -0.0,
                               1.0,
                               -1.0,
                               0.5,
                               1e-8,
                               1e38,
                               Limits::max(),
                               -Limits::max(),
                               Limits::denorm_min(),
                               1e300,
                               Limits::infinity(),
                               -Limits::infinity(),
                               Limits::quiet_NaN()};
  if (dice.Once(2)) return kEdges[dice.Below(std::size(kEdges))];
  const double small = static_cast<double>(dice.Below(64)) - 16;
  return dice.Once(2) ? small : std::ldexp(small, static_cast<int>(dice.Below(64)) - 32);
}

int EdgeEnum(const EnumDescriptor& type, Dice& dice) {
  if (dice.Once(8)) return static_cast<int>(dice.EdgeNumber());
  return type.value(static_cast<int>(dice.Below(static_cast<size_t>(type.value_count()))))->number();
}

// One change of one message; `all` are all messages of the input.
class Change {
 public:
  Change(Message& message, const std::vector<Message*>& all, const std::vector<std::string>& words, Dice& dice)
      : message_(message), reflection_(*message.GetReflection()), all_(all), words_(words), dice_(dice) {}

  // False: the message has no fields.
  bool Make() {
    const Descriptor& type = *message_.GetDescriptor();
    if (type.field_count() == 0) return false;
    std::vector<const FieldDescriptor*> fields;
    reflection_.ListFields(message_, &fields);
    // Fields that are set are more often what matters.
    const FieldDescriptor* const field = !fields.empty() && !dice_.Once(3)
                                             ? fields[dice_.Below(fields.size())]
                                             : type.field(static_cast<int>(dice_.Below(type.field_count())));
    if (field->is_repeated()) {
      ChangeRepeated(field);
    } else if (reflection_.HasField(message_, field) && dice_.Once(6)) {
      reflection_.ClearField(&message_, field);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      // First the copy: to set one of a oneof deletes another one.
      const std::unique_ptr<Message> copy = CopyForA(field->message_type());
      Fill(*reflection_.MutableMessage(&message_, field), copy.get());
    } else {
      SetScalar(field, -1);
    }
    return true;
  }

 private:
  void ChangeRepeated(const FieldDescriptor* field) {
    const int size = reflection_.FieldSize(message_, field);
    if (size == 0) return Add(field);
    const int at = static_cast<int>(dice_.Below(static_cast<size_t>(size)));
    switch (dice_.Below(8)) {
      case 0:
        return Add(field);
      case 1:  // out of its place
        for (int i = at; i + 1 < size; ++i) reflection_.SwapElements(&message_, field, i, i + 1);
        return reflection_.RemoveLast(&message_, field);
      case 2:
        return reflection_.SwapElements(&message_, field, at, static_cast<int>(dice_.Below(static_cast<size_t>(size))));
      case 3:
        if (dice_.Once(4)) return reflection_.ClearField(&message_, field);
        return reflection_.RemoveLast(&message_, field);
      case 4:
        return Double(field, at);
      default:
        if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return SetScalar(field, at);
        return Fill(*reflection_.MutableRepeatedMessage(&message_, field, at), CopyForA(field->message_type()).get());
    }
  }

  void Add(const FieldDescriptor* field) {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      return Fill(*reflection_.AddMessage(&message_, field), CopyForA(field->message_type()).get());
    }
    AddDefault(field);
    SetScalar(field, reflection_.FieldSize(message_, field) - 1);
  }

  void AddDefault(const FieldDescriptor* field) {
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return reflection_.AddInt32(&message_, field, 0);
      case FieldDescriptor::CPPTYPE_INT64:
        return reflection_.AddInt64(&message_, field, 0);
      case FieldDescriptor::CPPTYPE_UINT32:
        return reflection_.AddUInt32(&message_, field, 0);
      case FieldDescriptor::CPPTYPE_UINT64:
        return reflection_.AddUInt64(&message_, field, 0);
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return reflection_.AddDouble(&message_, field, 0);
      case FieldDescriptor::CPPTYPE_FLOAT:
        return reflection_.AddFloat(&message_, field, 0);
      case FieldDescriptor::CPPTYPE_BOOL:
        return reflection_.AddBool(&message_, field, false);
      case FieldDescriptor::CPPTYPE_ENUM:
        return reflection_.AddEnumValue(&message_, field, 0);
      case FieldDescriptor::CPPTYPE_STRING:
        return reflection_.AddString(&message_, field, "");
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return;
    }
  }

  // A copy of element `at` at the end.
  void Double(const FieldDescriptor* field, int at) {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      const std::unique_ptr<Message> copy(reflection_.GetRepeatedMessage(message_, field, at).New());
      copy->CopyFrom(reflection_.GetRepeatedMessage(message_, field, at));
      return reflection_.AddMessage(&message_, field)->CopyFrom(*copy);
    }
    AddDefault(field);
    reflection_.SwapElements(&message_, field, at, reflection_.FieldSize(message_, field) - 1);
    SetScalar(field, at);
  }

  // Of a message of the input; null: there is none, or it is to stay as it is. A copy: it may be meant for a message
  // that it holds.
  std::unique_ptr<Message> CopyForA(const Descriptor* type) {
    const Message* const other = Any(all_, type, dice_);
    if (other == nullptr || dice_.Once(4)) return nullptr;
    std::unique_ptr<Message> copy(other->New());
    copy->CopyFrom(*other);
    return copy;
  }

  static void Fill(Message& into, const Message* from) {
    if (from != nullptr) into.CopyFrom(*from);
  }

  int64_t Integer(const FieldDescriptor* field, int64_t now) {
    switch (dice_.Below(4)) {
      case 0:
        return static_cast<int64_t>(static_cast<uint64_t>(now) + (dice_.Once(2) ? 1 : -1));
      case 1:
        if (const auto [from, like] = AnyLike(all_, field, dice_); from != nullptr) return IntegerOf(*from, like);
        return static_cast<int64_t>(dice_.Below(8));
      case 2:
        return static_cast<int64_t>(dice_.EdgeNumber());
      default:
        return static_cast<int64_t>(dice_.Below(10)) - 2;
    }
  }

  int64_t IntegerOf(const Message& message, const FieldDescriptor* field) {
    const int size = field->is_repeated() ? message.GetReflection()->FieldSize(message, field) : 0;
    return IntegerAt(message, field, size == 0 ? -1 : static_cast<int>(dice_.Below(static_cast<size_t>(size))));
  }

  // `at`: -1 for a field that is not repeated.
  static int64_t IntegerAt(const Message& message, const FieldDescriptor* field, int at) {
    const Reflection& r = *message.GetReflection();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return at < 0 ? r.GetInt32(message, field) : r.GetRepeatedInt32(message, field, at);
      case FieldDescriptor::CPPTYPE_INT64:
        return at < 0 ? r.GetInt64(message, field) : r.GetRepeatedInt64(message, field, at);
      case FieldDescriptor::CPPTYPE_UINT32:
        return at < 0 ? r.GetUInt32(message, field) : r.GetRepeatedUInt32(message, field, at);
      case FieldDescriptor::CPPTYPE_UINT64:
        return static_cast<int64_t>(at < 0 ? r.GetUInt64(message, field) : r.GetRepeatedUInt64(message, field, at));
      default:
        return 0;
    }
  }

  std::string TextOf(const Message& message, const FieldDescriptor* field) {
    const Reflection& r = *message.GetReflection();
    if (!field->is_repeated()) return r.GetString(message, field);
    const auto size = static_cast<size_t>(r.FieldSize(message, field));
    return r.GetRepeatedString(message, field, static_cast<int>(dice_.Below(size)));
  }

  std::string Text(const FieldDescriptor* field, const std::string& now) {
    const bool bytes = field->type() == FieldDescriptor::TYPE_BYTES;
    const size_t way = dice_.Below(8);
    if (way < 4) {
      if (const auto [from, like] = AnyLike(all_, field, dice_); from != nullptr) return TextOf(*from, like);
    }
    if (way < 6 && !words_.empty()) return words_[dice_.Below(words_.size())];
    if (way == 6) return dice_.Once(3) ? "" : std::to_string(static_cast<int64_t>(dice_.EdgeNumber()));
    std::string text = now;
    // Half a character is no text.
    if (!bytes && !IsAscii(text)) return text + text;
    ChangeBytes(dice_, {now}, text);
    if (!bytes) {
      for (char& c : text) c = static_cast<char>(c & 0x7f);
    }
    if (text.size() > kLongestText) text.resize(std::max(now.size(), kLongestText));
    return text;
  }

  // `at`: -1 for a field that is not repeated. REQUIRES: it is no message.
  void SetScalar(const FieldDescriptor* field, int at) {
    Reflection const& r = reflection_;
    Message* const m = &message_;
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32: {
        const auto value = static_cast<int32_t>(Integer(field, IntegerAt(message_, field, at)));
        return at < 0 ? r.SetInt32(m, field, value) : r.SetRepeatedInt32(m, field, at, value);
      }
      case FieldDescriptor::CPPTYPE_INT64: {
        const int64_t value = Integer(field, IntegerAt(message_, field, at));
        return at < 0 ? r.SetInt64(m, field, value) : r.SetRepeatedInt64(m, field, at, value);
      }
      case FieldDescriptor::CPPTYPE_UINT32: {
        const auto value = static_cast<uint32_t>(Integer(field, IntegerAt(message_, field, at)));
        return at < 0 ? r.SetUInt32(m, field, value) : r.SetRepeatedUInt32(m, field, at, value);
      }
      case FieldDescriptor::CPPTYPE_UINT64: {
        const auto value = static_cast<uint64_t>(Integer(field, IntegerAt(message_, field, at)));
        return at < 0 ? r.SetUInt64(m, field, value) : r.SetRepeatedUInt64(m, field, at, value);
      }
      case FieldDescriptor::CPPTYPE_DOUBLE: {
        const double value = EdgeDouble(dice_);
        return at < 0 ? r.SetDouble(m, field, value) : r.SetRepeatedDouble(m, field, at, value);
      }
      case FieldDescriptor::CPPTYPE_FLOAT: {
        constexpr double kMost = std::numeric_limits<float>::max();
        const double wide = EdgeDouble(dice_);
        const auto value = static_cast<float>(std::isfinite(wide) ? std::clamp(wide, -kMost, kMost) : wide);
        return at < 0 ? r.SetFloat(m, field, value) : r.SetRepeatedFloat(m, field, at, value);
      }
      case FieldDescriptor::CPPTYPE_BOOL: {
        const bool value = at < 0 ? !r.GetBool(message_, field) : !r.GetRepeatedBool(message_, field, at);
        return at < 0 ? r.SetBool(m, field, value) : r.SetRepeatedBool(m, field, at, value);
      }
      case FieldDescriptor::CPPTYPE_ENUM: {
        const int value = EdgeEnum(*field->enum_type(), dice_);
        return at < 0 ? r.SetEnumValue(m, field, value) : r.SetRepeatedEnumValue(m, field, at, value);
      }
      case FieldDescriptor::CPPTYPE_STRING: {
        const std::string now = at < 0 ? r.GetString(message_, field) : r.GetRepeatedString(message_, field, at);
        const std::string value = Text(field, now);
        return at < 0 ? r.SetString(m, field, value) : r.SetRepeatedString(m, field, at, value);
      }
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return;
    }
  }

  Message& message_;
  const Reflection& reflection_;
  const std::vector<Message*>& all_;
  const std::vector<std::string>& words_;
  Dice& dice_;
};

}  // namespace

void ChangeMessage(Message& message, const std::vector<std::string>& words, Dice& dice) {
  std::vector<Message*> all;
  Collect(message, all);
  // A few tries: not every message has fields.
  for (int i = 0; i < 4; ++i) {
    if (Change(*all[dice.Below(all.size())], all, words, dice).Make()) return;
  }
}

bool CrossMessages(Message& message, const Message& other, Dice& dice) {
  std::vector<Message*> all;
  Collect(message, all);
  std::vector<const Message*> others;
  Collect(other, others);
  for (int i = 0; i < 8; ++i) {
    Message& into = *all[dice.Below(all.size())];
    if (&into == &message && all.size() > 1 && !dice.Once(8)) continue;
    const Message* const from = Any(others, into.GetDescriptor(), dice);
    if (from == nullptr) continue;
    if (dice.Once(2)) {
      into.CopyFrom(*from);
    } else {
      into.MergeFrom(*from);  // adds its lists
    }
    return true;
  }
  return false;
}

std::optional<std::string> MessageMutator::Change(const std::string& input, Dice& dice) const {
  const std::unique_ptr<Message> message = Parse(input);
  if (message == nullptr) return std::nullopt;
  ChangeMessage(*message, words_, dice);
  return Write(*message, input);
}

std::optional<std::string> MessageMutator::Cross(const std::string& input, const std::string& other, Dice& dice) const {
  const std::unique_ptr<Message> message = Parse(input), from = Parse(other);
  if (message == nullptr || from == nullptr || !CrossMessages(*message, *from, dice)) return std::nullopt;
  return Write(*message, input);
}

}  // namespace lockstep::fuzz
