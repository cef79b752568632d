#include "worker/collectives/loopback/loopback_communicator.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/sync/mutex.h"
#include "worker/arithmetic/exact_sum.h"
#include "worker/collectives/call.h"
#include "worker/collectives/completion.h"

namespace lockstep::worker {
namespace {

// The same call as made by each rank; ranks[r] is null until rank r has made it.
struct Round {
  std::vector<std::unique_ptr<Call>> ranks;
  int arrived = 0;
};

int64_t OffsetOf(const std::vector<int64_t>& blocks, size_t rank) {
  int64_t offset = 0;
  for (size_t r = 0; r < rank; ++r) offset += blocks[r];
  return offset;
}

void CopyBytes(char* to, const char* from, int64_t n) {
  if (n > 0) std::memcpy(to, from, static_cast<size_t>(n));
}

void AllReduceExact(Round& round) {
  for (const ExactRun& run : round.ranks[0]->runs) {
    const auto begin = static_cast<size_t>(run.begin), size = static_cast<size_t>(run.size);
    std::vector<ExactAddends> addends;
    for (const auto& rank : round.ranks) addends.push_back(rank->addends.subspan(begin, size));
    const absl::Span<float> sums = round.ranks[0]->floats.subspan(begin, size);
    SumExactly(addends, run.exponent, sums);
    for (size_t to = 1; to < round.ranks.size(); ++to) {
      std::copy(sums.begin(), sums.end(), round.ranks[to]->floats.data() + begin);
    }
  }
}

void AllGather(Round& round) {
  const auto& blocks = round.ranks[0]->blocks;
  for (size_t from = 0; from < round.ranks.size(); ++from) {
    const int64_t offset = OffsetOf(blocks, from);
    for (size_t to = 0; to < round.ranks.size(); ++to) {
      if (to == from) continue;
      CopyBytes(round.ranks[to]->bytes.data() + offset, round.ranks[from]->bytes.data() + offset, blocks[from]);
    }
  }
}

template <typename T>
void AllReduce(const std::vector<absl::Span<T>>& ranks) {
  for (size_t i = 0; i < ranks[0].size(); ++i) {
    T sum = ranks[0][i];
    for (size_t r = 1; r < ranks.size(); ++r) sum += ranks[r][i];
    for (const auto& values : ranks) values[i] = sum;
  }
}

void Broadcast(Round& round) {
  const Call& from = *round.ranks[static_cast<size_t>(round.ranks[0]->root)];
  for (const auto& to : round.ranks) {
    if (to->bytes.data() != from.bytes.data()) {
      CopyBytes(to->bytes.data(), from.bytes.data(), static_cast<int64_t>(from.bytes.size()));
    }
  }
}

void Run(Round& round) {
  std::vector<absl::Span<int64_t>> integers;
  std::vector<absl::Span<float>> floats;
  for (const auto& call : round.ranks) {
    integers.push_back(call->integers);
    floats.push_back(call->floats);
  }
  switch (round.ranks[0]->kind) {
    case CallKind::kAllGather:
      return AllGather(round);
    case CallKind::kAllReduceExact:
      return AllReduceExact(round);
    case CallKind::kAllReduceSumInt64:
      return AllReduce(integers);
    case CallKind::kAllReduceSumFloat:
      return AllReduce(floats);
    case CallKind::kBroadcast:
      return Broadcast(round);
  }
}

// What all ranks share.
class Hub {
 public:
  explicit Hub(int size) : size_(static_cast<size_t>(size)) {}

  void Arrive(int rank, Call call) {
    {
      MutexLock lock(&mutex_);
      if (!status_.ok()) {
        call.completion->End(ViewOf(rank));
        return;
      }
      Round& round = rounds_[call.sequence];
      round.ranks.resize(size_);
      round.ranks[static_cast<size_t>(rank)] = std::make_unique<Call>(std::move(call));
      ++round.arrived;
    }
    RunCompleteRounds();
  }

  void Abort(int rank, const absl::Status& cause) {
    std::map<uint64_t, Round> broken;
    {
      MutexLock lock(&mutex_);
      if (!status_.ok()) return;
      status_ = AsAborted(cause);
      aborted_by_ = rank;
      broken.swap(rounds_);
    }
    for (auto& [sequence, round] : broken) {
      for (size_t r = 0; r < round.ranks.size(); ++r) {
        if (round.ranks[r] != nullptr) round.ranks[r]->completion->End(StatusFor(static_cast<int>(r)));
      }
    }
  }

  absl::Status StatusFor(int rank) const {
    MutexLock lock(&mutex_);
    return ViewOf(rank);
  }

  uint64_t bytes_moved() const { return bytes_moved_.load(); }

 private:
  absl::Status ViewOf(int rank) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (status_.ok() || aborted_by_ == rank) return status_;
    return absl::AbortedError(absl::StrCat("rank ", aborted_by_, " aborted: ", status_.message()));
  }

  // Runs, in sequence, every round that all ranks have reached.
  void RunCompleteRounds() {
    MutexLock running(&run_mutex_);
    for (;;) {
      Round round;
      {
        MutexLock lock(&mutex_);
        if (rounds_.empty() || static_cast<size_t>(rounds_.begin()->second.arrived) != size_) return;
        round = std::move(rounds_.begin()->second);
        rounds_.erase(rounds_.begin());
      }
      absl::Status status;
      for (size_t r = 1; r < size_ && status.ok(); ++r) {
        const std::string difference = round.ranks[r]->DifferenceFrom(*round.ranks[0]);
        if (!difference.empty()) {
          status = absl::AbortedError(absl::StrCat("ranks ", r, " and 0 made different calls: ", difference));
          Abort(static_cast<int>(r), status);
        }
      }
      if (status.ok() && size_ > 0) {
        Run(round);
        const Call& call = *round.ranks[0];
        bytes_moved_ += call.integers.size() * sizeof(int64_t) + call.addends.size() * call.addends.element_bytes() +
                        call.floats.size() * sizeof(float) + call.bytes.size();
      }
      for (const auto& call : round.ranks) call->completion->End(status);
    }
  }

  const size_t size_;
  std::atomic<uint64_t> bytes_moved_{0};
  Mutex run_mutex_;  // one round at a time, in order; taken before mutex_
  mutable Mutex mutex_;
  std::map<uint64_t, Round> rounds_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  int aborted_by_ ABSL_GUARDED_BY(mutex_) = -1;
};

class LoopbackCommunicator final : public CallCommunicator {
 public:
  LoopbackCommunicator(Generation generation, int rank, int size, std::shared_ptr<Hub> hub)
      : generation_(generation), rank_(rank), size_(size), hub_(std::move(hub)) {}
  ~LoopbackCommunicator() override {
    Abort(absl::AbortedError(absl::StrCat("rank ", rank_, " closed its communicator")));
  }

  Generation generation() const override { return generation_; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void Abort(const absl::Status& cause) override { hub_->Abort(rank_, cause); }
  absl::Status status() const override { return hub_->StatusFor(rank_); }
  uint64_t bytes_moved() const override { return hub_->bytes_moved(); }

 protected:
  void Enqueue(Call call) override { hub_->Arrive(rank_, std::move(call)); }

 private:
  const Generation generation_;
  const int rank_;
  const int size_;
  const std::shared_ptr<Hub> hub_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> MakeLoopback(Generation generation, int size) {
  auto hub = std::make_shared<Hub>(size);
  std::vector<std::unique_ptr<Communicator>> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.push_back(std::make_unique<LoopbackCommunicator>(generation, rank, size, hub));
  }
  return ranks;
}

}  // namespace lockstep::worker
