// For tests: while a NoRoom exists, every write to a file of this process fails, as on a full disk.
//
// Threading: thread-compatible; it affects all threads of the process.
#ifndef LOCKSTEP_COMMON_STORAGE_LOCAL_NO_ROOM_H_
#define LOCKSTEP_COMMON_STORAGE_LOCAL_NO_ROOM_H_

#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <csignal>

namespace lockstep {

class NoRoom {
 public:
  NoRoom() : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    REQUIRE(getrlimit(RLIMIT_FSIZE, &before_) == 0);
    const rlimit nothing = {0, before_.rlim_max};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &nothing) == 0);
  }
  ~NoRoom() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  NoRoom(const NoRoom&) = delete;
  NoRoom& operator=(const NoRoom&) = delete;

 private:
  void (*const handler_)(int);
  rlimit before_ = {};
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_STORAGE_LOCAL_NO_ROOM_H_
