// An owned file descriptor.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_COMMON_STORAGE_DESCRIPTOR_H_
#define LOCKSTEP_COMMON_STORAGE_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace lockstep {

// Closes the descriptor when destroyed; -1 stands for none.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() { Close(); }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      Close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }
  void Close() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_STORAGE_DESCRIPTOR_H_
