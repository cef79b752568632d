// LS_CODE is the instruction set that this is compiled for: see BUILD.bazel. Nothing here is a function that another
// file could be linked with.
#include "worker/arithmetic/norm_loops.h"

#include "worker/arithmetic/norm_formulas.h"

namespace lockstep::worker::LS_CODE {
namespace {

using device::kNormBlock;
using device::kNormLanes;
using device::kNormRows;
using device::kNormWarp;
using device::NormSquares;
using device::UpdateScalars;

int64_t Smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// Calls block(begin, end), which gives the sums of those elements, for one block after another.
template <typename Block>
NormSquares SumBlocks(int64_t count, const Block& block) {
  NormSquares sums;
  for (int64_t begin = 0; begin < count; begin += kNormBlock) {
    const NormSquares of_block = block(begin, Smaller(begin + kNormBlock, count));
    sums.value += of_block.value;
    sums.direction += of_block.direction;
  }
  return sums;
}

// direction(i) of every element of a block, each called once, in no order.
template <typename Direction>
NormSquares SquaresOfBlock(const float* values, int64_t begin, int64_t end, const Direction& direction) {
  double of_values[kNormLanes] = {}, of_directions[kNormLanes] = {};
  for (int64_t row = begin; row < end; row += kNormLanes) {
    const int64_t lanes = Smaller(kNormLanes, end - row);
#pragma GCC ivdep
    for (int64_t l = 0; l < lanes; ++l) {
      of_values[l] += device::SquareOf(values[row + l]);
      of_directions[l] += device::SquareOf(direction(row + l));
    }
  }
  return {device::FoldLanes(of_values), device::FoldLanes(of_directions)};
}

// The second phase over the elements [begin, begin + count).
template <typename Direction>
void StepRun(const UpdateScalars& s, float rate, const UpdateArrays& u, int64_t begin, int64_t count,
             const Direction& direction) {
  float* const values = u.value + begin;
  float* const averages = u.average == nullptr ? nullptr : u.average + begin;
  if (averages == nullptr) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) values[i] = device::SteppedValue(s, rate, values[i], direction(i));
    return;
  }
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    values[i] = device::SteppedValue(s, rate, values[i], direction(i));
    averages[i] = device::MovedAverage(s, averages[i], values[i]);
  }
}

void Lamb(const UpdateScalars& scalars, const UpdateArrays& u) {
  const UpdateScalars s = scalars;
  float* const means = u.slots[0];
  float* const squares = u.slots[1];
  const float* const values = u.value;
  const NormSquares sums = SumBlocks(u.count, [&](int64_t begin, int64_t end) {
    return SquaresOfBlock(values, begin, end, [&](int64_t i) {
      float mean = means[i];
      float square = squares[i];
      device::MoveLambMeans(s, u.gradient[i], mean, square);
      means[i] = mean;
      squares[i] = square;
      return device::LambDirection(s, values[i], mean, square);
    });
  });
  const float rate = s.lr * device::LambScale(s, sums);
  StepRun(s, rate, u, 0, u.count, [&](int64_t i) { return device::LambDirection(s, values[i], means[i], squares[i]); });
}

void AdafactorVector(const UpdateScalars& scalars, const UpdateArrays& u) {
  const UpdateScalars s = scalars;
  float* const squares = u.slots[0];
  const NormSquares sums = SumBlocks(u.count, [&](int64_t begin, int64_t end) {
    return SquaresOfBlock(u.value, begin, end, [&](int64_t i) {
      const float moved = device::MovedSquare(s, squares[i], device::SquareOf(device::MeanGradient(s, u.gradient[i])));
      squares[i] = moved;
      return device::AdafactorDirection(s, u.gradient[i], moved);
    });
  });
  const float rate = s.lr * device::AdafactorScale(s, sums, u.count);
  StepRun(s, rate, u, 0, u.count, [&](int64_t i) { return device::AdafactorDirection(s, u.gradient[i], squares[i]); });
}

// A parameter as matrices, and what its squares are estimated from.
class Matrices {
 public:
  Matrices(const UpdateScalars& s, const UpdateArrays& u)
      : s_(s),
        u_(u),
        rows_(u.shape.rows),
        columns_(u.shape.columns),
        totals_(u.scratch),
        of_block_(totals_ + columns_),
        means_(reinterpret_cast<float*>(of_block_ + columns_)) {}

  void MoveSquares() {
    if (u_.count == 0) return;
    const int64_t size = rows_ * columns_;
    const auto square_at = [this](int64_t i) { return device::SquareOf(device::MeanGradient(s_, u_.gradient[i])); };
    if (size > kNormBlock) {
      for (int64_t m = 0; m * size < u_.count; ++m) MoveMatrix(m, square_at);
      return;
    }
    // Of many small matrices the squares are computed first: their rows are too short for vectors.
    double squares[kNormBlock];
    const int64_t most = kNormBlock / size * size;
    for (int64_t begin = 0; begin < u_.count; begin += most) {
      const int64_t count = Smaller(most, u_.count - begin);
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) squares[i] = square_at(begin + i);
      for (int64_t m = begin / size; m * size < begin + count; ++m) {
        MoveMatrix(m, [&](int64_t i) { return squares[i - begin]; });
      }
    }
  }

  // The estimated squares of the elements [begin, end), to `squares`.
  void Estimate(int64_t begin, int64_t end, float* squares) const {
    int64_t r = begin / columns_;
    int64_t m = r / rows_;
    int64_t next = (m + 1) * rows_;  // the first row of the next matrix
    int64_t at = begin - r * columns_;
    while (begin < end) {
      const int64_t size = Smaller(columns_ - at, end - begin);
      const float share = device::RowShare(s_, u_.slots[0][r], means_[m]);
      const float* const columns = u_.slots[1] + m * columns_ + at;
#pragma GCC ivdep
      for (int64_t i = 0; i < size; ++i) squares[i] = share * columns[i];
      squares += size;
      begin += size;
      at = 0;
      if (++r == next) {
        ++m;
        next += rows_;
      }
    }
  }

 private:
  template <typename Value>
  static double SumLanes(int64_t count, const Value& value) {
    if (count < kNormWarp) return SumFew(count, value);
    double lanes[kNormWarp] = {};
    for (int64_t begin = 0; begin < count; begin += kNormWarp) {
      const int64_t end = Smaller(kNormWarp, count - begin);
#pragma GCC ivdep
      for (int64_t l = 0; l < end; ++l) lanes[l] += value(begin + l);
    }
    return device::FoldWarp(lanes);
  }

  // The same bits: lanes without an element are 0, and adding 0 to what is not negative changes nothing.
  template <typename Value>
  static double SumFew(int64_t count, const Value& value) {
    double lanes[kNormWarp];
    for (int64_t l = 0; l < count; ++l) lanes[l] = value(l);
    int64_t width = kNormWarp;
    while (width / 2 >= count && width > 1) width /= 2;
    for (int64_t distance = width / 2; distance > 0; distance /= 2) {
      for (int64_t l = 0; l + distance < count && l < distance; ++l) lanes[l] += lanes[l + distance];
    }
    return count > 0 ? lanes[0] : 0.0;
  }

  // The slots of matrix m. square(i) is that of the mean gradient's element i.
  template <typename Square>
  void MoveMatrix(int64_t m, const Square& square) {
    for (int64_t r = m * rows_; r < (m + 1) * rows_; ++r) {
      const double sum = SumLanes(columns_, [&](int64_t c) { return square(r * columns_ + c); });
      u_.slots[0][r] = device::MovedSquare(s_, u_.slots[0][r], sum / static_cast<double>(columns_));
    }
    MoveColumns(m, square);
    const double sum = SumLanes(rows_, [&](int64_t r) { return double{u_.slots[0][m * rows_ + r]}; });
    means_[m] = static_cast<float>(sum / static_cast<double>(rows_));
  }

  template <typename Square>
  void MoveColumns(int64_t m, const Square& square) {
    double* const sums = of_block_;
    for (int64_t c = 0; c < columns_; ++c) totals_[c] = 0;
    for (int64_t begin = 0; begin < rows_; begin += kNormRows) {
      for (int64_t c = 0; c < columns_; ++c) sums[c] = 0;
      for (int64_t r = begin; r < Smaller(begin + kNormRows, rows_); ++r) {
        const int64_t row = (m * rows_ + r) * columns_;
#pragma GCC ivdep
        for (int64_t c = 0; c < columns_; ++c) sums[c] += square(row + c);
      }
      for (int64_t c = 0; c < columns_; ++c) totals_[c] += sums[c];
    }
    float* const kept = u_.slots[1] + m * columns_;
    for (int64_t c = 0; c < columns_; ++c) {
      kept[c] = device::MovedSquare(s_, kept[c], totals_[c] / static_cast<double>(rows_));
    }
  }

  const UpdateScalars s_;
  const UpdateArrays& u_;
  const int64_t rows_;
  const int64_t columns_;
  double* const totals_;
  double* const of_block_;
  float* const means_;
};

void AdafactorMatrices(const UpdateScalars& scalars, const UpdateArrays& u) {
  const UpdateScalars s = scalars;
  Matrices matrices(s, u);
  matrices.MoveSquares();
  float squares[kNormBlock];
  const NormSquares sums = SumBlocks(u.count, [&](int64_t begin, int64_t end) {
    matrices.Estimate(begin, end, squares);
    return SquaresOfBlock(u.value, begin, end,
                          [&](int64_t i) { return device::AdafactorDirection(s, u.gradient[i], squares[i - begin]); });
  });
  const float rate = s.lr * device::AdafactorScale(s, sums, u.count);
  for (int64_t begin = 0; begin < u.count; begin += kNormBlock) {
    const int64_t end = Smaller(begin + kNormBlock, u.count);
    matrices.Estimate(begin, end, squares);
    StepRun(s, rate, u, begin, end - begin,
            [&](int64_t i) { return device::AdafactorDirection(s, u.gradient[begin + i], squares[i]); });
  }
}

}  // namespace

void UpdateByNorms(const device::UpdateFormula& formula, const UpdateScalars& scalars, const UpdateArrays& arrays) {
  if (formula.kind == device::UpdateFormula::Kind::kLamb) return Lamb(scalars, arrays);
  if (arrays.shape.columns > 0) return AdafactorMatrices(scalars, arrays);
  AdafactorVector(scalars, arrays);
}

}  // namespace lockstep::worker::LS_CODE
