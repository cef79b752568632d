// Executes a cuDNN plan on the host from its own description, node by node and in double: convolutions, products,
// formulas, reductions.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_WORKER_FAKES_FAKE_CUDNN_PROGRAM_H_
#define LOCKSTEP_WORKER_FAKES_FAKE_CUDNN_PROGRAM_H_

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lockstep::device::cuda {

// The addresses of one execution.
struct FakeCudnnPack {
  std::vector<int64_t> uids;
  std::vector<void*> pointers;
  void* workspace = nullptr;
};

// A value of the plan; one that is virtual has memory of its own while the plan runs.
struct FakeCudnnTensor {
  std::vector<int64_t> dims;
  std::vector<int64_t> strides;
  bool bf16 = false;
  void* data = nullptr;

  // A coordinate that is beyond a dimension belongs to one that is shared: by all where the dimension is 1, else by as
  // many neighbours as there are too many.
  int64_t Offset(const std::vector<int64_t>& at, const std::vector<int64_t>& of) const;
  float Get(const std::vector<int64_t>& at, const std::vector<int64_t>& of) const;
  float Get(const std::vector<int64_t>& at) const { return Get(at, dims); }
  void Put(const std::vector<int64_t>& at, float value) const;
};

class FakeCudnnProgram {
 public:
  // Checks that every value of the plan has an address. Numbers on the host are read now.
  FakeCudnnProgram(const nlohmann::json& plan, const FakeCudnnPack& pack);
  void Run() const;

 private:
  const FakeCudnnTensor& At(const nlohmann::json& node, const char* role) const;
  // Dense: the strides that a plan says for its own values need not be those of any memory.
  void* OwnMemory(FakeCudnnTensor* tensor);
  void Pointwise(const nlohmann::json& node) const;

  nlohmann::json nodes_;
  std::map<std::string, FakeCudnnTensor> tensors_;
  std::vector<std::shared_ptr<std::vector<float>>> own_;
};

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_FAKES_FAKE_CUDNN_PROGRAM_H_
