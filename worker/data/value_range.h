// Finds the range of a data set's values, and warns when it is implausible: images that are not scaled, or scaled
// twice.
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
  double lowest = std::numeric_limits<double>::infinity();  // of the finite values
  double highest = -std::numeric_limits<double>::infinity();
};

// The range over all elements of the array.
ValueRange FindRange(const StoredArray& array);

// A field that is delivered as float32.
struct FieldScale {
  const StoredArray* array;
  std::string name;
  bool image;  // of two dimensions or more
  const Normalisation* normalisation;
};

// The warning, which begins with the file's name; "" when the range is plausible.
std::string ScaleText(const FieldScale& field, const ValueRange& range);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_VALUE_RANGE_H_
