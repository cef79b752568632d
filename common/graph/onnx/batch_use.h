// Whether a model computes with the number of samples in its batch, as `x.sum(0) / x.shape[0]` does: the import holds
// what such a model makes of the job's batch, which is wrong for any other.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_ONNX_BATCH_USE_H_
#define LOCKSTEP_COMMON_GRAPH_ONNX_BATCH_USE_H_

#include <cstdint>
#include <map>
#include <string>

#include "common/graph/onnx/import.h"
#include "common/graph/onnx/onnx_file.h"
#include "common/graph/ops/ir.h"

namespace lockstep {

// Compares the graphs of one file, imported for batches of `batch` and of `other` samples. Returns the first node or
// constant that differs so that samples of a batch that is filled up would get other results than those of a smaller
// batch; "" where there is none. Shapes that only follow the batch make no difference, nor does a constant that has an
// entry per sample of which the first ones stay the same.
std::string UseOfBatch(const Graph& graph, int64_t batch, const Graph& of_other, int64_t other);

// The graphs of the file for two other batches than that of the options, by batch; none for one that it does not
// compute with, or where no node asks for a shape. Not for one sample, of which an import may make another graph.
std::map<int64_t, Graph> ImportForOtherBatches(const OnnxFile& file, OnnxImportOptions options);

// UseOfBatch with each of these graphs; for a batch of one sample, of these with each other.
std::string UseOfBatch(const Graph& graph, int64_t batch, const std::map<int64_t, Graph>& others);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_ONNX_BATCH_USE_H_
