#include "common/object_store/part_senders.h"

#include <utility>

#include "common/liveness/activity.h"

namespace lockstep {

PartSenders::~PartSenders() {
  queue_.Close();
  MutexLock lock(&mutex_);
  for (std::thread& thread : started_) thread.join();
}

void PartSenders::Run(std::function<void()> send) {
  {
    MutexLock lock(&mutex_);
    while (started_.size() < static_cast<size_t>(threads_)) {
      started_.emplace_back([this] {
        NameThread("parts");
        while (auto next = queue_.Pop()) (*next)();
      });
    }
  }
  queue_.Push(std::move(send));
}

}  // namespace lockstep
