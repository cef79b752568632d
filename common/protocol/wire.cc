#include "common/protocol/wire.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/message.h"

namespace lockstep {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};
template <typename T>
struct IsOptional : std::false_type {};
template <typename T>
struct IsOptional<std::optional<T>> : std::true_type {};

template <typename T>
concept Struct = requires {
  T::kFieldNames;
};

// "PlanMade" → "plan_made": the name of a message's field in its oneof.
std::string SnakeCase(const char* type_name) {
  std::string snake;
  for (const char* c = type_name; *c != 0; ++c) {
    if (absl::ascii_isupper(*c) && c != type_name) snake.push_back('_');
    snake.push_back(absl::ascii_tolower(*c));
  }
  return snake;
}

const FieldDescriptor* FieldNamed(const Message& message, const std::string& name) {
  const FieldDescriptor* field = message.GetDescriptor()->FindFieldByName(name);
  LS_CHECK(field != nullptr, "protos/session.proto lacks a field of a plain struct");
  return field;
}

// Calls `visit(name, field)` for each field of a plain struct.
template <typename T, typename Visitor>
void ForEachField(T& value, Visitor visit) {
  const std::vector<std::string> names = absl::StrSplit(std::remove_const_t<T>::kFieldNames, ", ", absl::SkipEmpty());
  size_t index = 0;
  std::apply([&](auto&... field) { (visit(names[index++], field), ...); }, value.Fields());
}

template <Struct T>
void Write(const T& value, Message& message);

void WriteDuration(absl::Duration duration, Message& message) {
  auto& out = static_cast<google::protobuf::Duration&>(message);
  out.set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &duration));
  out.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(duration)));
}

template <typename T>
void WriteField(const T& value, Message& message, const FieldDescriptor* field) {
  const Reflection* reflection = message.GetReflection();
  if constexpr (IsVector<T>::value) {
    for (const auto& item : value) {
      using Item = std::decay_t<decltype(item)>;
      if constexpr (std::is_same_v<Item, uint32_t>) {
        reflection->AddUInt32(&message, field, item);
      } else {
        Write(item, *reflection->AddMessage(&message, field));
      }
    }
  } else if constexpr (IsOptional<T>::value) {
    if (value.has_value()) Write(*value, *reflection->MutableMessage(&message, field));
  } else if constexpr (std::is_enum_v<T>) {
    reflection->SetEnumValue(&message, field, static_cast<int>(value));
  } else if constexpr (std::is_same_v<T, bool>) {
    reflection->SetBool(&message, field, value);
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    reflection->SetUInt64(&message, field, value);
  } else if constexpr (std::is_same_v<T, uint32_t>) {
    reflection->SetUInt32(&message, field, value);
  } else if constexpr (std::is_same_v<T, int32_t>) {
    reflection->SetInt32(&message, field, value);
  } else if constexpr (std::is_same_v<T, double>) {
    reflection->SetDouble(&message, field, value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    reflection->SetString(&message, field, value);
  } else if constexpr (std::is_same_v<T, absl::Duration>) {
    WriteDuration(value, *reflection->MutableMessage(&message, field));
  } else {
    Write(value, *reflection->MutableMessage(&message, field));
  }
}

template <Struct T>
void Write(const T& value, Message& message) {
  ForEachField(value, [&](const std::string& name, const auto& field) {
    WriteField(field, message, FieldNamed(message, name));
  });
}

template <typename... Ts>
void WriteVariant(const std::variant<Ts...>& value, Message& message) {
  std::visit(
      [&](const auto& alternative) {
        const FieldDescriptor* field = FieldNamed(message, SnakeCase(std::decay_t<decltype(alternative)>::kTypeName));
        Write(alternative, *message.GetReflection()->MutableMessage(&message, field));
      },
      value);
}

template <Struct T>
absl::Status Read(const Message& message, T& value);

absl::Status ReadDuration(const Message& message, absl::Duration& value) {
  const auto& in = static_cast<const google::protobuf::Duration&>(message);
  value = absl::Seconds(in.seconds()) + absl::Nanoseconds(in.nanos());
  return absl::OkStatus();
}

template <typename T>
absl::Status ReadField(const Message& message, const FieldDescriptor* field, T& value) {
  const Reflection* reflection = message.GetReflection();
  if constexpr (IsVector<T>::value) {
    const int size = reflection->FieldSize(message, field);
    if (size > static_cast<int>(kMaxRepeated)) {
      return absl::InvalidArgumentError(absl::StrCat("field '", field->full_name(), "' has ", size,
                                                     " entries; at most ", kMaxRepeated, " are accepted"));
    }
    value.resize(size);
    for (int i = 0; i < size; ++i) {
      using Item = typename T::value_type;
      if constexpr (std::is_same_v<Item, uint32_t>) {
        value[i] = reflection->GetRepeatedUInt32(message, field, i);
      } else {
        LS_RETURN_IF_ERROR(Read(reflection->GetRepeatedMessage(message, field, i), value[i]));
      }
    }
  } else if constexpr (IsOptional<T>::value) {
    if (!reflection->HasField(message, field)) return absl::OkStatus();
    return Read(reflection->GetMessage(message, field), value.emplace());
  } else if constexpr (std::is_enum_v<T>) {
    const int number = reflection->GetEnumValue(message, field);
    if (field->enum_type()->FindValueByNumber(number) == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("field '", field->full_name(), "' has the unknown value ", number));
    }
    value = static_cast<T>(number);
  } else if constexpr (std::is_same_v<T, bool>) {
    value = reflection->GetBool(message, field);
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    value = reflection->GetUInt64(message, field);
    // Files hold steps as int64. Random numbers and hashes, which may have any bits, are fixed64.
    const bool is_count = field->type() == FieldDescriptor::TYPE_UINT64;
    if (is_count && value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return absl::InvalidArgumentError(
          absl::StrCat("field '", field->full_name(), "' is ", value, "; expected less than 2^63"));
    }
  } else if constexpr (std::is_same_v<T, uint32_t>) {
    value = reflection->GetUInt32(message, field);
  } else if constexpr (std::is_same_v<T, int32_t>) {
    value = reflection->GetInt32(message, field);
  } else if constexpr (std::is_same_v<T, double>) {
    value = reflection->GetDouble(message, field);
  } else if constexpr (std::is_same_v<T, std::string>) {
    value = reflection->GetString(message, field);
  } else if constexpr (std::is_same_v<T, absl::Duration>) {
    return ReadDuration(reflection->GetMessage(message, field), value);
  } else {
    return Read(reflection->GetMessage(message, field), value);
  }
  return absl::OkStatus();
}

template <Struct T>
absl::Status Read(const Message& message, T& value) {
  absl::Status status;
  ForEachField(value, [&](const std::string& name, auto& field) {
    status.Update(ReadField(message, FieldNamed(message, name), field));
  });
  return status;
}

template <size_t kIndex = 0, typename... Ts>
absl::Status ReadVariant(const Message& message, std::variant<Ts...>& value) {
  if constexpr (kIndex == sizeof...(Ts)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a ", message.GetTypeName(), " without a known kind; are both sides of the same build?"));
  } else {
    using T = std::variant_alternative_t<kIndex, std::variant<Ts...>>;
    const FieldDescriptor* field = FieldNamed(message, SnakeCase(T::kTypeName));
    if (!message.GetReflection()->HasField(message, field)) return ReadVariant<kIndex + 1>(message, value);
    T alternative;
    LS_RETURN_IF_ERROR(Read(message.GetReflection()->GetMessage(message, field), alternative));
    value = std::move(alternative);
    return absl::OkStatus();
  }
}

}  // namespace

proto::WorkerEnvelope ToWire(const WorkerFence& fence, const WorkerMessage& message) {
  proto::WorkerEnvelope envelope;
  Write(fence, *envelope.mutable_fence());
  WriteVariant(message, *envelope.mutable_message());
  return envelope;
}

proto::ChiefEnvelope ToWire(const ChiefFence& fence, const ChiefCommand& command) {
  proto::ChiefEnvelope envelope;
  Write(fence, *envelope.mutable_fence());
  WriteVariant(command, *envelope.mutable_command());
  return envelope;
}

proto::HeartbeatRequest ToWire(const WorkerFence& fence, const Heartbeat& heartbeat) {
  proto::HeartbeatRequest request;
  Write(fence, *request.mutable_fence());
  Write(heartbeat, *request.mutable_heartbeat());
  return request;
}

proto::WorkerFence ToWire(const WorkerFence& fence) {
  proto::WorkerFence out;
  Write(fence, out);
  return out;
}

proto::SnapshotId ToWire(const SnapshotId& snapshot) {
  proto::SnapshotId out;
  Write(snapshot, out);
  return out;
}

absl::StatusOr<FencedMessage> FromWire(const proto::WorkerEnvelope& envelope) {
  FencedMessage out;
  LS_RETURN_IF_ERROR(Read(envelope.fence(), out.fence));
  LS_RETURN_IF_ERROR(ReadVariant(envelope.message(), out.message));
  return out;
}

absl::StatusOr<FencedCommand> FromWire(const proto::ChiefEnvelope& envelope) {
  FencedCommand out;
  LS_RETURN_IF_ERROR(Read(envelope.fence(), out.fence));
  LS_RETURN_IF_ERROR(ReadVariant(envelope.command(), out.command));
  return out;
}

absl::StatusOr<FencedHeartbeat> FromWire(const proto::HeartbeatRequest& request) {
  FencedHeartbeat out;
  LS_RETURN_IF_ERROR(Read(request.fence(), out.fence));
  LS_RETURN_IF_ERROR(Read(request.heartbeat(), out.heartbeat));
  return out;
}

absl::StatusOr<WorkerFence> FromWire(const proto::WorkerFence& fence) {
  WorkerFence out;
  LS_RETURN_IF_ERROR(Read(fence, out));
  return out;
}

absl::StatusOr<SnapshotId> FromWire(const proto::SnapshotId& snapshot) {
  SnapshotId out;
  LS_RETURN_IF_ERROR(Read(snapshot, out));
  return out;
}

}  // namespace lockstep
