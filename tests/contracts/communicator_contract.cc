#include "tests/contracts/communicator_contract.h"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <thread>

#include "worker/arithmetic/bucketer.h"
#include "worker/arithmetic/exact_sum.h"

namespace lockstep::worker {
namespace {

// Long enough for any machine: only a promise that is broken waits this long.
constexpr absl::Duration kLong = absl::Seconds(30);
constexpr Tag kTag{.step = 7, .attempt = 1};

// Rank r's value at i: differs by rank, both signs, wide.
int64_t ValueOf(int rank, size_t i) {
  const uint64_t mixed = (static_cast<uint64_t>(rank) + 1) * 0x9e3779b97f4a7c15u + i * 0xbf58476d1ce4e5b9u;
  return static_cast<int64_t>(mixed) >> 8;
}

std::vector<int64_t> MadeUpValues(int rank, size_t n) {
  std::vector<int64_t> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = ValueOf(rank, i);
  return values;
}

std::vector<int64_t> SumsOf(int size, size_t n) {
  std::vector<int64_t> sums(n, 0);
  for (int rank = 0; rank < size; ++rank) {
    for (size_t i = 0; i < n; ++i) sums[i] += ValueOf(rank, i);
  }
  return sums;
}

// Empty, tiny, odd, over one piece, over several windows of pieces.
const std::vector<size_t> kLengths = {0, 1, 3, 17, 4096, 50001};

// Blocks with empty ones and a remainder in odd places.
std::vector<int64_t> UnevenBlocks(size_t n, int size) {
  std::vector<int64_t> blocks(static_cast<size_t>(size), 0);
  int64_t left = static_cast<int64_t>(n);
  for (int r = size - 1; r > 0; --r) {
    blocks[static_cast<size_t>(r)] = r % 2 == 1 ? left / 3 : 0;
    left -= blocks[static_cast<size_t>(r)];
  }
  blocks[0] = left;
  return blocks;
}

// Who contributes values.
enum class SumForm { kIntegers, kValues, kMixed };

// Rank r's values: 24 bits, of many magnitudes, some of which the last exponent rounds off.
std::vector<float> FloatsOf(int rank, size_t n) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) {
    const int64_t value = ValueOf(rank, i);
    values[i] = std::ldexp(static_cast<float>(value), -56 - static_cast<int>((value >> 5) & 31));
  }
  return values;
}

// Of several exponents, with elements between and behind them that belong to none.
std::vector<ExactRun> RunsOver(size_t n) {
  const auto elements = static_cast<int64_t>(n);
  if (n < 10) return {{.begin = 0, .size = elements, .exponent = -40}};
  const int64_t third = elements / 3;
  return {{.begin = 0, .size = third, .exponent = -48},
          {.begin = third + 2, .size = third - 2, .exponent = kExponentUnset},
          {.begin = 2 * third, .size = elements - 2 * third - 1, .exponent = -30}};
}

// What the ranks' contributions sum up to, by integers alone.
std::vector<float> ExactSums(SumForm form, int size, size_t n) {
  std::vector<float> sums(n);
  for (const ExactRun& run : RunsOver(n)) {
    const auto at = static_cast<size_t>(run.begin), count = static_cast<size_t>(run.size);
    std::vector<int64_t> total(count, 0);
    for (int rank = 0; rank < size; ++rank) {
      if (form == SumForm::kValues || (form == SumForm::kMixed && rank % 2 == 0)) {
        QuantizeAdd(absl::MakeConstSpan(FloatsOf(rank, n)).subspan(at, count), run.exponent, absl::MakeSpan(total));
      } else {
        AddInto(absl::MakeConstSpan(MadeUpValues(rank, n)).subspan(at, count), absl::MakeSpan(total));
      }
    }
    Dequantize(total, run.exponent, absl::MakeSpan(sums).subspan(at, count));
  }
  return sums;
}

bool EqualInRuns(const std::vector<float>& a, const std::vector<float>& b, size_t n) {
  for (const ExactRun& run : RunsOver(n)) {
    if (!std::equal(a.begin() + run.begin, a.begin() + run.end(), b.begin() + run.begin)) return false;
  }
  return true;
}

FlatRange OwnBlock(const std::vector<int64_t>& blocks, int rank) {
  int64_t offset = 0;
  for (int r = 0; r < rank; ++r) offset += blocks[static_cast<size_t>(r)];
  return {offset, blocks[static_cast<size_t>(rank)]};
}

// Catch's assertions are not thread-safe: ranks collect what they saw, the main thread checks.
class RankFindings {
 public:
  explicit RankFindings(size_t ranks) : by_rank_(ranks) {}
  void Expect(int rank, bool holds, const std::string& what) {
    if (!holds) by_rank_[static_cast<size_t>(rank)] += what + "; ";
  }
  void Check() const {
    for (size_t rank = 0; rank < by_rank_.size(); ++rank) {
      INFO("rank " << rank << ": " << by_rank_[rank]);
      CHECK(by_rank_[rank].empty());
    }
  }

 private:
  std::vector<std::string> by_rank_;
};

}  // namespace

void OnEveryRank(const std::vector<std::unique_ptr<Communicator>>& group,
                 const std::function<void(Communicator&)>& body) {
  std::vector<std::thread> threads;
  for (const auto& communicator : group) threads.emplace_back([&body, &communicator] { body(*communicator); });
  for (std::thread& thread : threads) thread.join();
}

void CheckSums(const GroupFactory& make, int size) {
  const auto group = make(size);
  RankFindings findings(group.size());
  for (const size_t n : kLengths) {
    const std::vector<int64_t> expected = SumsOf(size, n);
    OnEveryRank(group, [&](Communicator& comm) {
      const int r = comm.rank();
      const auto expect = [&](bool holds, const char* what) {
        findings.Expect(r, holds, std::string(what) + " over " + std::to_string(n));
      };
      for (const SumForm form : {SumForm::kIntegers, SumForm::kValues, SumForm::kMixed}) {
        const bool gives_values = form == SumForm::kValues || (form == SumForm::kMixed && r % 2 == 0);
        const std::vector<int64_t> integers = MadeUpValues(r, n);
        const std::vector<float> values = FloatsOf(r, n);
        ExactAddends addends = {.integers = integers};
        if (gives_values) addends = {.values = values};
        std::vector<float> out(n, -1.0f);
        expect(comm.AllReduceExact(kTag, addends, absl::MakeSpan(out), RunsOver(n))->Wait(kLong).ok(),
               "exact all-reduce fails");
        expect(integers == MadeUpValues(r, n) && values == FloatsOf(r, n), "exact all-reduce changed what it summed");
        expect(EqualInRuns(out, ExactSums(form, size, n), n), "exact all-reduce is wrong");
      }
      std::vector<int64_t> all = MadeUpValues(r, n);
      expect(comm.AllReduceSum(kTag, absl::MakeSpan(all))->Wait(kLong).ok(), "integer all-reduce fails");
      expect(all == expected, "integer all-reduce is wrong");

      // Small whole numbers: exact in any order.
      std::vector<float> floats(n);
      for (size_t i = 0; i < n; ++i) floats[i] = static_cast<float>(ValueOf(r, i) % 1000);
      expect(comm.AllReduceSum(kTag, absl::MakeSpan(floats))->Wait(kLong).ok(), "float all-reduce fails");
      bool equal = true;
      for (size_t i = 0; i < n; ++i) {
        float sum = 0;
        for (int from = 0; from < size; ++from) sum += static_cast<float>(ValueOf(from, i) % 1000);
        equal = equal && floats[i] == sum;
      }
      expect(equal, "float all-reduce is wrong");
    });
  }
  findings.Check();
  CHECK(group[0]->bytes_moved() > 0);
  for (const auto& comm : group) CHECK(comm->status().ok());
}

void CheckGatherAndBroadcast(const GroupFactory& make, int size) {
  const auto group = make(size);
  RankFindings findings(group.size());
  for (const size_t n : kLengths) {
    OnEveryRank(group, [&](Communicator& comm) {
      const int r = comm.rank();
      const std::vector<int64_t> blocks = UnevenBlocks(n, size);
      const auto byte_of = [](int rank, size_t i) { return static_cast<char>(ValueOf(rank, i)); };
      std::vector<char> bytes(n, '?');
      std::vector<char> expected(n);
      for (int from = 0; from < size; ++from) {
        const FlatRange block = OwnBlock(blocks, from);
        for (int64_t i = block.offset; i < block.end(); ++i) {
          expected[static_cast<size_t>(i)] = byte_of(from, static_cast<size_t>(i));
          if (from == r) bytes[static_cast<size_t>(i)] = expected[static_cast<size_t>(i)];
        }
      }
      findings.Expect(r, comm.AllGather(kTag, absl::MakeSpan(bytes), blocks)->Wait(kLong).ok(), "all-gather fails");
      findings.Expect(r, bytes == expected, "all-gather is wrong over " + std::to_string(n));

      for (int root = 0; root < size; ++root) {
        std::vector<char> copy(n, '?');
        std::vector<char> original(n);
        for (size_t i = 0; i < n; ++i) original[i] = byte_of(root, i);
        if (r == root) copy = original;
        findings.Expect(r, comm.Broadcast(kTag, root, absl::MakeSpan(copy))->Wait(kLong).ok(), "broadcast fails");
        findings.Expect(r, copy == original, "broadcast is wrong over " + std::to_string(n));
      }
    });
  }
  findings.Check();
}

void CheckManyCallsAhead(const GroupFactory& make, int size) {
  const auto group = make(size);
  RankFindings findings(group.size());
  constexpr size_t kCalls = 100;
  std::atomic<bool> others_stand{false};
  OnEveryRank(group, [&](Communicator& comm) {
    const bool root = comm.rank() == 0;
    // A large one, which those between the root and the last rank have to pass on, and many small ones.
    std::vector<std::vector<char>> words;
    for (size_t i = 0; i < kCalls; ++i) words.emplace_back(i > 0 ? 16 << 10 : 2 << 20, root ? 'r' : ' ');
    while (comm.rank() == size - 1 && !others_stand) std::this_thread::yield();
    std::vector<Handle> handles;
    for (size_t i = 0; i < kCalls; ++i) {
      handles.push_back(comm.Broadcast({.step = static_cast<int64_t>(i), .attempt = 0}, 0, absl::MakeSpan(words[i])));
    }
    if (comm.rank() == size - 2) {
      // For as long as it takes to send what it should not.
      (void)handles.back()->Wait(absl::Milliseconds(100));
      others_stand = true;
    }
    for (const Handle& handle : handles) findings.Expect(comm.rank(), handle->Wait(kLong).ok(), "a call fails");
    for (const auto& word : words) {
      findings.Expect(comm.rank(), word == std::vector<char>(word.size(), 'r'), "a word did not come");
    }
  });
  findings.Check();
}

void CheckOrderOfCalls(const GroupFactory& make, int size) {
  const auto group = make(size);
  RankFindings findings(group.size());
  OnEveryRank(group, [&](Communicator& comm) {
    // Of falling sizes, so that each would be done before the one that was made before it.
    std::vector<std::vector<int64_t>> values;
    for (size_t i = 0; i < 10; ++i) values.emplace_back(100000 >> i, static_cast<int64_t>(i) + 1);
    std::vector<Handle> handles;
    for (size_t i = 0; i < values.size(); ++i) {
      handles.push_back(comm.AllReduceSum({.step = static_cast<int64_t>(i), .attempt = 0}, absl::MakeSpan(values[i])));
    }
    std::vector<int64_t> other(5, comm.rank());
    handles.push_back(comm.AllReduceSum({.step = 10, .attempt = 0}, absl::MakeSpan(other)));
    findings.Expect(comm.rank(), handles.back()->Wait(kLong).ok(), "the last call fails");
    for (const Handle& handle : handles) {
      findings.Expect(comm.rank(), handle->Done() && handle->Wait(absl::ZeroDuration()).ok(),
                      "a call before one that is complete is not");
    }
    for (size_t i = 0; i < values.size(); ++i) {
      const std::vector<int64_t> expected(100000 >> i, size * (static_cast<int64_t>(i) + 1));
      findings.Expect(comm.rank(), values[i] == expected, "a call took another one's values");
    }
    findings.Expect(comm.rank(), other == std::vector<int64_t>(5, size * (size - 1) / 2), "the last sum is wrong");
  });
  findings.Check();
}

void CheckBadSizes(const GroupFactory& make) {
  const auto group = make(1);
  std::vector<int64_t> values(10);
  std::vector<float> floats(9);
  const auto code = [](const Handle& handle) { return handle->Wait(kLong).code(); };

  std::vector<char> bytes(10);
  CHECK(code(group[0]->AllGather(kTag, absl::MakeSpan(bytes), {9})) == absl::StatusCode::kInvalidArgument);
  CHECK(code(group[0]->AllGather(kTag, absl::MakeSpan(bytes), {5, 5})) == absl::StatusCode::kInvalidArgument);
  const auto exact = [&](const std::vector<ExactRun>& runs) {
    const ExactAddends addends = {.integers = values};
    return code(group[0]->AllReduceExact(kTag, addends, absl::MakeSpan(floats), runs));
  };
  CHECK(exact({}) == absl::StatusCode::kInvalidArgument);
  values.resize(9);
  CHECK(exact({{.begin = 0, .size = 9}}) == absl::StatusCode::kOk);
  CHECK(exact({{.begin = 0, .size = 10}}) == absl::StatusCode::kInvalidArgument);
  CHECK(exact({{.begin = 4, .size = 2}, {.begin = 5, .size = 2}}) == absl::StatusCode::kInvalidArgument);
  CHECK(code(group[0]->Broadcast(kTag, 1, {})) == absl::StatusCode::kInvalidArgument);
  CHECK(group[0]->status().ok());
}

void CheckAbortFromEachSide(const GroupFactory& make, int size) {
  for (int aborting = 0; aborting < size; ++aborting) {
    const auto group = make(size);
    RankFindings findings(group.size());
    std::atomic<int> waiting{0};
    OnEveryRank(group, [&](Communicator& comm) {
      // The highest rank never makes the call that the others block in.
      std::vector<int64_t> values(20000, 1);
      Handle handle;
      if (comm.rank() != size - 1) handle = comm.AllReduceSum(kTag, absl::MakeSpan(values));
      ++waiting;
      if (comm.rank() == aborting) {
        while (waiting < size) std::this_thread::yield();
        comm.Abort(absl::UnavailableError("the verdict"));
        comm.Abort(absl::UnavailableError("a second verdict"));
      }
      if (handle != nullptr) {
        const absl::Status status = handle->Wait(kLong);
        findings.Expect(comm.rank(), status.code() == absl::StatusCode::kAborted,
                        "the call ends with " + status.ToString());
        const bool names_cause = status.message().find("the verdict") != std::string::npos;
        findings.Expect(comm.rank(), names_cause || comm.rank() != aborting,
                        "the first cause is lost: " + status.ToString());
      }
    });
    findings.Check();
    CHECK(group[static_cast<size_t>(aborting)]->status().message() == "the verdict");
  }
}

void CheckUseAfterAbort(const GroupFactory& make, int size) {
  const auto group = make(size);
  group[0]->Abort(absl::UnavailableError("enough"));

  std::vector<int64_t> values(10, 1);
  const Handle handle = group[0]->AllReduceSum(kTag, absl::MakeSpan(values));
  CHECK(handle->Wait(kLong).code() == absl::StatusCode::kAborted);
  CHECK(handle->Wait(kLong).message() == "enough");
  CHECK(handle->Done());
  CHECK(group[0]->status().code() == absl::StatusCode::kAborted);
  for (const auto& comm : group) {
    // Heard of in time, or when the call is tried.
    std::vector<char> bytes(1);
    CHECK(comm->Broadcast(kTag, 0, absl::MakeSpan(bytes))->Wait(kLong).code() == absl::StatusCode::kAborted);
  }
}

void CheckDifferentTags(const GroupFactory& make) {
  const auto group = make(2);
  RankFindings findings(group.size());
  OnEveryRank(group, [&](Communicator& comm) {
    // Rank 1 is an attempt behind: its sums must not be taken.
    std::vector<int64_t> values(10, 1);
    const Tag tag{.step = 5, .attempt = comm.rank() == 0 ? 1u : 0u};
    const absl::Status status = comm.AllReduceSum(tag, absl::MakeSpan(values))->Wait(kLong);
    findings.Expect(comm.rank(), status.code() == absl::StatusCode::kAborted,
                    "the call ends with " + status.ToString());
    findings.Expect(comm.rank(), values == std::vector<int64_t>(10, 1), "values of another attempt were added");
  });
  findings.Check();
}

void CheckClosingEndsPeers(const GroupFactory& make, int size) {
  auto group = make(size);
  std::vector<int64_t> values(20000, 1);
  const Handle handle = group[0]->AllReduceSum(kTag, absl::MakeSpan(values));
  group.back().reset();
  CHECK(handle->Wait(kLong).code() == absl::StatusCode::kAborted);
}

}  // namespace lockstep::worker
