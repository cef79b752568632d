// Replaces ops of the forward graph by the forms that training and evaluation need.
//
//   op                                     training                       evaluation
//   MaxPool                                MaxPoolWithArgmax              MaxPool
//   Dropout, training_mode                 DropoutTraining; none at 0     none
//   Dropout with input `dropped`           that input                     none
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

// Makes every op that draws random numbers read kRandomInput, which is appended to the graph's inputs when a node reads
// it. UseTrainingForms calls it. Evaluation and prediction graphs call it themselves: a serving graph has no such
// input.
void FeedRandomNumbers(Graph* graph);

// Writes the shape of every op that draws random numbers into its attributes, so that it reads no other value.
// REQUIRES: shapes are inferred.
void MakeRandomShapesExplicit(Graph* graph);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_PASSES_FORMS_H_
