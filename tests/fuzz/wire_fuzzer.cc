// What workers and a chief send each other: the last byte of the input chooses the message. What is accepted is sent on
// as it was understood.
#include <google/protobuf/stubs/logging.h>

#include "common/protocol/wire.h"
#include "tests/fuzz/fuzz_file.h"
#include "tests/fuzz/message_mutator.h"

namespace {

template <typename Proto, typename Resend>
void Try(absl::string_view bytes, Resend resend) {
  Proto message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  const auto understood = lockstep::FromWire(message);
  if (!understood.ok()) {
    LS_CHECK(!understood.status().message().empty(), "a refusal says why");
    return;
  }
  const Proto sent = resend(*understood);
  const auto again = lockstep::FromWire(sent);
  LS_CHECK(again.ok(), "what is sent on is understood");
  LS_CHECK(resend(*again).SerializeAsString() == sent.SerializeAsString(), "nothing is lost on the way");
}

class Mutator final : public lockstep::fuzz::MessageMutator {
 protected:
  std::unique_ptr<google::protobuf::Message> Parse(const std::string& input) const override {
    if (input.empty()) return nullptr;
    std::unique_ptr<google::protobuf::Message> message;
    switch (static_cast<uint8_t>(input.back()) % 3) {
      case 0:
        message = std::make_unique<lockstep::proto::WorkerEnvelope>();
        break;
      case 1:
        message = std::make_unique<lockstep::proto::ChiefEnvelope>();
        break;
      default:
        message = std::make_unique<lockstep::proto::HeartbeatRequest>();
        break;
    }
    return message->ParseFromArray(input.data(), static_cast<int>(input.size() - 1)) ? std::move(message) : nullptr;
  }
  std::string Write(const google::protobuf::Message& message, const std::string& input) const override {
    return message.SerializeAsString() + input.back();
  }
};

}  // namespace

const lockstep::fuzz::StructuredMutator& lockstep::fuzz::TargetMutator() {
  static const Mutator mutator;
  return mutator;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static google::protobuf::LogSilencer silence;
  if (size == 0) return 0;
  using namespace lockstep;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size - 1);
  switch (data[size - 1] % 3) {
    case 0:
      Try<proto::WorkerEnvelope>(bytes, [](const FencedMessage& m) { return ToWire(m.fence, m.message); });
      break;
    case 1:
      Try<proto::ChiefEnvelope>(bytes, [](const FencedCommand& c) { return ToWire(c.fence, c.command); });
      break;
    default:
      Try<proto::HeartbeatRequest>(bytes, [](const FencedHeartbeat& h) { return ToWire(h.fence, h.heartbeat); });
      break;
  }
  return 0;
}
