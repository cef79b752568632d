// What only sockets can show: death of a process, forming, and what is left of earlier generations.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/liveness/activity.h"
#include "common/liveness/proc.h"
#include "tests/contracts/communicator_contract.h"
#include "tests/contracts/communicator_directory_store.h"
#include "tests/contracts/local_sockets.h"
#include "worker/collectives/completion.h"
#include "worker/collectives/rendezvous_store.h"

namespace lockstep::worker {
namespace {

constexpr absl::Duration kLong = absl::Seconds(30);
constexpr Generation kGeneration{.term = 2, .counter = 5};

// Exit codes of a rank in a process of its own.
enum RankExit { kAsExpected = 0, kNotFormed = 3, kWrongSum = 4, kNotAborted = 5, kNotStored = 6 };

// One rank: sums until it is killed (the last rank kills itself in the middle) and then expects Aborted. The last rank
// waits until every other has the sum before: a rank that has it knows nothing of the others, who would be aborted in
// that call.
int RunRank(const std::string& directory, int rank, int size, int kill_at) {
  DirectoryStore store(directory);
  auto formed = FormSockets({.group = {.generation = kGeneration, .rank = rank, .size = size}}, store);
  if (!formed.ok()) return kNotFormed;
  for (int step = 0;; ++step) {
    if (step == kill_at && rank < size - 1 && !store.Set(absl::StrCat("summed-", rank), "").ok()) return kNotStored;
    if (step == kill_at && rank == size - 1) {
      for (int peer = 0; peer < rank; ++peer) {
        if (!store.Get(absl::StrCat("summed-", peer), kLong).ok()) return kNotStored;
      }
      kill(getpid(), SIGKILL);
    }
    std::vector<int64_t> values(200000, rank + 1);
    const absl::Status status =
        (*formed)->AllReduceSum({.step = step, .attempt = 0}, absl::MakeSpan(values))->Wait(kLong);
    if (status.ok() && step < kill_at) {
      if (values != std::vector<int64_t>(200000, size * (size + 1) / 2)) return kWrongSum;
      continue;
    }
    return step == kill_at && status.code() == absl::StatusCode::kAborted ? kAsExpected : kNotAborted;
  }
}

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    const char* base = std::getenv("TEST_TMPDIR");
    path_ = std::string(base != nullptr ? base : "/tmp") + "/rendezvous-XXXXXX";
    REQUIRE(mkdtemp(path_.data()) != nullptr);
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST_CASE("sockets: real processes sum, and the survivors of a SIGKILL get Aborted", "[sockets]") {
  for (const int size : {2, 3, 4}) {
    INFO(size << " processes");
    const TemporaryDirectory directory;
    std::vector<pid_t> children;
    for (int rank = 0; rank < size; ++rank) {
      const pid_t child = fork();
      REQUIRE(child >= 0);
      if (child == 0) _exit(RunRank(directory.path(), rank, size, 5));
      children.push_back(child);
    }
    for (int rank = 0; rank < size; ++rank) {
      int status = 0;
      REQUIRE(waitpid(children[static_cast<size_t>(rank)], &status, 0) > 0);
      INFO("rank " << rank << ", wait status " << status);
      if (rank == size - 1) {
        CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
      } else {
        CHECK((WIFEXITED(status) && WEXITSTATUS(status) == kAsExpected));
      }
    }
  }
}

// What the thread of this process does that waits for a call, as a dump says it. Children share the page.
std::string WaiterDoes() {
  const std::vector<int> own = liveness::ThreadsOf(getpid());
  for (const auto& thread : liveness::ReadActivities(liveness::OwnPage(), liveness::MonotonicNs())) {
    if (thread.name == "waiter" && std::count(own.begin(), own.end(), thread.tid) > 0)
      return liveness::DoingText(thread.doing);
  }
  return "";
}

// One of three ranks begins a collective.
Handle StartCall(Communicator& communicator, bool gathers) {
  static std::vector<int64_t> values(200000, 1);
  static std::vector<char> bytes(30);
  if (!gathers) return communicator.AllReduceSum({}, absl::MakeSpan(values));
  return communicator.AllGather({}, absl::MakeSpan(bytes), std::vector<int64_t>{10, 10, 10});
}

TEST_CASE("sockets: what a collective waits for is named as people know it", "[sockets]") {
  const bool gathers = GENERATE(false, true);
  const TemporaryDirectory directory;
  std::vector<pid_t> children;
  for (int rank = 1; rank < 3; ++rank) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    children.push_back(child);
    if (child != 0) continue;
    DirectoryStore store(directory.path());
    const auto formed = FormSockets({.group = {.generation = kGeneration, .rank = rank, .size = 3}}, store);
    if (!formed.ok()) _exit(kNotFormed);
    if (rank == 2) kill(getpid(), SIGSTOP);
    StartCall(**formed, gathers)->Wait(kLong).IgnoreError();
    _exit(kAsExpected);
  }
  DirectoryStore store(directory.path());
  const auto formed =
      FormSockets({.group = {.generation = kGeneration,
                             .rank = 0,
                             .size = 3,
                             .names = {"worker-7 at 10.0.0.7:1", "worker-8 at 10.0.0.8:1", "worker-9 at 10.0.0.9:1"}}},
                  store);
  std::string doing;
  if (formed.ok()) {
    const Handle call = StartCall(**formed, gathers);
    const std::string expected = gathers ? "gathering from worker-9 at 10.0.0.9:1 for " : "receiving from worker-9 at ";
    absl::Status status;
    std::thread waiter([&] {
      NameThread("waiter");
      status = call->Wait(kLong);
    });
    while (doing.find(expected) == std::string::npos && !call->Done()) doing = WaiterDoes();
    CHECK_THAT(doing, Catch::Contains(expected) && Catch::Contains(" with 2 peers"));
    (*formed)->Abort(absl::AbortedError("seen"));
    waiter.join();
    CHECK_FALSE(status.ok());
  }
  for (const pid_t child : children) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  CHECK(formed.ok());
}

TEST_CASE("sockets: a peer that stands still while its connection stands is named", "[sockets]") {
  const TemporaryDirectory directory;
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    DirectoryStore store(directory.path());
    const auto formed = FormSockets({.group = {.generation = kGeneration, .rank = 1, .size = 2}}, store);
    if (!formed.ok()) _exit(kNotFormed);
    kill(getpid(), SIGSTOP);
    _exit(kAsExpected);
  }
  DirectoryStore store(directory.path());
  const auto formed = FormSockets({.group = {.generation = kGeneration,
                                             .rank = 0,
                                             .size = 2,
                                             .ask_every = absl::Milliseconds(1),
                                             .answer_limit = absl::Milliseconds(50)}},
                                  store);
  int64_t value = 1;
  absl::Status status = formed.status();
  if (formed.ok()) status = (*formed)->AllReduceSum({}, absl::MakeSpan(&value, 1))->Wait(kLong);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);

  CHECK(status.code() == absl::StatusCode::kAborted);
  CHECK(std::string(status.message()).find("rank 1 cannot be reached") != std::string::npos);
  CHECK(BlamedRank(status) == 1);
}

TEST_CASE("sockets: a hundred generations form in a row over one store", "[sockets]") {
  InProcessStore store;
  for (uint64_t counter = 1; counter <= 100; ++counter) {
    INFO("generation " << counter);
    const int size = 2 + static_cast<int>(counter % 3);
    std::vector<SocketForming::Options> ranks;
    for (int rank = 0; rank < size; ++rank) {
      ranks.push_back({.group = {.generation = {.term = 1, .counter = counter}, .rank = rank, .size = size}});
    }
    const Group group = Form(store, ranks);
    std::vector<int64_t> values(static_cast<size_t>(size), 1);
    std::vector<Handle> handles;
    for (size_t r = 0; r < group.size(); ++r) {
      INFO(group[r].status().ToString());
      REQUIRE(group[r].ok());
      handles.push_back((*group[r])->AllReduceSum({}, absl::MakeSpan(&values[r], 1)));
    }
    for (const Handle& handle : handles) REQUIRE(handle->Wait(kLong).ok());
    CHECK(values == std::vector<int64_t>(static_cast<size_t>(size), size));
    // Every other one is left broken behind.
    if (counter % 2 == 0) (*group[0])->Abort(absl::UnavailableError("next"));
  }
}

TEST_CASE("sockets: a peer that is alive may take as long as it likes", "[sockets]") {
  InProcessStore store;
  std::vector<SocketForming::Options> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.push_back(
        {.group = {.generation = kGeneration, .rank = rank, .size = 3, .ask_every = absl::Milliseconds(1)}});
  }
  const Group group = Form(store, ranks);
  for (const auto& rank : group) REQUIRE(rank.ok());
  std::vector<std::vector<int64_t>> values(3, std::vector<int64_t>(20000, 1));
  std::vector<Handle> handles;
  for (size_t r = 0; r < 2; ++r) handles.push_back((*group[r])->AllReduceSum({}, absl::MakeSpan(values[r])));

  // A hundred times as long as they wait before they ask.
  CHECK(handles[0]->Wait(absl::Milliseconds(100)).code() == absl::StatusCode::kDeadlineExceeded);
  CHECK_FALSE(handles[1]->Done());
  handles.push_back((*group[2])->AllReduceSum({}, absl::MakeSpan(values[2])));

  for (const Handle& handle : handles) CHECK(handle->Wait(kLong).ok());
  for (const auto& sum : values) CHECK(sum == std::vector<int64_t>(20000, 3));
}

TEST_CASE("sockets: sums larger than any buffer on the way, encrypted or not", "[sockets]") {
  const PeerSecurity security = GENERATE(PeerSecurity::kEncrypted, PeerSecurity::kAuthenticated);
  const int size = GENERATE(2, 3);
  CAPTURE(size);
  InProcessStore store;
  std::vector<SocketForming::Options> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.push_back({.group = {.generation = kGeneration, .rank = rank, .size = size}, .security = security});
  }
  const Group group = Form(store, ranks);
  for (const auto& rank : group) REQUIRE(rank.ok());
  constexpr size_t kValues = 4'000'000;
  std::vector<std::vector<int64_t>> values;
  std::vector<Handle> handles;
  for (int rank = 0; rank < size; ++rank) values.emplace_back(kValues, rank + 1);
  for (size_t r = 0; r < group.size(); ++r) {
    handles.push_back((*group[r])->AllReduceSum({}, absl::MakeSpan(values[r])));
  }

  for (const Handle& handle : handles) CHECK(handle->Wait(kLong).ok());
  for (const auto& sum : values) CHECK(sum == std::vector<int64_t>(kValues, size * (size + 1) / 2));
}

TEST_CASE("sockets: a peer that does not come ends forming at its limit", "[sockets]") {
  InProcessStore store;
  const Group group =
      Form(store, {{.group = {.generation = kGeneration, .rank = 0, .size = 2}, .form_limit = absl::Milliseconds(50)}});
  CHECK(group[0].status().code() == absl::StatusCode::kDeadlineExceeded);
  CHECK(BlamedRank(group[0].status()) == 1);
}

TEST_CASE("sockets: a peer that left its address and died ends forming at its limit", "[sockets]") {
  // The addresses of a rank whose sockets are closed: whoever connects is refused, whoever listens waits.
  for (const int dead : {0, 1}) {
    InProcessStore earlier;
    Form(earlier,
         {{.group = {.generation = kGeneration, .rank = dead, .size = 2}, .form_limit = absl::Milliseconds(20)}});
    InProcessStore store;
    const std::string key = "generation-2.5/" + std::to_string(dead);
    REQUIRE(store.Set(key, *earlier.Get(key, absl::ZeroDuration())).ok());

    const Group group = Form(store, {{.group = {.generation = kGeneration, .rank = 1 - dead, .size = 2},
                                      .form_limit = absl::Milliseconds(200)}});
    CHECK_FALSE(group[0].ok());
    CHECK(BlamedRank(group[0].status()) == dead);
  }
}

TEST_CASE("sockets: an abort ends forming, while it waits for an address and while it connects", "[sockets]") {
  for (const bool address_known : {false, true}) {
    InProcessStore earlier;
    Form(earlier, {{.group = {.generation = kGeneration, .rank = 1, .size = 2}, .form_limit = absl::Milliseconds(20)}});
    InProcessStore store;
    if (address_known) {
      REQUIRE(store.Set("generation-2.5/1", *earlier.Get("generation-2.5/1", absl::ZeroDuration())).ok());
    }
    const auto listener = PeerListener::Start("127.0.0.1", {.high = 0, .low = 1}).value();
    SocketForming forming({.group = {.generation = kGeneration, .rank = 0, .size = 2}, .form_limit = absl::Hours(1)},
                          *listener, store);
    absl::Status status;
    std::thread thread([&] { status = forming.Run().status(); });
    // Past the point where its own address is out.
    REQUIRE(store.Get("generation-2.5/0", kLong).ok());
    forming.Abort(absl::UnavailableError("the verdict"));
    thread.join();
    INFO(status.ToString());
    CHECK_FALSE(status.ok());
    // Where the connection was refused before the abort came, that is the status.
    if (!address_known) CHECK(status.message() == "the verdict");
    CHECK(forming.Run().status().code() == absl::StatusCode::kAborted);
  }
}

// Gives the addresses that an earlier generation left under the keys of a later one, as a store without prefixes would.
class RenamingStore final : public RendezvousStore {
 public:
  explicit RenamingStore(InProcessStore& inner) : inner_(inner) {}
  absl::Status Set(absl::string_view key, absl::string_view bytes) override { return inner_.Set(Strip(key), bytes); }
  absl::StatusOr<std::string> Get(absl::string_view key, absl::Duration limit) override {
    return inner_.Get(Strip(key), limit);
  }
  void Abort(const absl::Status& cause) override { inner_.Abort(cause); }

 private:
  static absl::string_view Strip(absl::string_view key) { return key.substr(key.rfind('/')); }
  InProcessStore& inner_;
};

TEST_CASE("sockets: a rank of another generation is refused even when it can connect", "[sockets]") {
  InProcessStore inner;
  RenamingStore store(inner);
  const Group group = Form(store, {{.group = {.generation = {.term = 1, .counter = 1}, .rank = 0, .size = 2},
                                    .form_limit = absl::Milliseconds(200)},
                                   {.group = {.generation = {.term = 1, .counter = 2}, .rank = 1, .size = 2}}});
  // It ends nobody's forming but its own.
  CHECK(group[0].status().code() == absl::StatusCode::kDeadlineExceeded);
  CHECK(group[1].status().code() == absl::StatusCode::kUnavailable);
}

TEST_CASE("sockets: addresses of an earlier generation in the same store are never used", "[sockets]") {
  InProcessStore store;
  Form(store, {{.group = {.generation = {.term = 1, .counter = 1}, .rank = 1, .size = 2},
                .form_limit = absl::Milliseconds(20)}});
  // Rank 1 of the next generation is not there: what it left before must not be taken for it.
  const Group group = Form(store, {{.group = {.generation = {.term = 1, .counter = 2}, .rank = 0, .size = 2},
                                    .form_limit = absl::Milliseconds(50)}});
  CHECK(group[0].status().code() == absl::StatusCode::kDeadlineExceeded);
}

TEST_CASE("sockets: an address that is not this machine's is an error that says so", "[sockets]") {
  InProcessStore store;
  const Group group = Form(store, {{.group = {.generation = kGeneration, .rank = 0, .size = 2}, .host = "192.0.2.1"}});
  CHECK(group[0].status().code() == absl::StatusCode::kUnavailable);
  CHECK(std::string(group[0].status().message()).find("192.0.2.1") != std::string::npos);
  CHECK(BlamedRank(group[0].status()) == 0);  // itself
}

}  // namespace
}  // namespace lockstep::worker
