// Mutates protobuf messages that inputs hold as JSON.
//
// Threading: immutable.
#ifndef LOCKSTEP_TESTS_FUZZ_JSON_MUTATOR_H_
#define LOCKSTEP_TESTS_FUZZ_JSON_MUTATOR_H_

#include <memory>
#include <string>

#include "common/checkpoint_format/proto_json.h"
#include "tests/fuzz/message_mutator.h"

namespace lockstep::fuzz {

template <typename Proto>
class JsonMutator final : public MessageMutator {
 protected:
  std::unique_ptr<google::protobuf::Message> Parse(const std::string& input) const override {
    auto message = std::make_unique<Proto>();
    return FromJson(input, "input", message.get()).ok() ? std::move(message) : nullptr;
  }
  std::string Write(const google::protobuf::Message& message, const std::string&) const override {
    return ToJson(message);
  }
};

}  // namespace lockstep::fuzz

#endif  // LOCKSTEP_TESTS_FUZZ_JSON_MUTATOR_H_
