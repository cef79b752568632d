#include "worker/kernels/batch_norm/cpu_columns.h"

#include <algorithm>

#include "common/math/math.h"
#include "worker/kernels/cpu/parallel.h"

namespace lockstep::device::cpu::LS_CODE {
namespace {

// So many channels at once: their sums lie in the innermost cache.
constexpr int64_t kColumns = 64;

// Some neighbouring channels of X [batch, channels].
struct Columns {
  int64_t batch;
  int64_t channels;
  int64_t first;
  int64_t count;  // at most kColumns

  template <typename T>
  T* row(T* values, int64_t n) const {
    return values + n * channels + first;
  }
};

template <typename Body>
void ForColumns(const Shape& x, const Body& body) {
  const int64_t groups = (x[1] + kColumns - 1) / kColumns;
  ParallelFor(groups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) {
      const int64_t first = g * kColumns;
      body(Columns{x[0], x[1], first, std::min(kColumns, x[1] - first)});
    }
  });
}

// y = (x - middle) * factor + shift.
struct Line {
  float middle[kColumns];
  float factor[kColumns];
  float shift[kColumns];

  void Set(const HostCall& call, int64_t channel, int64_t c, double mean, double inv_std) {
    middle[c] = static_cast<float>(mean);
    factor[c] = static_cast<float>(inv_std * call.in<float>(1)[channel]);
    shift[c] = call.in<float>(2)[channel];
  }
};

void Normalise(const HostCall& call, const Columns& columns, const Line& line) {
  for (int64_t n = 0; n < columns.batch; ++n) {
    const float* const x = columns.row(call.in<float>(0), n);
    float* const y = columns.row(call.out<float>(0), n);
    for (int64_t c = 0; c < columns.count; ++c) y[c] = (x[c] - line.middle[c]) * line.factor[c] + line.shift[c];
  }
}

// Sums of dY and of dY * xhat.
struct Sums {
  double dy[kColumns] = {};
  double dot[kColumns] = {};
};

// xhat = (x - mean) * inv_std, of float64 or float32 as the kernel has them.
template <typename InvStd>
void AddUp(const HostCall& call, const Columns& columns, const InvStd* inv_std, Sums& sums) {
  const float* const mean = call.in<float>(3) + columns.first;
  for (int64_t n = 0; n < columns.batch; ++n) {
    const float* const dy = columns.row(call.in<float>(0), n);
    const float* const x = columns.row(call.in<float>(1), n);
    for (int64_t c = 0; c < columns.count; ++c) {
      sums.dy[c] += double{dy[c]};
      sums.dot[c] += double{dy[c]} * (double{x[c]} - mean[c]) * inv_std[c];
    }
  }
  for (int64_t c = 0; c < columns.count; ++c) {
    if (call.out<float>(1) != nullptr) call.out<float>(1)[columns.first + c] = static_cast<float>(sums.dot[c]);
    if (call.out<float>(2) != nullptr) call.out<float>(2)[columns.first + c] = static_cast<float>(sums.dy[c]);
  }
}

}  // namespace

void ColumnsInference(const HostCall& call) {
  const double epsilon = call.attrs<BatchNormAttributes>().epsilon;
  ForColumns(call.in_shape(0), [&](const Columns& columns) {
    Line line;
    for (int64_t c = 0; c < columns.count; ++c) {
      const int64_t channel = columns.first + c;
      line.Set(call, channel, c, call.in<float>(3)[channel],
               1.0 / SquareRoot(double{call.in<float>(4)[channel]} + epsilon));
    }
    Normalise(call, columns, line);
  });
}

void ColumnsTraining(const HostCall& call) {
  const auto& attributes = call.attrs<BatchNormAttributes>();
  ForColumns(call.in_shape(0), [&](const Columns& columns) {
    const auto count = static_cast<double>(columns.batch);
    double means[kColumns] = {}, squares[kColumns] = {};
    for (int64_t n = 0; n < columns.batch; ++n) {
      const float* const x = columns.row(call.in<float>(0), n);
      for (int64_t c = 0; c < columns.count; ++c) means[c] += double{x[c]};
    }
    for (int64_t c = 0; c < columns.count; ++c) means[c] /= count;
    for (int64_t n = 0; n < columns.batch; ++n) {
      const float* const x = columns.row(call.in<float>(0), n);
      for (int64_t c = 0; c < columns.count; ++c) squares[c] += (x[c] - means[c]) * (x[c] - means[c]);
    }
    const bool unbiased = attributes.unbiased_running_var && count > 1;
    Line line;
    for (int64_t c = 0; c < columns.count; ++c) {
      const int64_t channel = columns.first + c;
      const double inv_std = 1.0 / SquareRoot(squares[c] / count + attributes.epsilon);
      line.Set(call, channel, c, means[c], inv_std);
      if (call.out<float>(1) != nullptr) call.out<float>(1)[channel] = static_cast<float>(means[c]);
      if (call.out<float>(2) != nullptr) call.out<float>(2)[channel] = static_cast<float>(inv_std);
      if (call.out<float>(3) != nullptr) {
        call.out<float>(3)[channel] = static_cast<float>(squares[c] / (unbiased ? count - 1 : count));
      }
    }
    Normalise(call, columns, line);
  });
}

void ColumnsGradient(const HostCall& call) {
  ForColumns(call.in_shape(0), [&](const Columns& columns) {
    const auto count = static_cast<double>(columns.batch);
    const float* const mean = call.in<float>(3) + columns.first;
    const float* const inv_std = call.in<float>(4) + columns.first;
    Sums sums;
    AddUp(call, columns, inv_std, sums);
    if (call.out<float>(0) == nullptr) return;
    float factor[kColumns], mean_dy[kColumns], slope[kColumns];
    for (int64_t c = 0; c < columns.count; ++c) {
      factor[c] = call.in<float>(2)[columns.first + c] * inv_std[c];
      mean_dy[c] = static_cast<float>(sums.dy[c] / count);
      slope[c] = static_cast<float>(sums.dot[c] / count * inv_std[c]);
    }
    for (int64_t n = 0; n < columns.batch; ++n) {
      const float* const dy = columns.row(call.in<float>(0), n);
      const float* const x = columns.row(call.in<float>(1), n);
      float* const dx = columns.row(call.out<float>(0), n);
      for (int64_t c = 0; c < columns.count; ++c) {
        dx[c] = factor[c] * (dy[c] - mean_dy[c] - (x[c] - mean[c]) * slope[c]);
      }
    }
  });
}

void ColumnsFrozenGradient(const HostCall& call) {
  const double epsilon = call.attrs<BatchNormAttributes>().epsilon;
  ForColumns(call.in_shape(0), [&](const Columns& columns) {
    double inv_std[kColumns];
    float factor[kColumns];
    for (int64_t c = 0; c < columns.count; ++c) {
      const int64_t channel = columns.first + c;
      inv_std[c] = 1.0 / SquareRoot(double{call.in<float>(4)[channel]} + epsilon);
      factor[c] = static_cast<float>(call.in<float>(2)[channel] * inv_std[c]);
    }
    Sums sums;
    AddUp(call, columns, inv_std, sums);
    if (call.out<float>(0) == nullptr) return;
    for (int64_t n = 0; n < columns.batch; ++n) {
      const float* const dy = columns.row(call.in<float>(0), n);
      float* const dx = columns.row(call.out<float>(0), n);
      for (int64_t c = 0; c < columns.count; ++c) dx[c] = dy[c] * factor[c];
    }
  });
}

}  // namespace lockstep::device::cpu::LS_CODE
