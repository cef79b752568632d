// Mutates protobuf messages by reflection: sets, clears, duplicates, removes and swaps fields anywhere in the message,
// and copies them to places of the same type. Numbers come from the limits of their types or from other fields, texts
// from other fields or from words that the target supplies.
//
// Threading: immutable.
#ifndef LOCKSTEP_TESTS_FUZZ_MESSAGE_MUTATOR_H_
#define LOCKSTEP_TESTS_FUZZ_MESSAGE_MUTATOR_H_

#include <google/protobuf/message.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/fuzz/dice.h"
#include "tests/fuzz/structured_mutator.h"

namespace lockstep::fuzz {

// Makes one change in `message` or in a message within it. The result can be serialised and parsed again: texts stay
// UTF-8.
void ChangeMessage(google::protobuf::Message& message, const std::vector<std::string>& words, Dice& dice);

// Replaces a part of `message` by one of `other` that has the same type, or adds it. Returns false if there is none.
bool CrossMessages(google::protobuf::Message& message, const google::protobuf::Message& other, Dice& dice);

class MessageMutator : public StructuredMutator {
 public:
  std::optional<std::string> Change(const std::string& input, Dice& dice) const final;
  std::optional<std::string> Cross(const std::string& input, const std::string& other, Dice& dice) const final;

 protected:
  explicit MessageMutator(std::vector<std::string> words = {}) : words_(std::move(words)) {}

  // Returns null if `input` holds no message.
  virtual std::unique_ptr<google::protobuf::Message> Parse(const std::string& input) const = 0;
  // The input with `message` in place of its own message.
  virtual std::string Write(const google::protobuf::Message& message, const std::string& input) const = 0;

 private:
  const std::vector<std::string> words_;
};

// For inputs that are the bytes of a message and nothing else.
template <typename Proto>
class BinaryMutator final : public MessageMutator {
 public:
  explicit BinaryMutator(std::vector<std::string> words = {}) : MessageMutator(std::move(words)) {}

 protected:
  std::unique_ptr<google::protobuf::Message> Parse(const std::string& input) const override {
    auto message = std::make_unique<Proto>();
    return message->ParseFromString(input) ? std::move(message) : nullptr;
  }
  std::string Write(const google::protobuf::Message& message, const std::string&) const override {
    return message.SerializeAsString();
  }
};

}  // namespace lockstep::fuzz

#endif  // LOCKSTEP_TESTS_FUZZ_MESSAGE_MUTATOR_H_
