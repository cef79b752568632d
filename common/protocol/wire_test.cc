#include "common/protocol/wire.h"

#include <catch2/catch.hpp>
#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "common/protocol/recording.h"
#include "common/protocol/text.h"

namespace lockstep {
namespace {

// Fills every field of any plain struct with a value of its own, so that a field which gets lost shows.
class Filler {
 public:
  void Fill(bool& value) { value = true; }
  void Fill(double& value) { value = 0.1 * ++count_; }
  void Fill(std::string& value) { value = absl::StrCat("s\"\\\n\x01 }]", ++count_); }
  void Fill(absl::Duration& value) { value = absl::Nanoseconds(1500000001) * ++count_; }
  void Fill(absl::Time& value) { value = absl::FromUnixNanos(++count_); }
  template <typename T>
  requires(std::is_integral_v<T>) void Fill(T& value) { value = static_cast<T>(++count_); }
  template <typename T>
  requires(std::is_enum_v<T>) void Fill(T& value) { value = static_cast<T>(1); }
  template <typename T>
  void Fill(std::vector<T>& values) {
    values.resize(2);
    for (T& value : values) Fill(value);
  }
  template <typename T>
  void Fill(std::optional<T>& value) {
    Fill(value.emplace());
  }
  template <text::Struct T>
  void Fill(T& value) {
    std::apply([this](auto&... field) { (Fill(field), ...); }, value.Fields());
  }

 private:
  int count_ = 0;
};

// Calls `visit` with each alternative of a message, filled and empty.
template <typename Message, size_t kIndex = 0, typename Visitor>
void ForEachAlternative(Visitor visit) {
  if constexpr (kIndex < std::variant_size_v<typename Message::Variant>) {
    std::variant_alternative_t<kIndex, typename Message::Variant> alternative;
    visit(Message(alternative));
    Filler().Fill(alternative);
    visit(Message(alternative));
    ForEachAlternative<Message, kIndex + 1>(visit);
  }
}

TEST_CASE("wire: every message of a worker comes back as it was", "[protocol]") {
  WorkerFence fence;
  Filler().Fill(fence);

  ForEachAlternative<WorkerMessage>([&](const WorkerMessage& message) {
    proto::WorkerEnvelope envelope;
    REQUIRE(envelope.ParseFromString(ToWire(fence, message).SerializeAsString()));
    const auto back = FromWire(envelope);

    REQUIRE(back.ok());
    CHECK(back->fence == fence);
    CHECK(text::ToText(back->message) == text::ToText(message));
    CHECK(back->message == message);
  });
}

TEST_CASE("wire: every command of the chief comes back as it was", "[protocol]") {
  ChiefFence fence;
  Filler().Fill(fence);

  ForEachAlternative<ChiefCommand>([&](const ChiefCommand& command) {
    proto::ChiefEnvelope envelope;
    REQUIRE(envelope.ParseFromString(ToWire(fence, command).SerializeAsString()));
    const auto back = FromWire(envelope);

    REQUIRE(back.ok());
    CHECK(back->fence == fence);
    CHECK(back->command == command);
  });
}

TEST_CASE("wire: a heartbeat comes back as it was", "[protocol]") {
  WorkerFence fence;
  Heartbeat heartbeat;
  Filler().Fill(fence);
  Filler().Fill(heartbeat);

  const auto back = FromWire(ToWire(fence, heartbeat));

  REQUIRE(back.ok());
  CHECK(back->fence == fence);
  CHECK(back->heartbeat == heartbeat);
}

TEST_CASE("wire: an envelope without a message, an unknown enum value and an endless list are refused", "[protocol]") {
  proto::WorkerEnvelope empty;
  CHECK(FromWire(empty).status().code() == absl::StatusCode::kInvalidArgument);

  proto::WorkerEnvelope unknown;
  unknown.mutable_message()->mutable_prepare_failed()->set_problem(static_cast<proto::PrepareProblem>(99));
  CHECK(FromWire(unknown).status().code() == absl::StatusCode::kInvalidArgument);

  proto::WorkerEnvelope endless;
  auto* hello = endless.mutable_message()->mutable_hello();
  for (uint64_t i = 0; i <= kMaxRepeated; ++i) hello->add_members();
  CHECK(FromWire(endless).status().code() == absl::StatusCode::kInvalidArgument);
}

// Sets every count of a message, however deep, to `value`; the lists get one entry. Returns how many there are.
int SetCounts(google::protobuf::Message& message, uint64_t value) {
  using google::protobuf::FieldDescriptor;
  const auto* reflection = message.GetReflection();
  int counts = 0;
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message.GetDescriptor()->field(i);
    if (field->type() == FieldDescriptor::TYPE_UINT64 && !field->is_repeated()) {
      reflection->SetUInt64(&message, field, value);
      ++counts;
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
               field->message_type()->full_name() != "google.protobuf.Duration") {
      auto* below =
          field->is_repeated() ? reflection->AddMessage(&message, field) : reflection->MutableMessage(&message, field);
      counts += SetCounts(*below, value);
    }
  }
  return counts;
}

TEST_CASE("wire: a step or a count that is no int64 is refused wherever it stands", "[protocol]") {
  constexpr uint64_t kLargest = std::numeric_limits<int64_t>::max();
  int with_counts = 0;
  const auto* kinds = proto::WorkerMessage::descriptor();
  for (int i = 0; i < kinds->field_count(); ++i) {
    CAPTURE(kinds->field(i)->name());
    proto::WorkerEnvelope envelope;
    proto::WorkerMessage& message = *envelope.mutable_message();
    auto& kind = *message.GetReflection()->MutableMessage(&message, kinds->field(i));
    const int counts = SetCounts(kind, kLargest);
    CHECK(FromWire(envelope).ok());
    if (counts == 0) continue;
    ++with_counts;
    SetCounts(kind, kLargest + 1);
    CHECK(FromWire(envelope).status().code() == absl::StatusCode::kInvalidArgument);
  }
  CHECK(with_counts > 10);

  proto::SnapshotId snapshot;
  snapshot.set_step(kLargest + 1);
  CHECK(FromWire(snapshot).status().code() == absl::StatusCode::kInvalidArgument);
  proto::HeartbeatRequest beat;
  beat.mutable_heartbeat()->mutable_position()->set_step(kLargest + 1);
  CHECK(FromWire(beat).status().code() == absl::StatusCode::kInvalidArgument);
}

TEST_CASE("text: every message reads back from its line", "[protocol]") {
  const auto check = [](const auto& value) {
    std::decay_t<decltype(value)> back;
    const std::string line = text::ToText(value);
    const absl::Status status = text::FromText(line, back);
    INFO(line);
    CHECK(status.ok());
    CHECK(back == value);
    CHECK(line.find('\n') == std::string::npos);
  };

  ForEachAlternative<WorkerMessage>(check);
  ForEachAlternative<ChiefCommand>(check);
  TrainingPolicy endless;
  endless.chief_timeout = absl::InfiniteDuration();
  check(endless);
  check(NamedValue{"not a number", std::numeric_limits<double>::infinity()});
}

TEST_CASE("text: a line that is cut anywhere is refused", "[protocol]") {
  Form form;
  Filler().Fill(form);
  const std::string line = text::ToText(form);

  for (size_t length = 0; length < line.size(); ++length) {
    Form back;
    CHECK_FALSE(text::FromText(line.substr(0, length), back).ok());
  }
}

// A core that adds up what it is told.
struct Adder {
  uint64_t sum = 0;
  std::vector<Position> Step(absl::Time, const Position& event) {
    sum += event.step;
    return {Position{sum, 0}, Position{sum, 1}};
  }
};

TEST_CASE("recording: a replay sees the same actions, names the first difference, and forgives a torn end",
          "[protocol]") {
  std::string record = RecordConfig(NamedValue{"start", 1});
  Adder adder;
  for (uint64_t i = 1; i < 4; ++i) {
    record += RecordStep(absl::FromUnixSeconds(i), Position{i, 0}, adder.Step(absl::FromUnixSeconds(i), {i, 0}));
  }
  const auto replay = [](const std::string& text) {
    return Replay<NamedValue, Position>(text, [](const NamedValue&) { return Adder(); });
  };

  CHECK(replay(record)->events == 3);
  CHECK(replay(record)->actions == 6);
  std::string other = record;
  other[other.rfind("step=6") + 5] = '7';
  CHECK(replay(other).status().code() == absl::StatusCode::kInternal);
  CHECK(replay(record.substr(0, record.size() - 5)).ok());
  CHECK(replay("").status().code() == absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace lockstep
