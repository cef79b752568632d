#include "worker/fakes/fake_cudnn_program.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
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

int64_t CountOf(const Coordinates& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

// The elements in row-major order, each of which is read once.
std::vector<double> ElementsOf(const CudnnTensor& tensor) {
  std::vector<double> values;
  values.reserve(static_cast<size_t>(CountOf(tensor.dims)));
  ForEachCoordinate(tensor.dims, [&](const Coordinates& at) { values.push_back(tensor.Get(at)); });
  return values;
}

void PutValues(const CudnnTensor& tensor, const std::vector<double>& values) {
  auto next = values.begin();
  ForEachCoordinate(tensor.dims, [&](const Coordinates& at) { tensor.Put(at, static_cast<float>(*next++)); });
}

// A tensor of these dimensions in row-major order, to find places in the vectors above.
CudnnTensor RowMajor(const Coordinates& dims) {
  CudnnTensor tensor{.dims = dims, .strides = dims};
  int64_t count = 1;
  for (size_t i = dims.size(); i-- > 0; count *= dims[i]) tensor.strides[i] = count;
  return tensor;
}

// Adds up y[n, k, o] += x[n, c, o * stride - pad + e * dilation] * w[k, c, e] into the one of x, w and y that
// `result` counts, in double.
void Convolve(const Json& node, const CudnnTensor& x, const CudnnTensor& w, const CudnnTensor& y, int result) {
  LS_CHECK(node.at("mode") == "CUDNN_CROSS_CORRELATION" && node.at("alpha") == 1.0 && node.at("beta") == 0.0,
           "a plain convolution");
  const Coordinates pad = node.at("pad"), stride = node.at("stride"), dilation = node.at("dilation");
  const std::array<const CudnnTensor*, 3> all = {&x, &w, &y};
  std::array<std::vector<double>, 3> values;
  for (size_t i = 0; i < 3; ++i) {
    if (static_cast<int>(i) != result) values[i] = ElementsOf(*all[i]);
  }
  const CudnnTensor& out = *all[static_cast<size_t>(result)];
  std::vector<double>& sums = values[static_cast<size_t>(result)];
  sums.assign(static_cast<size_t>(CountOf(out.dims)), 0.0);

  const CudnnTensor of_x = RowMajor(x.dims), of_w = RowMajor(w.dims);
  const int64_t channels = w.dims[1];  // of a group
  const int64_t per_group = w.dims[0] / (x.dims[1] / channels);
  const Coordinates window(w.dims.begin() + 2, w.dims.end());
  size_t at_out = 0;
  ForEachCoordinate(y.dims, [&](const Coordinates& at) {
    double& of_y = values[2][at_out++];
    ForEachCoordinate(window, [&](const Coordinates& e) {
      int64_t in_x = at[0] * of_x.strides[0] + at[1] / per_group * channels * of_x.strides[1];
      int64_t in_w = at[1] * of_w.strides[0];
      for (size_t d = 0; d < pad.size(); ++d) {
        const int64_t place = at[2 + d] * stride[d] - pad[d] + e[d] * dilation[d];
        if (place < 0 || place >= x.dims[2 + d]) return;
        in_x += place * of_x.strides[2 + d];
        in_w += e[d] * of_w.strides[2 + d];
      }
      for (int64_t c = 0; c < channels; ++c, in_x += of_x.strides[1], in_w += of_w.strides[1]) {
        double& one_x = values[0][static_cast<size_t>(in_x)];
        double& one_w = values[1][static_cast<size_t>(in_w)];
        if (result == 0) one_x += one_w * of_y;
        if (result == 1) one_w += one_x * of_y;
        if (result == 2) of_y += one_x * one_w;
      }
    });
  });
  PutValues(out, sums);
}

// c = a b for the matrices of the last two dimensions; others of a and b may be shared.
void Multiply(const CudnnTensor& a, const CudnnTensor& b, const CudnnTensor& c) {
  const size_t row = c.dims.size() - 2, column = row + 1;
  const std::vector<double> values_a = ElementsOf(a), values_b = ElementsOf(b);
  const CudnnTensor in_a = RowMajor(a.dims), in_b = RowMajor(b.dims);
  Coordinates of_a = c.dims, of_b = c.dims;
  of_a[column] = of_b[row] = a.dims[column];
  Coordinates at_a, at_b;
  ForEachCoordinate(c.dims, [&](const Coordinates& at) {
    at_a = at_b = at;
    at_a[column] = at_b[row] = 0;
    auto one_a = static_cast<size_t>(in_a.Offset(at_a, of_a));
    auto one_b = static_cast<size_t>(in_b.Offset(at_b, of_b));
    double sum = 0;
    for (int64_t k = 0; k < a.dims[column]; ++k, ++one_a, one_b += static_cast<size_t>(in_b.strides[row])) {
      sum += values_a[one_a] * values_b[one_b];
    }
    c.Put(at, static_cast<float>(sum));
  });
}

// Elements of x that share one of y are added up, or the largest is taken.
void Reduce(const Json& node, const CudnnTensor& x, const CudnnTensor& y) {
  const std::string operation = node.at("reductionOp");
  const bool largest = operation == "CUDNN_REDUCE_TENSOR_MAX";
  LS_CHECK(largest || operation == "CUDNN_REDUCE_TENSOR_ADD", "a reduction that the fake knows");
  const CudnnTensor in_y = RowMajor(y.dims);
  std::vector<double> results(static_cast<size_t>(CountOf(y.dims)),
                              largest ? -std::numeric_limits<double>::infinity() : 0.0);
  ForEachCoordinate(x.dims, [&](const Coordinates& at) {
    const double value = x.Get(at);
    double& result = results[static_cast<size_t>(in_y.Offset(at, x.dims))];
    result = largest ? std::max(result, value) : result + value;
  });
  PutValues(y, results);
}

// A matrix becomes its transpose.
void Transpose(const CudnnTensor& x, const CudnnTensor& y) {
  const size_t row = y.dims.size() - 2, column = row + 1;
  Coordinates from;
  ForEachCoordinate(y.dims, [&](const Coordinates& at) {
    from = at;
    std::swap(from[row], from[column]);
    y.Put(at, x.Get(from));
  });
}

}  // namespace

int64_t FakeCudnnTensor::Offset(const Coordinates& at, const Coordinates& of) const {
  int64_t offset = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    LS_CHECK(at[i] >= 0 && at[i] < of[i], "an element of the tensor");
    int64_t place = at[i];
    if (of[i] != dims[i]) {
      LS_CHECK(of[i] % dims[i] == 0, "dimensions that it can be broadcast to");
      place /= of[i] / dims[i];
    }
    offset += place * strides[i];
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
  tensor->strides = RowMajor(tensor->dims).strides;
  own_.push_back(std::make_shared<std::vector<float>>(static_cast<size_t>(CountOf(tensor->dims))));
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
