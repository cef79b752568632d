#include "worker/fakes/fake_cudnn_program.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "common/status/check.h"
#include "worker/device/cuda/checker/kernel_checks.h"

namespace lockstep::device::cuda {
namespace {

using Json = nlohmann::json;
using CudnnTensor = FakeCudnnTensor;
using Coordinates = std::vector<int64_t>;

// Calls visit with every coordinate below `dims`.
template <typename Visit>
void ForEachCoordinate(const Coordinates& dims, const Visit& visit) {
  Coordinates at(dims.size(), 0);
  for (;;) {
    visit(at);
    size_t d = dims.size();
    while (d > 0 && ++at[d - 1] == dims[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

// Adds up y[n, k, o] += x[n, c, o * stride - pad + e * dilation] * w[k, c, e] into the one of x, w and y that
// `result` counts, in double.
void Convolve(const Json& node, const CudnnTensor& x, const CudnnTensor& w, const CudnnTensor& y, int result) {
  LS_CHECK(node.at("mode") == "CUDNN_CROSS_CORRELATION" && node.at("alpha") == 1.0 && node.at("beta") == 0.0,
           "a plain convolution");
  const Coordinates pad = node.at("pad"), stride = node.at("stride"), dilation = node.at("dilation");
  const std::array<const CudnnTensor*, 3> all = {&x, &w, &y};
  const CudnnTensor& out = *all[static_cast<size_t>(result)];
  std::map<int64_t, double> sums;
  const int64_t per_group = w.dims[0] / (x.dims[1] / w.dims[1]);
  ForEachCoordinate(y.dims, [&](const Coordinates& at_y) {
    ForEachCoordinate(Coordinates(w.dims.begin() + 1, w.dims.end()), [&](const Coordinates& e) {
      Coordinates at_x = {at_y[0], at_y[1] / per_group * w.dims[1] + e[0]};
      Coordinates at_w = {at_y[1], e[0]};
      for (size_t d = 0; d < pad.size(); ++d) {
        at_x.push_back(at_y[2 + d] * stride[d] - pad[d] + e[1 + d] * dilation[d]);
        if (at_x.back() < 0 || at_x.back() >= x.dims[2 + d]) return;
        at_w.push_back(e[1 + d]);
      }
      const std::array<const Coordinates*, 3> at = {&at_x, &at_w, &at_y};
      double product = 1;
      for (int i = 0; i < 3; ++i) {
        if (i != result) product *= all[static_cast<size_t>(i)]->Get(*at[static_cast<size_t>(i)]);
      }
      sums[out.Offset(*at[static_cast<size_t>(result)], out.dims)] += product;
    });
  });
  ForEachCoordinate(out.dims, [&](const Coordinates& at) {
    const auto sum = sums.find(out.Offset(at, out.dims));
    out.Put(at, sum == sums.end() ? 0.0f : static_cast<float>(sum->second));
  });
}

// c = a b for the matrices of the last two dimensions; others of a and b may be shared.
void Multiply(const CudnnTensor& a, const CudnnTensor& b, const CudnnTensor& c) {
  const size_t row = c.dims.size() - 2, column = row + 1;
  Coordinates of_a = c.dims, of_b = c.dims;
  of_a[column] = of_b[row] = a.dims[column];
  ForEachCoordinate(c.dims, [&](const Coordinates& at) {
    Coordinates at_a = at, at_b = at;
    double sum = 0;
    for (int64_t k = 0; k < a.dims[column]; ++k) {
      at_a[column] = at_b[row] = k;
      sum += double{a.Get(at_a, of_a)} * double{b.Get(at_b, of_b)};
    }
    c.Put(at, static_cast<float>(sum));
  });
}

// Elements of x that share one of y are added up, or the largest is taken.
void Reduce(const Json& node, const CudnnTensor& x, const CudnnTensor& y) {
  const std::string operation = node.at("reductionOp");
  const bool largest = operation == "CUDNN_REDUCE_TENSOR_MAX";
  LS_CHECK(largest || operation == "CUDNN_REDUCE_TENSOR_ADD", "a reduction that the fake knows");
  std::map<int64_t, double> results;
  ForEachCoordinate(x.dims, [&](const Coordinates& at) {
    const double value = x.Get(at);
    const auto [result, first] = results.emplace(y.Offset(at, x.dims), value);
    if (!first) result->second = largest ? std::max(result->second, value) : result->second + value;
  });
  ForEachCoordinate(y.dims,
                    [&](const Coordinates& at) { y.Put(at, static_cast<float>(results.at(y.Offset(at, y.dims)))); });
}

// A matrix becomes its transpose.
void Transpose(const CudnnTensor& x, const CudnnTensor& y) {
  const size_t row = y.dims.size() - 2, column = row + 1;
  ForEachCoordinate(y.dims, [&](const Coordinates& at) {
    Coordinates from = at;
    std::swap(from[row], from[column]);
    y.Put(at, x.Get(from));
  });
}

}  // namespace

int64_t FakeCudnnTensor::Offset(const Coordinates& at, const Coordinates& of) const {
  int64_t offset = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    LS_CHECK(at[i] >= 0 && at[i] < of[i] && of[i] % dims[i] == 0, "an element of the tensor");
    offset += at[i] / (of[i] / dims[i]) * strides[i];
  }
  return offset;
}

float FakeCudnnTensor::Get(const Coordinates& at, const Coordinates& of) const {
  if (!bf16) return checker::Load<float>(data, Offset(at, of));
  return std::bit_cast<float>(uint32_t{checker::Load<uint16_t>(data, Offset(at, of))} << 16);
}

void FakeCudnnTensor::Put(const Coordinates& at, float value) const {
  if (!bf16) {
    checker::Store(data, Offset(at, dims), value);
    return;
  }
  const auto bits = std::isnan(value) ? uint32_t{0x7fc00000} : std::bit_cast<uint32_t>(value);
  checker::Store(data, Offset(at, dims), static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16));
}

FakeCudnnProgram::FakeCudnnProgram(const Json& plan, const FakeCudnnPack& pack)
    : nodes_(plan.at("operationGraph").at("nodes")) {
  for (const Json& json : plan.at("operationGraph").at("tensors")) {
    CudnnTensor tensor{.dims = json.at("dim"), .strides = json.at("stride")};
    const std::string type = json.at("dataType");
    const bool is_virtual = json.at("isVirtual"), on_host = json.at("isByValue");
    tensor.bf16 = type == "CUDNN_DATA_BFLOAT16";
    // What a plan keeps to itself is kept as floats, whatever its type.
    LS_CHECK(is_virtual || tensor.bf16 || type == "CUDNN_DATA_FLOAT", "a type that the fake knows");
    const std::string name = json.at("name");
    if (is_virtual) {
      tensor.data = OwnMemory(&tensor);
    } else {
      const auto uid = std::find(pack.uids.begin(), pack.uids.end(), std::stoll(name));
      LS_CHECK(uid != pack.uids.end(), "every value of the plan has an address");
      tensor.data = pack.pointers[static_cast<size_t>(uid - pack.uids.begin())];
      LS_CHECK(tensor.data != nullptr, "an address");
    }
    if (on_host) {
      const float value = *static_cast<const float*>(tensor.data);
      tensor.data = OwnMemory(&tensor);
      *static_cast<float*>(tensor.data) = value;
    }
    tensors_.emplace(name, std::move(tensor));
  }
}

void FakeCudnnProgram::Run() const {
  for (const Json& node : nodes_) {
    const std::string operation = node.at("operation");
    if (operation == "CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR") {
      Pointwise(node);
    } else if (operation == "CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR") {
      Multiply(At(node, "matA"), At(node, "matB"), At(node, "matC"));
    } else if (operation == "CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR") {
      Reduce(node, At(node, "X"), At(node, "Y"));
    } else if (operation == "CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR") {
      Transpose(At(node, "X"), At(node, "Y"));
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

const FakeCudnnTensor& FakeCudnnProgram::At(const Json& node, const char* role) const {
  return tensors_.at(node.at(role));
}

void* FakeCudnnProgram::OwnMemory(FakeCudnnTensor* tensor) {
  int64_t count = 1;
  for (size_t i = tensor->dims.size(); i-- > 0;) {
    tensor->strides[i] = count;
    count *= tensor->dims[i];
  }
  own_.push_back(std::make_shared<std::vector<float>>(static_cast<size_t>(count)));
  return own_.back()->data();
}

void FakeCudnnProgram::Pointwise(const Json& node) const {
  constexpr size_t kPrefix = sizeof("CUDNN_POINTWISE_") - 1;
  const std::string mode = std::string(node.at("pointwiseMode")).substr(kPrefix);
  const CudnnTensor& x = At(node, "X");
  const CudnnTensor& y = At(node, "Y");
  const CudnnTensor* b = node.contains("B") ? &At(node, "B") : nullptr;
  ForEachCoordinate(y.dims, [&](const Coordinates& at) {
    const auto value = [&]() -> float {
      if (mode == "GEN_INDEX") return static_cast<float>(at[node.at("axis").get<size_t>()]);
      const float first = x.Get(at, y.dims);
      if (b == nullptr) {
        if (mode == "RELU_FWD") return std::max(first, 0.0f);
        if (mode == "EXP") return std::exp(first);
        if (mode == "LOG") return std::log(first);
      } else {
        const float second = b->Get(at, y.dims);
        if (mode == "ADD") return first + second;
        if (mode == "SUB") return first - second;
        if (mode == "MUL") return first * second;
        if (mode == "DIV") return first / second;
        if (mode == "CMP_GE") return first >= second ? 1.0f : 0.0f;
        if (mode == "BINARY_SELECT") return At(node, "T").Get(at, y.dims) != 0 ? first : second;
      }
      LS_CHECK(false, "a formula that the fake knows");
      return std::numeric_limits<float>::quiet_NaN();
    };
    y.Put(at, value());
  });
}

}  // namespace lockstep::device::cuda
