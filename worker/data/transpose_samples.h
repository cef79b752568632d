// Brings the dimensions of stored samples into the order in which a model takes them, once, in place: reading them
// costs nothing more afterwards.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_WORKER_DATA_TRANSPOSE_SAMPLES_H_
#define LOCKSTEP_WORKER_DATA_TRANSPOSE_SAMPLES_H_

#include "common/job/sample_form.h"
#include "common/sync/pulse.h"
#include "worker/data/stored_data.h"

namespace lockstep::worker {

// Every sample of `array`, which has the dimensions `view.stored`, gets them in `view.order`; the places of its
// elements stay those in the file. Advances `pulse` (may be null) by the bytes moved. REQUIRES: samples lie one behind
// the other from the first element on.
void TransposeSamples(StoredArray& array, const SampleView& view, Pulse* pulse);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_TRANSPOSE_SAMPLES_H_
