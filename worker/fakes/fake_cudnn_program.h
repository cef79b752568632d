// Interprets the JSON description of a cuDNN plan on the host, node by node and in double: convolutions, products,
// point-wise operations, reductions.
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

// A value of the plan. A virtual one is allocated for the duration of the run.
struct FakeCudnnTensor {
  std::vector<int64_t> dims;
  std::vector<int64_t> strides;
  bool bf16 = false;
  void* data = nullptr;

  // The offset of the element at coordinates `at` of a tensor of dimensions `of`, to which this one is broadcast: along
  // a dimension that is k times smaller, k neighbours share an element.
  int64_t Offset(const std::vector<int64_t>& at, const std::vector<int64_t>& of) const;
  float Get(const std::vector<int64_t>& at, const std::vector<int64_t>& of) const;
  float Get(const std::vector<int64_t>& at) const { return Get(at, dims); }
  void Put(const std::vector<int64_t>& at, float value) const;
};

class FakeCudnnProgram {
 public:
  // Checks that every value of the plan has an address. Reads scalars in host memory at once.
  FakeCudnnProgram(const nlohmann::json& plan, const FakeCudnnPack& pack);
  void Run() const;

 private:
  const FakeCudnnTensor& At(const nlohmann::json& node, const char* role) const;
  // Allocates a dense virtual value: the strides that a plan states for virtual values need not be valid.
  void* OwnMemory(FakeCudnnTensor* tensor);
  void Pointwise(const nlohmann::json& node) const;

  nlohmann::json nodes_;
  std::map<std::string, FakeCudnnTensor> tensors_;
  std::vector<std::shared_ptr<std::vector<float>>> own_;
};

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_FAKES_FAKE_CUDNN_PROGRAM_H_
