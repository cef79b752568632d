// The CUDA kernels of StepMath. A table of tensors is cut into chunks of a fixed size, with one thread block each. A
// second launch combines the chunks' results per tensor (largest magnitude, sum of squares), sums in chunk order.
//
// Threading: CUDA's execution model.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_STEP_KERNELS_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_STEP_KERNELS_H_

#include <cstdint>

#include "worker/arithmetic/exact_formulas.h"
#include "worker/arithmetic/update_formulas.h"
#include "worker/device/cuda/runtime/code.h"
#include "worker/device/step_math.h"
#include "worker/kernels/cuda/block_reduce.h"
#include "worker/kernels/cuda/map.h"

namespace lockstep::device::cuda {

inline constexpr int64_t kChunk = kSquaresBlock;
inline constexpr int kStepThreads = 256;

// A part of one tensor of a flat run.
struct RunChunk {
  int64_t begin;  // elements from the run's start; a multiple of 16
  int32_t size;   // elements, at most kChunk
  int32_t index;  // TensorRange::index
};

// The chunks [first, last) of one tensor.
struct ChunkRange {
  int32_t first;
  int32_t last;
  int32_t index;
};

// A part of one parameter with its slots and average.
struct UpdateChunk {
  float* value;
  const float* gradient;
  float* slots[2];
  float* average;
  int32_t size;
  bool decays;
};

struct Larger {
  LS_HD uint32_t operator()(uint32_t a, uint32_t b) const { return a > b ? a : b; }
};
struct Sum {
  LS_HD double operator()(double a, double b) const { return a + b; }
};

// Calls f(i) for the elements of a chunk, distributed over the threads of a block.
template <typename F>
__device__ void ForChunk(int32_t size, F f) {
  for (int32_t i = static_cast<int32_t>(threadIdx.x); i < size; i += kStepThreads) f(i);
}

template <bool kAdd>
__global__ void QuantizeKernel(const RunChunk* chunks, const float* values, const int32_t* exponents, int64_t* sums,
                               uint32_t* largest) {
  const RunChunk chunk = chunks[blockIdx.x];
  const int32_t exponent = exponents[chunk.index];
  const bool unset = exponent == kExponentUnset;
  const double scale = unset ? 0.0 : PowerOfTwo(-exponent);
  const float* const from = values + chunk.begin;
  int64_t* const to = sums + chunk.begin;
  uint32_t magnitude = 0;
  ForChunk(chunk.size, [&](int32_t i) {
    const float value = from[i];
    magnitude = Larger()(magnitude, MagnitudeOf(value));
    const int64_t quantized = unset ? 0 : QuantizeElement(value, scale);
    to[i] = kAdd ? AddExact(to[i], quantized) : quantized;
  });
  magnitude = BlockFold<kStepThreads>(magnitude, Larger());
  if (threadIdx.x == 0) largest[blockIdx.x] = magnitude;
}

inline __global__ void MagnitudesKernel(const RunChunk* chunks, const float* values, uint32_t* largest) {
  const RunChunk chunk = chunks[blockIdx.x];
  uint32_t magnitude = 0;
  ForChunk(chunk.size, [&](int32_t i) { magnitude = Larger()(magnitude, MagnitudeOf(values[chunk.begin + i])); });
  magnitude = BlockFold<kStepThreads>(magnitude, Larger());
  if (threadIdx.x == 0) largest[blockIdx.x] = magnitude;
}

// magnitudes[index] = the largest of itself and its chunks' magnitudes. One block per tensor.
inline __global__ void LargestKernel(const ChunkRange* tensors, const uint32_t* largest, uint32_t* magnitudes) {
  const ChunkRange tensor = tensors[blockIdx.x];
  uint32_t magnitude = 0;
  for (int32_t c = tensor.first + static_cast<int32_t>(threadIdx.x); c < tensor.last; c += kStepThreads) {
    magnitude = Larger()(magnitude, largest[c]);
  }
  magnitude = BlockFold<kStepThreads>(magnitude, Larger());
  if (threadIdx.x == 0) magnitudes[tensor.index] = Larger()(magnitudes[tensor.index], magnitude);
}

// Dequantises elements [begin, end) of the run.
inline __global__ void DequantizeKernel(const RunChunk* chunks, int64_t begin, int64_t end, const int64_t* sums,
                                        const int32_t* exponents, float* values) {
  const RunChunk chunk = chunks[blockIdx.x];
  const int32_t exponent = exponents[chunk.index];
  const bool unset = exponent == kExponentUnset;
  const double scale = unset ? 0.0 : PowerOfTwo(exponent);
  ForChunk(chunk.size, [&](int32_t i) {
    const int64_t at = chunk.begin + i;
    if (at >= begin && at < end) values[at] = unset ? 0.0f : DequantizeElement(sums[at], scale);
  });
}

template <bool kAdd>
__global__ void AddFloatsKernel(const RunChunk* chunks, const float* values, float* sums) {
  const RunChunk chunk = chunks[blockIdx.x];
  ForChunk(chunk.size, [&](int32_t i) {
    const int64_t at = chunk.begin + i;
    sums[at] = kAdd ? sums[at] + values[at] : values[at];
  });
}

inline __global__ void SquaresKernel(const RunChunk* chunks, const float* values, double* squares) {
  const RunChunk chunk = chunks[blockIdx.x];
  double sum = 0;
  ForChunk(chunk.size, [&](int32_t i) {
    const double value = values[chunk.begin + i];
    sum += value * value;
  });
  sum = BlockFold<kStepThreads>(sum, Sum());
  if (threadIdx.x == 0) squares[blockIdx.x] = sum;
}

// Adds the chunk sums of a tensor in order. One thread per tensor.
inline __global__ void SumSquaresKernel(const ChunkRange* tensors, int64_t count, const double* squares, double* sums) {
  const int64_t t = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (t >= count) return;
  double sum = 0;
  for (int32_t c = tensors[t].first; c < tensors[t].last; ++c) sum += squares[c];
  sums[tensors[t].index] = sum;
}

inline __global__ void FindClipKernel(const double* sums, int64_t count, double denominator, double max_norm,
                                      float* clip) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += sums[i];
  *clip = ClipFactor(sum, denominator, max_norm);
}

// Updates the elements of each chunk by `Formula`, and then their averages.
template <typename Formula>
__global__ void UpdateKernel(const UpdateChunk* chunks, UpdateScalars scalars, const float* clip) {
  const UpdateChunk chunk = chunks[blockIdx.x];
  if (clip != nullptr) scalars.clip = *clip;
  if (!chunk.decays) scalars = WithoutDecay(scalars);
  ForChunk(chunk.size, [&](int32_t i) {
    const float moved = Formula::Update(scalars, chunk, i);
    chunk.value[i] = moved;
    if (chunk.average == nullptr) return;
    chunk.average[i] = scalars.copies_average ? moved : MovedAverage(scalars, chunk.average[i], moved);
  });
}

template <bool kDecays, bool kMomentum, bool kNesterov>
struct SgdFormula {
  static LS_HD float Update(const UpdateScalars& scalars, const UpdateChunk& chunk, int32_t i) {
    float buffer = kMomentum ? chunk.slots[0][i] : 0.0f;
    const float moved = SgdElement<kDecays, kMomentum, kNesterov>(scalars, chunk.gradient[i], chunk.value[i], buffer);
    if (kMomentum) chunk.slots[0][i] = buffer;
    return moved;
  }
};

template <bool kDecays>
struct AdamFormula {
  static LS_HD float Update(const UpdateScalars& scalars, const UpdateChunk& chunk, int32_t i) {
    return AdamElement<kDecays>(scalars, chunk.gradient[i], chunk.value[i], chunk.slots[0][i], chunk.slots[1][i]);
  }
};

template <bool kDecays, bool kMomentum>
struct RmsPropFormula {
  static LS_HD float Update(const UpdateScalars& scalars, const UpdateChunk& chunk, int32_t i) {
    float buffer = kMomentum ? chunk.slots[1][i] : 0.0f;
    const float moved =
        RmsPropElement<kDecays, kMomentum>(scalars, chunk.gradient[i], chunk.value[i], chunk.slots[0][i], buffer);
    if (kMomentum) chunk.slots[1][i] = buffer;
    return moved;
  }
};

template <bool kDecays>
struct AdagradFormula {
  static LS_HD float Update(const UpdateScalars& scalars, const UpdateChunk& chunk, int32_t i) {
    return AdagradElement<kDecays>(scalars, chunk.gradient[i], chunk.value[i], chunk.slots[0][i]);
  }
};

struct LionFormula {
  static LS_HD float Update(const UpdateScalars& scalars, const UpdateChunk& chunk, int32_t i) {
    return LionElement(scalars, chunk.gradient[i], chunk.value[i], chunk.slots[0][i]);
  }
};

// One block per tensor; `offsets[t]` means lie in front of tensor t's.
inline __global__ void MoveStatisticsKernel(const StatisticTensor* tensors, const int64_t* offsets,
                                            const double* means) {
  const StatisticTensor tensor = tensors[blockIdx.x];
  for (int64_t i = threadIdx.x; i < tensor.size; i += kStepThreads) {
    tensor.running[i] = MovedStatistic(tensor.momentum, tensor.running[i], means[offsets[blockIdx.x] + i]);
  }
}

// One block per output; `offsets[o]` totals lie in front of output o's.
inline __global__ void AddOutputsKernel(const PassOutput* outputs, const int64_t* offsets, double* totals) {
  const PassOutput output = outputs[blockIdx.x];
  for (int64_t i = threadIdx.x; i < output.size; i += kStepThreads) {
    double& total = totals[offsets[blockIdx.x] + i];
    total = total + output.values[i] / output.divisor;
  }
}

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_STEP_KERNELS_H_
