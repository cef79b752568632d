// One curve of a job, step by step, in bounded memory: of more than kMostStretches points neighbours are joined, of
// which the mean, the lowest and the highest value stay.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_CHIEF_WATCH_SCALAR_SERIES_H_
#define LOCKSTEP_CHIEF_WATCH_SCALAR_SERIES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::chief {

class ScalarSeries {
 public:
  static constexpr size_t kMostStretches = size_t{1} << 16;

  // Points in a row.
  struct Stretch {
    int64_t first_step = 0;
    int64_t last_step = 0;
    int64_t at_ms = 0;  // of the last one, since 1970
    double sum = 0;     // NaN where one of them is
    double low = 0;
    double high = 0;
    int64_t count = 0;

    double mean() const { return sum / static_cast<double>(count); }
    void Join(const Stretch& next);
  };

  // REQUIRES: `step` is later than that of the newest point. An earlier one is left out.
  void Add(int64_t step, int64_t at_ms, double value);
  // Training went back: points of `step` and later ones go. A stretch that only ends there stays.
  void DropFrom(int64_t step);

  // The points of `from` to `to` in at most `most` stretches; points that were not joined yet come alone while there is
  // room. REQUIRES: most > 0.
  std::vector<Stretch> Sample(int64_t from, int64_t to, size_t most) const;
  // All points that are in it.
  int64_t size() const { return size_; }
  bool empty() const { return stretches_.empty(); }
  const Stretch& newest() const { return stretches_.back(); }  // REQUIRES: not empty

 private:
  void JoinPairs();

  std::vector<Stretch> stretches_;
  int64_t per_stretch_ = 1;  // points that the newest stretch takes before another begins
  int64_t size_ = 0;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_WATCH_SCALAR_SERIES_H_
