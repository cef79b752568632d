// One collective call as a value, shared by all implementations of Communicator.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_CALL_H_
#define LOCKSTEP_WORKER_COLLECTIVES_CALL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "worker/collectives/communicator.h"
#include "worker/collectives/completion.h"

namespace lockstep::worker {

enum class CallKind : uint8_t {
  kAllGather = 2,
  kAllReduceExact = 3,
  kAllReduceSumInt64 = 4,
  kAllReduceSumFloat = 5,
  kBroadcast = 6,
};

struct Call {
  CallKind kind = CallKind::kBroadcast;
  Tag tag;
  uint64_t sequence = 0;  // the call's number in its communicator, from 1
  absl::Span<int64_t> integers;
  ExactAddends addends;
  absl::Span<float> floats;
  absl::Span<char> bytes;
  std::vector<int64_t> blocks;
  std::vector<ExactRun> runs;
  int root = 0;
  std::shared_ptr<Completion> completion = std::make_shared<Completion>();

  // InvalidArgument for impossible sizes, runs or roots.
  absl::Status Check(int ranks) const;
  // Empty when both ranks make the same call, else the difference in words.
  std::string DifferenceFrom(const Call& other) const;
  const char* KindName() const;  // "all-gather"
  // "all-gather 17 of step 41, attempt 0".
  std::string Name() const;
};

// A communicator that turns every collective into a Call and hands it to one function.
class CallCommunicator : public Communicator {
 public:
  Handle AllGather(Tag tag, absl::Span<char> bytes, absl::Span<const int64_t> block_bytes) override;
  Handle AllReduceExact(Tag tag, ExactAddends addends, absl::Span<float> out, absl::Span<const ExactRun> runs) override;
  Handle AllReduceSum(Tag tag, absl::Span<int64_t> values) override;
  Handle AllReduceSum(Tag tag, absl::Span<float> values) override;
  Handle Broadcast(Tag tag, int root, absl::Span<char> bytes) override;
  // Null: all buffers are in host memory.
  DeviceCommunicator* on_device() override { return nullptr; }

 protected:
  // Takes a call that passed Check and has its sequence number; must end its completion, now or later.
  virtual void Enqueue(Call call) = 0;

 private:
  Handle Submit(Call call);

  uint64_t last_sequence_ = 0;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_CALL_H_
