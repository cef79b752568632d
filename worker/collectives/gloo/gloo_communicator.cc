#include "worker/collectives/gloo/gloo_communicator.h"

#include <array>
#include <cstring>
#include <deque>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/clock/clock.h"
#include "common/liveness/activity.h"
#include "common/status/status_macros.h"
#include "common/sync/mutex.h"
#include "worker/collectives/call.h"
#include "worker/collectives/completion.h"
#include "worker/collectives/gloo/lifeline.h"
#include "worker/collectives/gloo/mesh.h"
#include "worker/collectives/gloo/transfers.h"
#include "worker/collectives/loopback/loopback_communicator.h"

namespace lockstep::worker {
namespace {

// Slots that no call uses: a call's sequence is never so high.
constexpr uint64_t kLifelineSlot = ~uint64_t{0} - 2;
constexpr uint64_t kHelloSlot = ~uint64_t{0} - 1;
constexpr uint64_t kWatchSlot = ~uint64_t{0};

// What a rank that aborts tells every other.
using Note = std::array<char, 240>;

// How long a rank that aborts waits for its notes to leave before it closes the connections.
constexpr absl::Duration kNoteLimit = absl::Milliseconds(5);

class GlooCommunicator final : public CallCommunicator {
 public:
  GlooCommunicator(const GlooOptions& options, std::unique_ptr<Mesh> mesh)
      : options_(options),
        mesh_(std::move(mesh)),
        notes_(static_cast<size_t>(options.size)),
        watch_region_(*mesh_, notes_.data(), notes_.size() * sizeof(Note)),
        lifeline_(*mesh_, kLifelineSlot, options.ask_every, options.answer_limit,
                  [this](const absl::Status& cause) { Abort(cause); }) {}

  // Posts the watch on every peer and starts the threads.
  absl::Status Start() {
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      LS_RETURN_IF_ERROR(
          watch_region_.Receive(peer, kWatchSlot, static_cast<size_t>(peer) * sizeof(Note), sizeof(Note)));
    }
    queue_thread_ = std::thread([this] { RunQueue(); });
    watch_thread_ = std::thread([this] { RunWatch(); });
    lifeline_.Start();
    return absl::OkStatus();
  }

  ~GlooCommunicator() override {
    Abort(absl::AbortedError(absl::StrCat("rank ", rank(), " closed its communicator")));
    if (watch_thread_.joinable()) watch_thread_.join();
    if (queue_thread_.joinable()) queue_thread_.join();
  }

  Generation generation() const override { return options_.generation; }
  int rank() const override { return options_.rank; }
  int size() const override { return options_.size; }
  absl::Status status() const override { return mesh_->status(); }
  uint64_t bytes_moved() const override { return mesh_->bytes_moved(); }

  void Abort(const absl::Status& cause) override {
    mesh_->Break(cause);
    lifeline_.End();
    MutexLock lock(&mutex_);
    changed_.SignalAll();
  }

 protected:
  void Enqueue(Call call) override {
    MutexLock lock(&mutex_);
    if (queue_ended_) {
      call.completion->End(mesh_->status());
      return;
    }
    queue_.push_back(std::move(call));
    changed_.SignalAll();
  }

 private:
  void RunQueue() {
    NameThread("collectives");
    Transfers transfers(*mesh_, options_.piece_elements);
    for (;;) {
      Call call;
      {
        MutexLock lock(&mutex_);
        while (queue_.empty() && mesh_->status().ok()) changed_.Wait(&mutex_);
        if (queue_.empty()) {
          queue_ended_ = true;
          return;
        }
        call = std::move(queue_.front());
        queue_.pop_front();
      }
      lifeline_.Entered(call);
      absl::Status status = mesh_->status();
      const NowDoing running(call.Name(), " with ", size() - 1, " peers");
      if (status.ok()) status = transfers.Run(call);
      call.completion->End(status);
    }
  }

  void RunWatch() {
    const absl::StatusOr<int> heard = watch_region_.Watch();
    if (heard.ok()) {
      Abort(
          absl::AbortedError(absl::StrCat("rank ", *heard, " aborted: ", notes_[static_cast<size_t>(*heard)].data())));
    } else if (mesh_->status().ok()) {
      const int peer = mesh_->LostPeer();
      const absl::Status lost =
          absl::AbortedError(absl::StrCat("lost the connection to rank ", peer, ": ", heard.status().message()));
      Abort(peer < 0 ? lost : Blame(lost, peer));
    }
    std::string note(mesh_->status().message().substr(0, sizeof(Note) - 1));
    note.resize(sizeof(Note));
    mesh_->SendLastNote(kWatchSlot, std::move(note), kNoteLimit);
    mesh_->Close();
  }

  const GlooOptions options_;
  const std::unique_ptr<Mesh> mesh_;
  std::vector<Note> notes_;  // by rank that sends it
  Region watch_region_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Call> queue_ ABSL_GUARDED_BY(mutex_);
  bool queue_ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread queue_thread_;
  std::thread watch_thread_;
  Lifeline lifeline_;  // last: its threads abort this
};

// What ranks tell one another before they trust a connection.
struct Hello {
  uint64_t term;
  uint64_t counter;
  int64_t rank;
  int64_t size;

  friend bool operator==(const Hello&, const Hello&) = default;
};

absl::Status ExchangeHellos(const GlooOptions& options, Mesh& mesh, absl::Duration limit) {
  const auto hello_of = [&](int rank) {
    return Hello{options.generation.term, options.generation.counter, rank, options.size};
  };
  Hello own = hello_of(options.rank);
  std::vector<Hello> heard(static_cast<size_t>(options.size));
  Region outgoing(mesh, &own, sizeof(own));
  std::vector<std::unique_ptr<Region>> incoming(heard.size());
  for (int peer = 0; peer < options.size; ++peer) {
    if (peer == options.rank) continue;
    auto& region = incoming[static_cast<size_t>(peer)];
    region = std::make_unique<Region>(mesh, &heard[static_cast<size_t>(peer)], sizeof(Hello));
    LS_RETURN_IF_ERROR(region->Receive(peer, kHelloSlot, 0, sizeof(Hello)));
    LS_RETURN_IF_ERROR(outgoing.Send(peer, kHelloSlot, 0, sizeof(Hello)));
  }
  for (int peer = 0; peer < options.size; ++peer) {
    if (peer == options.rank) continue;
    const NowDoing waiting("waiting for the greeting of ", mesh.NameOf(peer));
    LS_RETURN_IF_ERROR(incoming[static_cast<size_t>(peer)]->AwaitReceive(limit));
    const Hello& other = heard[static_cast<size_t>(peer)];
    if (other != hello_of(peer)) {
      return absl::AbortedError(absl::StrCat("at the address of rank ", peer, " answers rank ", other.rank, " of ",
                                             other.size, " of generation ", other.term, ".", other.counter,
                                             "; this is generation ", options.generation.ToString(), " of ",
                                             options.size));
    }
  }
  return outgoing.AwaitAllSends(limit);
}

}  // namespace

GlooForming::GlooForming(GlooOptions options, RendezvousStore& store) : options_(std::move(options)), store_(store) {}
GlooForming::~GlooForming() = default;

void GlooForming::Abort(const absl::Status& cause) {
  store_.Abort(cause);
  MutexLock lock(&mutex_);
  if (aborted_.ok()) aborted_ = AsAborted(cause);
  if (mesh_ != nullptr) mesh_->Break(cause);
}

absl::StatusOr<std::unique_ptr<Communicator>> GlooForming::Run() {
  if (options_.rank < 0 || options_.rank >= options_.size) {
    return absl::InvalidArgumentError(absl::StrCat("rank ", options_.rank, " of ", options_.size));
  }
  if (options_.size == 1) {
    MutexLock lock(&mutex_);
    LS_RETURN_IF_ERROR(aborted_);
    return std::move(MakeLoopback(options_.generation, 1).front());
  }
  auto communicator = Connect();
  MutexLock lock(&mutex_);
  mesh_.reset();
  LS_RETURN_IF_ERROR(aborted_);
  return communicator;
}

absl::StatusOr<std::unique_ptr<Communicator>> GlooForming::Connect() {
  const absl::Time until = SteadyNow() + options_.form_limit;
  Mesh* mesh = nullptr;
  {
    LS_ASSIGN_OR_RETURN(std::unique_ptr<Mesh> opened,
                        Mesh::Open(options_.host, options_.rank, options_.size, options_.names));
    MutexLock lock(&mutex_);
    LS_RETURN_IF_ERROR(aborted_);
    mesh_ = std::move(opened);
    mesh = mesh_.get();
  }
  const std::string prefix = absl::StrCat("generation-", options_.generation.ToString(), "/");
  LS_RETURN_IF_ERROR(mesh->Connect(store_, prefix, options_.form_limit));
  LS_RETURN_IF_ERROR(ExchangeHellos(options_, *mesh, until - SteadyNow()));
  MutexLock lock(&mutex_);
  LS_RETURN_IF_ERROR(aborted_);
  auto communicator = std::make_unique<GlooCommunicator>(options_, std::move(mesh_));
  LS_RETURN_IF_ERROR(communicator->Start());
  return communicator;
}

absl::StatusOr<std::unique_ptr<Communicator>> FormGloo(const GlooOptions& options, RendezvousStore& store) {
  return GlooForming(options, store).Run();
}

}  // namespace lockstep::worker
