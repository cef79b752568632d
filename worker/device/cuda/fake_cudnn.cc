#include "worker/device/cuda/fake_cudnn.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/status/check.h"
#include "worker/device/cuda/runtime_on_host.h"

namespace lockstep::device::cuda {
namespace {

using Json = nlohmann::json;

cudaStream_t& CurrentStream() {
  static cudaStream_t stream = nullptr;
  return stream;
}

// The pointers of the variant packs that are being made, by descriptor.
struct Pack {
  std::vector<int64_t> uids;
  std::vector<void*> pointers;
  void* workspace = nullptr;
};

std::map<cudnnBackendDescriptor_t, Pack>& Packs() {
  static auto* packs = new std::map<cudnnBackendDescriptor_t, Pack>;
  return *packs;
}

// A value of the plan; one that is virtual has memory of its own while the plan runs.
struct Tensor {
  std::vector<int64_t> dims;
  std::vector<int64_t> strides;
  bool bf16 = false;
  void* data = nullptr;

  int64_t Offset(const std::vector<int64_t>& at) const {
    int64_t offset = 0;
    for (size_t i = 0; i < dims.size(); ++i) {
      LS_CHECK(at[i] >= 0 && at[i] < dims[i], "an element of the tensor");
      offset += at[i] * strides[i];
    }
    return offset;
  }
  float Get(const std::vector<int64_t>& at) const {
    if (!bf16) return static_cast<const float*>(data)[Offset(at)];
    return std::bit_cast<float>(uint32_t{static_cast<const uint16_t*>(data)[Offset(at)]} << 16);
  }
  void Put(const std::vector<int64_t>& at, float value) const {
    if (!bf16) {
      static_cast<float*>(data)[Offset(at)] = value;
      return;
    }
    const auto bits = std::bit_cast<uint32_t>(value);
    static_cast<uint16_t*>(data)[Offset(at)] = static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
};

// Calls visit with every coordinate below `dims`.
template <typename Visit>
void ForEachCoordinate(const std::vector<int64_t>& dims, const Visit& visit) {
  std::vector<int64_t> at(dims.size(), 0);
  for (;;) {
    visit(at);
    size_t d = dims.size();
    while (d > 0 && ++at[d - 1] == dims[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

// One plan with the addresses of one execution.
class Program {
 public:
  Program(const Json& plan, const Pack& pack) : nodes_(plan.at("operationGraph").at("nodes")) {
    for (const Json& json : plan.at("operationGraph").at("tensors")) {
      Tensor tensor{.dims = json.at("dim"), .strides = json.at("stride")};
      const std::string type = json.at("dataType");
      tensor.bf16 = type == "CUDNN_DATA_BFLOAT16";
      LS_CHECK(tensor.bf16 || type == "CUDNN_DATA_FLOAT", "a type that the fake knows");
      const std::string name = json.at("name");
      if (json.at("isVirtual")) {
        int64_t count = 1;
        for (const int64_t dim : tensor.dims) count *= dim;
        own_.push_back(std::make_shared<std::vector<float>>(static_cast<size_t>(count)));
        tensor.data = own_.back()->data();
      } else {
        const auto uid = std::find(pack.uids.begin(), pack.uids.end(), std::stoll(name));
        LS_CHECK(uid != pack.uids.end(), "every value of the plan has an address");
        tensor.data = pack.pointers[static_cast<size_t>(uid - pack.uids.begin())];
        LS_CHECK(tensor.data != nullptr, "an address");
      }
      tensors_.emplace(name, std::move(tensor));
    }
  }

  void Run() const {
    for (const Json& node : nodes_) {
      const std::string operation = node.at("operation");
      if (operation == "CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR") {
        Pointwise(node);
      } else if (operation == "CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR") {
        Convolve(node, At(node, "X"), At(node, "W"), At(node, "Y"), 2);
      } else if (operation == "CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR") {
        Convolve(node, At(node, "dX"), At(node, "W"), At(node, "dY"), 0);
      } else if (operation == "CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR") {
        Convolve(node, At(node, "X"), At(node, "dW"), At(node, "dY"), 1);
      } else {
        LS_CHECK(false, "an operation that the fake knows");
      }
    }
  }

 private:
  const Tensor& At(const Json& node, const char* role) const { return tensors_.at(node.at(role)); }

  // Adds up y[n, k, o] += x[n, c, o * stride - pad + e * dilation] * w[k, c, e] into the one of x, w and y that
  // `result` counts, in double.
  static void Convolve(const Json& node, const Tensor& x, const Tensor& w, const Tensor& y, int result) {
    LS_CHECK(node.at("mode") == "CUDNN_CROSS_CORRELATION" && node.at("alpha") == 1.0 && node.at("beta") == 0.0,
             "a plain convolution");
    const std::vector<int64_t> pad = node.at("pad"), stride = node.at("stride"), dilation = node.at("dilation");
    const std::array<const Tensor*, 3> all = {&x, &w, &y};
    const Tensor& out = *all[static_cast<size_t>(result)];
    std::map<int64_t, double> sums;
    const int64_t per_group = w.dims[0] / (x.dims[1] / w.dims[1]);
    ForEachCoordinate(y.dims, [&](const std::vector<int64_t>& at_y) {
      ForEachCoordinate(std::vector<int64_t>(w.dims.begin() + 1, w.dims.end()), [&](const std::vector<int64_t>& e) {
        std::vector<int64_t> at_x = {at_y[0], at_y[1] / per_group * w.dims[1] + e[0]};
        std::vector<int64_t> at_w = {at_y[1], e[0]};
        for (size_t d = 0; d < pad.size(); ++d) {
          at_x.push_back(at_y[2 + d] * stride[d] - pad[d] + e[1 + d] * dilation[d]);
          if (at_x.back() < 0 || at_x.back() >= x.dims[2 + d]) return;
          at_w.push_back(e[1 + d]);
        }
        const std::array<const std::vector<int64_t>*, 3> at = {&at_x, &at_w, &at_y};
        double product = 1;
        for (int i = 0; i < 3; ++i) {
          if (i != result) product *= all[static_cast<size_t>(i)]->Get(*at[static_cast<size_t>(i)]);
        }
        sums[out.Offset(*at[static_cast<size_t>(result)])] += product;
      });
    });
    ForEachCoordinate(out.dims, [&](const std::vector<int64_t>& at) {
      const auto sum = sums.find(out.Offset(at));
      out.Put(at, sum == sums.end() ? 0.0f : static_cast<float>(sum->second));
    });
  }

  void Pointwise(const Json& node) const {
    const std::string mode = node.at("pointwiseMode");
    const Tensor& x = At(node, "X");
    const Tensor& y = At(node, "Y");
    const Tensor* b = mode == "CUDNN_POINTWISE_ADD" ? &At(node, "B") : nullptr;
    LS_CHECK(b != nullptr || mode == "CUDNN_POINTWISE_RELU_FWD", "a formula that the fake knows");
    ForEachCoordinate(y.dims, [&](const std::vector<int64_t>& at) {
      float value = x.Get(at);
      if (b != nullptr) {
        std::vector<int64_t> at_b = at;
        for (size_t i = 0; i < at.size(); ++i) at_b[i] = b->dims[i] == 1 ? 0 : at[i];
        value += b->Get(at_b);
      } else {
        value = std::max(value, 0.0f);
      }
      y.Put(at, value);
    });
  }

  Json nodes_;
  std::map<std::string, Tensor> tensors_;
  std::vector<std::shared_ptr<std::vector<float>>> own_;
};

std::string JsonOf(cudnnBackendDescriptor_t plan) {
  constexpr auto kJson = CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION;
  int64_t count = 0;
  LS_CHECK(cudnnBackendGetAttribute(plan, kJson, CUDNN_TYPE_CHAR, 0, &count, nullptr) == CUDNN_STATUS_SUCCESS,
           "a plan describes itself");
  std::string json(static_cast<size_t>(count), '\0');
  LS_CHECK(cudnnBackendGetAttribute(plan, kJson, CUDNN_TYPE_CHAR, count, &count, json.data()) == CUDNN_STATUS_SUCCESS,
           "a plan describes itself");
  return json.substr(0, json.find('\0'));
}

template <typename T>
std::vector<T> Values(int64_t count, const void* values) {
  return std::vector<T>(static_cast<const T*>(values), static_cast<const T*>(values) + count);
}

}  // namespace

FakeCudnn& FakeCudnn::Get() {
  static auto* fake = new FakeCudnn;
  return *fake;
}

}  // namespace lockstep::device::cuda

using lockstep::device::cuda::FakeCudnn;
using lockstep::device::cuda::Packs;
using lockstep::device::cuda::Values;

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  static char something = 0;
  *handle = reinterpret_cast<cudnnHandle_t>(&something);
  return FakeCudnn::Get().create;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t) { return CUDNN_STATUS_SUCCESS; }

cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t stream) {
  lockstep::device::cuda::CurrentStream() = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t, cudaStream_t* stream) {
  *stream = lockstep::device::cuda::CurrentStream();
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  // A variant pack cannot be read back: what goes into one is noted on the way.
  if (name == CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS) Packs()[descriptor].uids = Values<int64_t>(count, values);
  if (name == CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS) Packs()[descriptor].pointers = Values<void*>(count, values);
  if (name == CUDNN_ATTR_VARIANT_PACK_WORKSPACE) Packs()[descriptor].workspace = Values<void*>(1, values)[0];
  static const auto original =
      reinterpret_cast<decltype(&cudnnBackendSetAttribute)>(dlsym(RTLD_NEXT, "cudnnBackendSetAttribute"));
  return original(descriptor, name, type, count, values);
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  using lockstep::device::cuda::Json;
  const auto found = Packs().find(pack);
  LS_CHECK(found != Packs().end(), "a variant pack was filled");
  const Json json = Json::parse(lockstep::device::cuda::JsonOf(plan));
  const auto program = std::make_shared<lockstep::device::cuda::Program>(json, found->second);
  const void* const workspace = found->second.workspace;
  Packs().erase(found);
  int64_t workspace_bytes = 0, count = 0;
  LS_CHECK(cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count,
                                    &workspace_bytes) == CUDNN_STATUS_SUCCESS,
           "a plan knows its scratch");
  if (workspace_bytes > 0 && workspace == nullptr) return CUDNN_STATUS_BAD_PARAM;
  ++FakeCudnn::Get().executions;
  const bool queued =
      lockstep::device::cuda::Enqueue(lockstep::device::cuda::CurrentStream(), [program] { program->Run(); }).ok();
  return queued ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}
