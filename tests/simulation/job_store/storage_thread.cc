#include "tests/simulation/job_store/storage_thread.h"

#include <utility>

namespace lockstep::simulation {

StorageThread::~StorageThread() {
  if (!thread_.has_value()) return;
  call_ = nullptr;
  turn_of_call_.release();
  thread_->join();
}

bool StorageThread::Begin(std::function<void()> call) {
  call_ = std::move(call);
  under_way_ = true;
  if (!thread_.has_value()) thread_.emplace([this] { Run(); });
  return Turn();
}

bool StorageThread::Resume() { return Turn(); }

bool StorageThread::Turn() {
  turn_of_call_.release();
  turn_of_driver_.acquire();
  return !under_way_;
}

void StorageThread::Stop() {
  turn_of_driver_.release();
  turn_of_call_.acquire();
}

void StorageThread::Run() {
  while (true) {
    turn_of_call_.acquire();
    if (call_ == nullptr) return;
    call_();
    under_way_ = false;
    turn_of_driver_.release();
  }
}

}  // namespace lockstep::simulation
