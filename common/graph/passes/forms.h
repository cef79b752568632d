// What the forward graph becomes when it trains and when it is evaluated.
//
//   op                                     training                       evaluation
//   MaxPool                                MaxPoolWithArgmax              MaxPool
//   Dropout, training_mode                 DropoutTraining; none at 0     none
//   Dropout with what it drops to          that                           none
//   UniformLike, NormalLike                with kRandomInput              with kRandomInput, likewise
//   Dropout, otherwise                     none                           none
//   BatchNormalization, training_mode      BatchNormTraining              running statistics
//   SoftmaxCrossEntropyLoss                with statistics, or log_prob   the loss alone, likewise
//                                          where that is read
//   LayerNormalization                     with mean and inv_std          as it is
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_PASSES_FORMS_H_
#define LOCKSTEP_COMMON_GRAPH_PASSES_FORMS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/ops/ir.h"
#include "common/graph/passes/training_graph.h"

namespace lockstep {

struct TrainingForms {
  std::vector<StatisticUpdate> statistics;
};

// Outputs keep their positions in graph->outputs, though a dropped op's output is replaced by its input.
// InvalidArgument when a BatchNormalization in training has statistics that are not its own.
absl::StatusOr<TrainingForms> UseTrainingForms(Graph* graph);
void UseEvaluationForms(Graph* graph);

// Gives what draws random numbers its key; kRandomInput is appended to the inputs where anything reads it. Part of the
// training forms; an evaluation draws too, and a graph that serves has no key.
void FeedRandomNumbers(Graph* graph);

// What draws random numbers needs no value for its shape from here on. REQUIRES: shapes are inferred.
void FixDrawnShapes(Graph* graph);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_PASSES_FORMS_H_
