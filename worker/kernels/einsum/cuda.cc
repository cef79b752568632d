// Einsum and its gradient. Two factors are a batch of products over tiles, whatever the order of their dimensions:
// labels of both factors and the result number the batch, those that are summed over are k, and the others are rows or
// columns. Any other number of factors takes a thread per result.
#include <array>
#include <optional>
#include <vector>

#include "common/status/status_macros.h"
#include "worker/device/cuda/runtime/code.h"
#include "worker/device/cuda/runtime/launch.h"
#include "worker/kernels/cuda/families.h"
#include "worker/kernels/cuda/matrix_factor.h"
#include "worker/kernels/cuda/tile_launch.h"
#include "worker/kernels/einsum/einsum.h"

namespace lockstep::device::cuda {
namespace {

constexpr size_t kMostFactors = 8;

// Nested runs, with a distance for each of several tensors.
template <size_t kTensors>
struct Runs {
  // `strides` by tensor. The label becomes the innermost run.
  void Add(int64_t extent, const std::array<int64_t, kTensors>& strides) {
    count *= extent;
    if (extent <= 1) return;  // with one of 0 nothing is counted off
    too_many = too_many || tensors[0].runs == BatchOffsets::kMostRuns || extent > FastDivide::kMost;
    if (too_many) return;
    for (size_t t = 0; t < kTensors; ++t) {
      BatchOffsets& offsets = tensors[t];
      // The innermost comes first.
      for (int r = offsets.runs++; r > 0; --r) {
        offsets.extents[r] = offsets.extents[r - 1];
        offsets.strides[r] = offsets.strides[r - 1];
      }
      offsets.extents[0] = FastDivide(extent);
      offsets.strides[0] = strides[t];
    }
  }

  BatchOffsets tensors[kTensors];
  int64_t count = 1;
  bool too_many = false;
};

// A factor whose elements lie anywhere: an offset for the product, one for its side and one for k.
struct StridedFactor {
  static constexpr bool kAlongK = false;
  struct Place {
    int64_t offset[4];
    int count;  // of the four that are there
  };

  __device__ StridedFactor Of(int index) const {
    StridedFactor factor = *this;
    factor.data += batch.At(index);
    return factor;
  }
  __device__ Place At(int i) const {
    Place place;
    place.count = extent - i;
    LS_UNROLL
    for (int q = 0; q < 4; ++q) place.offset[q] = q < place.count ? side.At(i + q) : 0;
    return place;
  }
  __device__ void Load(const Place& place, int k, int, float (&to)[4]) const {
    const float* from = data + steps.At(k);
    LS_UNROLL
    for (int q = 0; q < 4; ++q) to[q] = q < place.count ? from[place.offset[q]] : 0.0f;
  }

  const float* data;
  int extent;
  BatchOffsets batch;
  BatchOffsets side;
  BatchOffsets steps;
};

struct StridedResult {
  __device__ void Write(int64_t product, int i, int j, const float (&values)[4]) const {
    if (i >= m) return;
    float* to = data + batch.At(static_cast<int>(product)) + rows.At(i);
    LS_UNROLL
    for (int q = 0; q < 4; ++q) {
      if (j + q < n) to[columns.At(j + q)] = values[q];
    }
  }

  float* data;
  int m;
  int n;
  BatchOffsets batch;
  BatchOffsets rows;
  BatchOffsets columns;
};

// Two factors: the tensors are the factors and the result; rows and columns belong to one factor each.
struct Product {
  Runs<3> batch;
  Runs<2> rows;
  Runs<2> columns;
  Runs<2> steps;

  TilePlan plan() const { return TilePlan::For(rows.count, columns.count, steps.count, batch.count); }
  bool fits() const {
    return !batch.too_many && !rows.too_many && !columns.too_many && !steps.too_many && plan().fits();
  }
};

Product FactorsOf(const EinsumSum& sum) {
  Product product;
  for (size_t l = 0; l < sum.extents.size(); ++l) {
    const int64_t a = sum.factors[0].strides[l], b = sum.factors[1].strides[l], y = sum.result[l];
    if (y == 0) {
      product.steps.Add(sum.extents[l], {a, b});
    } else if (b == 0) {
      product.rows.Add(sum.extents[l], {a, y});
    } else if (a == 0) {
      product.columns.Add(sum.extents[l], {b, y});
    } else {
      product.batch.Add(sum.extents[l], {a, b, y});
    }
  }
  return product;
}

// Other numbers of factors: the tensors are the factors, and the result last.
struct Sums {
  Runs<kMostFactors + 1> results;
  Runs<kMostFactors + 1> steps;

  bool fits() const {
    return !results.too_many && !steps.too_many && results.count < FastDivide::kMost && steps.count < FastDivide::kMost;
  }
};

std::optional<Sums> SumsOf(const EinsumSum& sum) {
  if (sum.factors.size() > kMostFactors) return std::nullopt;
  Sums sums;
  for (size_t l = 0; l < sum.extents.size(); ++l) {
    std::array<int64_t, kMostFactors + 1> strides = {};
    for (size_t f = 0; f < sum.factors.size(); ++f) strides[f] = sum.factors[f].strides[l];
    strides[kMostFactors] = sum.result[l];
    (sum.result[l] == 0 ? sums.steps : sums.results).Add(sum.extents[l], strides);
  }
  if (!sums.fits()) return std::nullopt;
  return sums;
}

struct FactorList {
  const float* data[kMostFactors];
  int count;
};

__global__ void SumProductsKernel(int64_t count, FactorList factors, Sums sums, float* y) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  const auto steps = static_cast<int>(sums.steps.count);
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    const auto result = static_cast<int>(i);
    float sum = 0;
    for (int step = 0; step < steps; ++step) {
      float product = 1;
      for (int f = 0; f < factors.count; ++f) {
        product *= factors.data[f][sums.results.tensors[f].At(result) + sums.steps.tensors[f].At(step)];
      }
      sum += product;
    }
    y[sums.results.tensors[kMostFactors].At(result)] = sum;
  }
}

EinsumSum SumOf(OpType op, const EinsumAttributes& attributes, const std::vector<Operand>& inputs) {
  std::vector<Shape> shapes;
  for (const Operand& input : inputs) shapes.push_back(input.shape);
  return EinsumSumOf(attributes, shapes, op == OpType::kEinsumGrad);
}

// The product, where tiles would not stay nearly empty.
std::optional<Product> WorthTiles(const EinsumSum& sum) {
  if (sum.factors.size() != 2) return std::nullopt;
  const Product product = FactorsOf(sum);
  if (product.rows.count * product.columns.count < 256 || !product.fits()) return std::nullopt;
  return product;
}

absl::Status LaunchTiles(const DeviceCall& call, const EinsumSum& sum, const Product& product, StreamHandle stream) {
  const auto m = static_cast<int>(product.rows.count), n = static_cast<int>(product.columns.count);
  return LaunchProduct(stream, product.plan(),
                       StridedFactor{call.in<float>(sum.factors[0].input), m, product.batch.tensors[0],
                                     product.rows.tensors[0], product.steps.tensors[0]},
                       StridedFactor{call.in<float>(sum.factors[1].input), n, product.batch.tensors[1],
                                     product.columns.tensors[0], product.steps.tensors[1]},
                       StridedResult{call.out<float>(0), m, n, product.batch.tensors[2], product.rows.tensors[1],
                                     product.columns.tensors[1]},
                       call.workspace);
}

absl::Status Einsum(const DeviceCall& call, StreamHandle stream) {
  const EinsumSum sum = SumOf(call.op, call.attrs<EinsumAttributes>(), call.input_infos);
  // A gradient of an operand that stands for a diagonal is zero beside it.
  if (call.op == OpType::kEinsumGrad) {
    const size_t bytes = static_cast<size_t>(NumElements(call.out_shape(0))) * sizeof(float);
    LS_RETURN_IF_ERROR(Zero(stream, call.outputs[0], bytes));
  }
  if (const std::optional<Product> product = WorthTiles(sum)) return LaunchTiles(call, sum, *product, stream);
  const Sums sums = *SumsOf(sum);
  FactorList factors = {{}, static_cast<int>(sum.factors.size())};
  for (size_t f = 0; f < sum.factors.size(); ++f) factors.data[f] = call.in<float>(sum.factors[f].input);
  const int64_t count = sums.results.count;
  if (count == 0) return absl::OkStatus();
  return Launch(stream, {.blocks = {BlocksFor(count)}, .threads = {kBlock}}, &SumProductsKernel, count, factors, sums,
                call.out<float>(0));
}

}  // namespace

OwnFunction OwnEinsum(const KernelRequest& request) {
  const OpType op = request.node->op;
  if (op != OpType::kEinsum && op != OpType::kEinsumGrad) return {};
  if (request.outputs[0].dtype != DType::kF32) return {.refusal = kOtherType};
  const EinsumSum sum = SumOf(op, AttributesOf<EinsumAttributes>(request), request.inputs);
  if (const std::optional<Product> product = WorthTiles(sum)) {
    return {&Einsum, "einsum", product->plan().workspace_bytes()};
  }
  if (!SumsOf(sum).has_value()) return {.refusal = kManyDimensions};
  return {&Einsum, "einsum"};
}

}  // namespace lockstep::device::cuda
