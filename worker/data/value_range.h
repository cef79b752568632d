// The range of a data set's values, and a warning where it is hardly meant: images that were not scaled, or twice.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_WORKER_DATA_VALUE_RANGE_H_
#define LOCKSTEP_WORKER_DATA_VALUE_RANGE_H_

#include <limits>
#include <string>

#include "common/graph/metagraph.h"
#include "worker/data/stored_data.h"

namespace lockstep::worker {

struct ValueRange {
  double lowest = std::numeric_limits<double>::infinity();  // of the finite ones
  double highest = -std::numeric_limits<double>::infinity();
};

// Of every element of the array.
ValueRange FindRange(const StoredArray& array);

// A field that feeds floats.
struct ValueQuestion {
  const StoredArray* array;
  std::string name;
  bool image;  // of two dimensions or more
  const Normalisation* normalisation;
};

// The message begins with the file; "" when there is nothing to say.
std::string ScaleText(const ValueQuestion& question, const ValueRange& range);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_VALUE_RANGE_H_
