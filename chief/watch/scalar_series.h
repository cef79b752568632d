// One curve of a job in bounded memory. Beyond kMostStretches points, neighbouring points are joined into stretches
// that keep the mean, the lowest and the highest value.
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

  // Consecutive points.
  struct Stretch {
    int64_t first_step = 0;
    int64_t last_step = 0;
    int64_t at_ms = 0;  // of the last point, since 1970
    double sum = 0;     // NaN if a point is NaN
    double low = 0;
    double high = 0;
    int64_t count = 0;

    double mean() const { return sum / static_cast<double>(count); }
    void Join(const Stretch& next);
  };

  // Adds a point. A point that is not later than the newest one is ignored.
  void Add(int64_t step, int64_t at_ms, double value);
  // Training went back: removes the points from `step` on. A stretch that only ends there stays.
  void DropFrom(int64_t step);

  // The points from `from` to `to` in at most `most` stretches; points that are not joined stay single while there is
  // room. REQUIRES: most > 0.
  std::vector<Stretch> Sample(int64_t from, int64_t to, size_t most) const;
  // The number of points.
  int64_t size() const { return size_; }
  bool empty() const { return stretches_.empty(); }
  const Stretch& newest() const { return stretches_.back(); }  // REQUIRES: not empty

 private:
  void JoinPairs();

  std::vector<Stretch> stretches_;
  int64_t per_stretch_ = 1;  // the number of points per new stretch
  int64_t size_ = 0;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_WATCH_SCALAR_SERIES_H_
