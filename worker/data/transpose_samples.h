// Permutes the dimensions of stored samples to the order of the model's input, once and in place, so that later reads
// need no transposition.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_WORKER_DATA_TRANSPOSE_SAMPLES_H_
#define LOCKSTEP_WORKER_DATA_TRANSPOSE_SAMPLES_H_

#include "common/job/sample_form.h"
#include "common/sync/pulse.h"
#include "worker/data/stored_data.h"

namespace lockstep::worker {

// Transposes every sample of `array` from the dimensions `view.stored` to the order `view.order`. StoredArray::element
// still names each element's place in the file. Advances `pulse` (may be null) by the bytes moved. REQUIRES: samples
// are contiguous from the first element on.
void TransposeSamples(StoredArray& array, const SampleView& view, Pulse* pulse);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_TRANSPOSE_SAMPLES_H_
