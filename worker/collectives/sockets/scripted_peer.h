// A fake peer of a SocketCommunicator, without sockets: a test writes its bytes, which may end in the middle of a
// frame.
//
// Threading: thread-safe. Outlives the communicator that owns its stream.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_SCRIPTED_PEER_H_
#define LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_SCRIPTED_PEER_H_

#include <sys/eventfd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "common/sync/mutex.h"
#include "worker/collectives/sockets/peer_link.h"
#include "worker/collectives/sockets/peer_stream.h"
#include "worker/collectives/sockets/tcp.h"

namespace lockstep::worker {

class ScriptedPeer {
 public:
  // The communicator's end. Call it once.
  std::unique_ptr<PeerStream> Stream() { return std::make_unique<Connection>(*this); }

  // Sends bytes to the communicator. Blocks until it has read all of them, or has closed the connection.
  void Give(const std::string& bytes) {
    MutexLock lock(&mutex_);
    given_ += bytes;
    waits_ = false;
    Announce();
    while (!waits_ && !closed_) changed_.Wait(&mutex_);
  }

  size_t written() {
    MutexLock lock(&mutex_);
    return written_;
  }
  // Blocks until the communicator has written more than `before` bytes in all, or has closed the connection.
  void AwaitMoreThan(size_t before) {
    MutexLock lock(&mutex_);
    while (written_ <= before && !closed_) changed_.Wait(&mutex_);
  }

  // A frame as a peer sends it; without `counts`, as one that was given up.
  static std::string Frame(const FrameHead& head, const std::string& bytes, bool counts = true) {
    return std::string(reinterpret_cast<const char*>(&head), sizeof(head)) + bytes + (counts ? '\1' : '\0');
  }

 private:
  class Connection final : public PeerStream {
   public:
    explicit Connection(ScriptedPeer& peer) : peer_(peer) {}
    ~Connection() override {
      MutexLock lock(&peer_.mutex_);
      peer_.closed_ = true;
      peer_.changed_.SignalAll();
    }
    int fd() const override { return peer_.announces_.get(); }
    bool encrypts() const override { return false; }

    absl::StatusOr<size_t> Read(absl::Span<const iovec> into) override {
      MutexLock lock(&peer_.mutex_);
      size_t count = 0;
      for (const iovec& part : into) {
        const size_t bytes = std::min(part.iov_len, peer_.given_.size() - count);
        if (bytes > 0) std::memcpy(part.iov_base, peer_.given_.data() + count, bytes);
        count += bytes;
      }
      peer_.given_.erase(0, count);
      if (count > 0) return count;
      uint64_t times = 0;
      (void)!read(fd(), &times, sizeof(times));
      peer_.waits_ = true;
      peer_.changed_.SignalAll();
      return size_t{0};
    }

    absl::StatusOr<size_t> Write(absl::Span<const iovec> from) override {
      MutexLock lock(&peer_.mutex_);
      size_t count = 0;
      for (const iovec& part : from) count += part.iov_len;
      peer_.written_ += count;
      peer_.changed_.SignalAll();
      return count;
    }

    absl::StatusOr<bool> Flush() override { return true; }

   private:
    ScriptedPeer& peer_;
  };

  void Announce() {
    const uint64_t one = 1;
    (void)!write(announces_.get(), &one, sizeof(one));
  }

  const Descriptor announces_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};  // readable: there is something to read
  Mutex mutex_;
  CondVar changed_;
  std::string given_ ABSL_GUARDED_BY(mutex_);
  bool waits_ ABSL_GUARDED_BY(mutex_) = false;  // all that was given is read
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  size_t written_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_SCRIPTED_PEER_H_
